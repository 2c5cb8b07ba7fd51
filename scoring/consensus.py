"""Consensus of the validators: the clipped, stake-weighted median of what they revealed.

Integers only, and the same rule as the contract's, which recomputes single cells of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from protocol.ids import Address, Slot, Units
from scoring.errors import Contradiction


@dataclass(frozen=True, slots=True, kw_only=True)
class Reveal:
    """One validator's revealed weights, with its stake in the epoch's snapshot.

    Attributes:
        slot: its validator slot.
        weights: u16 by miner slot; whatever lies beyond the end is 0.
    """

    validator: Address
    slot: Slot
    stake: Units
    weights: tuple[int, ...]

    def weight(self, miner_slot: int) -> int:
        """Its weight for a miner slot."""
        return self.weights[miner_slot] if miner_slot < len(self.weights) else 0


def has_quorum(reveals: Sequence[Reveal], *, total_stake: Units) -> bool:
    """Whether at least half of the snapshot's stake revealed; without, nothing can be settled."""
    return bool(reveals) and 2 * sum(reveal.stake for reveal in reveals) >= total_stake


def consensus_weights(reveals: Sequence[Reveal]) -> tuple[int, ...]:
    """The consensus weight c_j of every miner slot, as long as the longest vector.

    c_j is the largest w such that those who gave slot j at least w hold *more* than half of the
    revealed stake; 0 if there is none.
    """
    if len({reveal.slot for reveal in reveals}) != len(reveals):
        raise Contradiction("a validator revealed twice")
    length = max((len(reveal.weights) for reveal in reveals), default=0)
    return tuple(
        _clipped_median([(reveal.weight(slot), reveal.stake) for reveal in reveals])
        for slot in range(length)
    )


def agreement(reveal: Reveal, consensus: Sequence[int], slots: Collection[Slot]) -> dict[Slot, int]:
    """A validator's cells: min(w_vj, c_j) for each of these miner slots.

    Args:
        slots: those that have an account in the epoch. Weight on an empty slot is no agreement, or
            two validators could pay themselves for agreeing on nothing.
    """
    return {
        slot: min(reveal.weight(slot), consensus[slot]) if slot < len(consensus) else 0
        for slot in slots
    }


def weights_by_address(
    consensus: Sequence[int], slots: Mapping[Slot, Address]
) -> dict[Address, int]:
    """The consensus weights of the accounts that held the miner slots, 0 included."""
    return {
        account: consensus[slot] if slot < len(consensus) else 0 for slot, account in slots.items()
    }


def _clipped_median(weighed: list[tuple[int, Units]]) -> int:
    revealed = sum(stake for _, stake in weighed)
    above = 0
    for weight, stake in sorted(weighed, reverse=True):
        above += stake
        if 2 * above > revealed:
            return weight
    return 0
