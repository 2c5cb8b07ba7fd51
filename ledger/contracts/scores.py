"""The score registry: validators commit and reveal their weights."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.transactions import Call
from protocol.ids import ZERO32, Address, Epoch, Hash32, Slot, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochScores:
    """Which validators' slots committed, revealed and were penalised for an epoch, and the stake behind it.

    `total_stake` is 0 before the first commit.
    """

    committed: frozenset[Slot]
    revealed: frozenset[Slot]
    penalised: frozenset[Slot]
    revealed_stake: Units
    total_stake: Units


class ScoreRegistry(Contract):
    """Weights of the validators."""

    ABI = "ScoreRegistry"

    async def epoch_scores(self, epoch: Epoch, *, block: BlockId = "latest") -> EpochScores:
        record = (await self._read("epochScores", epoch, block=block)).record(0)
        return EpochScores(
            committed=_slots(record.integer(0)),
            revealed=_slots(record.integer(1)),
            penalised=_slots(record.integer(2)),
            revealed_stake=Units(record.integer(3)),
            total_stake=Units(record.integer(4)),
        )

    async def weights_root(self, epoch: Epoch, slot: Slot) -> Hash32 | None:
        """Root of the weights that a validator revealed."""
        root = (await self._read("weightsRoot", epoch, slot)).hash(0)
        return None if root == ZERO32 else root

    async def commitment_of(self, epoch: Epoch, slot: Slot) -> Hash32 | None:
        """What a validator committed and did not reveal yet."""
        commitment = (await self._read("commitmentOf", epoch, slot)).hash(0)
        return None if commitment == ZERO32 else commitment

    async def has_quorum(self, epoch: Epoch, *, block: BlockId = "latest") -> bool:
        """Whether enough stake revealed for the epoch to be settled."""
        return (await self._read("hasQuorum", epoch, block=block)).truth(0)

    def commit_weights_call(self, epoch: Epoch, commitment: Hash32) -> Call:
        """`commitment`: `protocol.settlement.weights_commitment`."""
        return self._call("commitWeights", epoch, commitment)

    def reveal_weights_call(
        self, epoch: Epoch, *, slot: Slot, account: Address, weights: bytes, salt: Hash32
    ) -> Call:
        """For the validator that committed; anyone who knows them may send it. `weights`: big-endian uint16 by miner slot."""
        return self._call("revealWeights", epoch, slot, account, weights, salt)

    def penalise_missing_reveal_call(self, epoch: Epoch, slot: Slot) -> Call:
        return self._call("penaliseMissingReveal", epoch, slot)


def _slots(mask: int) -> frozenset[Slot]:
    return frozenset(Slot(slot) for slot in range(mask.bit_length()) if mask >> slot & 1)
