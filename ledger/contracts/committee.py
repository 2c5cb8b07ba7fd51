"""The committee: the judge of native runs, whose votes are committed, then revealed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ledger.contracts.base import Contract
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Epoch, Hash32, Slot, Units


class Ruling(IntEnum):
    """A judge's answer (the numbers are the contract's)."""

    PENDING = 0
    GUILTY = 1
    NOT_GUILTY = 2
    UNDECIDED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One vote. Stakes are those of the snapshot of `epoch`; deadlines are blocks, inclusive.

    Attributes:
        committed, voted_guilty, voted_not_guilty, fined: the slots of whom this is true.
    """

    epoch: Epoch
    commit_deadline: int
    reveal_deadline: int
    ruling: Ruling
    total: Units
    guilty: Units
    not_guilty: Units
    committed: frozenset[Slot]
    voted_guilty: frozenset[Slot]
    voted_not_guilty: frozenset[Slot]
    fined: frozenset[Slot]


class Committee(Contract):
    """Counts the validators' votes on games that came down to one inner step."""

    ABI = "Committee"

    async def vote_of(self, game: Hash32) -> Vote | None:
        """A game's vote; None if there is none (yet)."""
        vote = (await self._read("voteOf", game)).record(0)
        if not vote.integer(1):
            return None
        return Vote(
            epoch=Epoch(vote.integer(0)),
            commit_deadline=vote.integer(1),
            reveal_deadline=vote.integer(2),
            ruling=Ruling(vote.integer(3)),
            total=Units(vote.integer(4)),
            guilty=Units(vote.integer(5)),
            not_guilty=Units(vote.integer(6)),
            committed=_slots(vote.integer(7)),
            voted_guilty=_slots(vote.integer(8)),
            voted_not_guilty=_slots(vote.integer(9)),
            fined=_slots(vote.integer(10)),
        )

    def commit_vote_call(self, game: Hash32, commitment: Hash32) -> Call:
        """Sent by the operator of a validator of the vote's epoch."""
        return self._call("commitVote", game, commitment)

    def reveal_vote_call(self, game: Hash32, slot: Slot, *, guilty: bool, salt: Hash32) -> Call:
        return self._call("revealVote", game, slot, guilty, salt)

    def fine_voter_call(self, game: Hash32, slot: Slot) -> Call:
        """Takes the penalty of a validator that was silent or voted against the majority; anybody's to send."""
        return self._call("fineVoter", game, slot)


def vote_commitment(
    *, run: Hash32, game: Hash32, account: Address, guilty: bool, salt: Hash32
) -> Hash32:
    """What a validator commits."""
    return Hash32(keccak256(abi_words(run, game, account, int(guilty), salt)))


def _slots(mask: int) -> frozenset[Slot]:
    return frozenset(Slot(place) for place in range(mask.bit_length()) if mask >> place & 1)
