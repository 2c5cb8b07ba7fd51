"""Local states out of line: what a miner carried over, held against its own earlier submissions and the ballots. Pure.

A miner carries over what came out of its last accepted round, or nothing. It is out of line if it carries something else than came out,
or from a round in which it was not accepted, or from one before its last accepted one. The validators' attestations say what was
accepted; they are final before the next round starts, so that no honest miner can be caught between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ledger.contracts.epochs import Ballot
from ledger.contracts.evidence import LocalStateEvidence
from protocol.ids import Hash32, Round, Slot, Units
from protocol.submission import SignedSubmission
from scoring.acceptance import Attestation


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRound:
    """A round after its attest deadline, as far as it concerns one miner.

    Attributes:
        beacon: the canonical assignment beacon; None if none was recorded.
        slot: the miner's in that round's epoch; None if it held none, so that nothing of it was accepted.
        committed: the submission that it committed; None if it did not, or if nobody shows it.
        votes: all attestations.
        total_stake: of all validators in the epoch's snapshot.
    """

    beacon: Hash32 | None
    slot: Slot | None
    committed: SignedSubmission | None
    votes: Sequence[Attestation]
    total_stake: Units


def local_state(
    signed: SignedSubmission, past: Mapping[Round, PastRound]
) -> LocalStateEvidence | None:
    """The evidence with the fewest ballots that a committed submission carries a state which it may not; None if there is none.

    Args:
        signed: the submission, under the registered spec and the canonical beacon.
        past: the rounds from the one carried from on whose ballots the contract still has; no other can be told about.
    """
    submission = signed.submission
    first = submission.local_from_round
    if not 0 < first < submission.round:
        return None
    return _of_origin(signed, past.get(first)) or _of_later(signed, past)


def _of_origin(signed: SignedSubmission, origin: PastRound | None) -> LocalStateEvidence | None:
    """Another state than came out of the round carried from, or nothing of that round was accepted."""
    if origin is None:
        return None
    other = origin.committed
    if other is not None and other.submission.local_out != signed.submission.local_in:
        return LocalStateEvidence(signed=signed, other=other, ballots=())
    slot = origin.slot
    if slot is None:
        return LocalStateEvidence(signed=signed, other=None, ballots=())
    ballots = _minority(origin, [vote for vote in origin.votes if not _has_bit(vote, slot)])
    if ballots is not None:
        return LocalStateEvidence(signed=signed, other=None, ballots=ballots)
    if other is None:
        return None
    if other.submission.beacon != origin.beacon:
        return LocalStateEvidence(signed=signed, other=other, ballots=())
    root = other.submission.initial_root
    ballots = _minority(origin, [vote for vote in origin.votes if vote.root != root])
    return (
        None if ballots is None else LocalStateEvidence(signed=signed, other=other, ballots=ballots)
    )


def _of_later(
    signed: SignedSubmission, past: Mapping[Round, PastRound]
) -> LocalStateEvidence | None:
    """A round between was accepted."""
    submission = signed.submission
    for number in range(submission.local_from_round + 1, submission.round):
        between = past.get(Round(number))
        if between is None or between.committed is None:
            continue
        ballots = _majority(between, between.committed)
        if ballots is not None:
            return LocalStateEvidence(signed=signed, other=between.committed, ballots=ballots)
    return None


def _minority(round_: PastRound, against: Iterable[Attestation]) -> tuple[Ballot, ...] | None:
    """The fewest of these ballots that leave no majority to all others together; None if even all of them don't."""
    left = int(sum(vote.stake for vote in round_.votes))
    opened = []
    for vote in sorted(against, key=lambda vote: (-vote.stake, vote.slot)):
        if 2 * left <= round_.total_stake:
            break
        opened.append(vote)
        left -= vote.stake
    return _ballots(opened) if 2 * left <= round_.total_stake else None


def _majority(round_: PastRound, signed: SignedSubmission) -> tuple[Ballot, ...] | None:
    """Few ballots that show both majorities which make this submission accepted; None if it was not."""
    submission, slot = signed.submission, round_.slot
    if slot is None or submission.beacon != round_.beacon:
        return None
    worth = {
        vote.slot: (_has_bit(vote, slot), vote.root == submission.initial_root)
        for vote in round_.votes
    }
    bit_set = for_root = 0
    opened = []
    for vote in sorted(round_.votes, key=lambda v: (-sum(worth[v.slot]), -v.stake, v.slot)):
        if 2 * min(bit_set, for_root) > round_.total_stake:
            break
        has_bit, has_root = worth[vote.slot]
        opened.append(vote)
        bit_set += vote.stake * has_bit
        for_root += vote.stake * has_root
    return _ballots(opened) if 2 * min(bit_set, for_root) > round_.total_stake else None


def _has_bit(vote: Attestation, slot: Slot) -> bool:
    return bool(int.from_bytes(vote.bitmap, "little") >> slot & 1)


def _ballots(votes: Iterable[Attestation]) -> tuple[Ballot, ...]:
    ordered = sorted(votes, key=lambda vote: vote.slot)
    return tuple(Ballot(slot=each.slot, root=each.root, bitmap=each.bitmap) for each in ordered)
