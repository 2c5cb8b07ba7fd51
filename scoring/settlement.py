"""Every leaf of an epoch's settlement tree, from what the chain shows (integers only).

Miners share their part of the pot by consensus weight, validators theirs by stake times agreement.
Each account that held a slot has a leaf, even if it earned nothing, and a leaf carries the sum of
everything the account ever earned, so that a missed claim costs nothing. All divisions round down;
what is left over stays in the pot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from protocol.ids import ZERO32, Address, Epoch, Hash32, Slot, Units
from protocol.settlement import (
    MAX_MINERS,
    MAX_VALIDATORS,
    SettlementLeaf,
    SettlementTree,
    cells_root,
)
from scoring.consensus import Reveal, agreement, consensus_weights, has_quorum
from scoring.errors import Contradiction

_BPS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorSeat:
    """A validator slot of the epoch's snapshot."""

    account: Address
    stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierLeaf:
    """An account's leaf in the last settled epoch in which it had one."""

    epoch: Epoch
    cumulative: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFacts:
    """What the settlement of an epoch is a function of.

    Attributes:
        miners: the account in each taken miner slot.
        validators: account and stake in each taken validator slot.
        reveals: the weights of each validator slot that revealed.
        pot: what the epoch pays out, in base units.
        miners_bps: the miners' share of it in 1/10000; validators get the rest.
        earlier: the previous leaf of every account that has one.
    """

    epoch: Epoch
    miners: Mapping[Slot, Address]
    validators: Mapping[Slot, ValidatorSeat]
    reveals: Mapping[Slot, tuple[int, ...]]
    pot: Units
    miners_bps: int
    earlier: Mapping[Address, EarlierLeaf]

    def __post_init__(self) -> None:
        accounts = [*self.miners.values(), *(seat.account for seat in self.validators.values())]
        if len(set(accounts)) != len(accounts):
            raise Contradiction("an account holds two slots")
        if any(not 0 <= slot < MAX_MINERS for slot in self.miners):
            raise Contradiction("a miner slot is out of range")
        if any(not 0 <= slot < MAX_VALIDATORS for slot in self.validators):
            raise Contradiction("a validator slot is out of range")
        if not self.reveals.keys() <= self.validators.keys():
            raise Contradiction("weights revealed from an empty validator slot")
        if not 0 <= self.miners_bps <= _BPS or self.pot < 0:
            raise Contradiction("pot or the miners' share of it is out of range")
        if any(leaf.epoch >= self.epoch for leaf in self.earlier.values()):
            raise Contradiction("an earlier leaf is not of an earlier epoch")

    def all_reveals(self) -> tuple[Reveal, ...]:
        """The reveals with their validators' accounts and stakes, by slot."""
        return tuple(
            Reveal(
                validator=self.validators[slot].account,
                slot=slot,
                stake=self.validators[slot].stake,
                weights=self.reveals[slot],
            )
            for slot in sorted(self.reveals)
        )

    def shares(self) -> tuple[Units, Units]:
        """The miners' and the validators' share of the pot."""
        miners = Units(self.pot * self.miners_bps // _BPS)
        return miners, Units(self.pot - miners)


def settle(facts: EpochFacts) -> SettlementTree | None:
    """The settlement tree of an epoch; None without a quorum of reveals (the pot rolls over)."""
    reveals = facts.all_reveals()
    total = Units(sum(seat.stake for seat in facts.validators.values()))
    if not has_quorum(reveals, total_stake=total):
        return None
    consensus = consensus_weights(reveals)
    cells = {reveal.slot: agreement(reveal, consensus, facts.miners) for reveal in reveals}
    weight_of_miner = {
        slot: consensus[slot] if slot < len(consensus) else 0 for slot in facts.miners
    }
    weight_of_validator = {
        slot: seat.stake * sum(cells.get(slot, {}).values())
        for slot, seat in facts.validators.items()
    }
    for_miners, for_validators = facts.shares()
    earned_by_miner = split(for_miners, weight_of_miner)
    earned_by_validator = split(for_validators, weight_of_validator)
    rows = [
        (int(slot), account, weight_of_miner[slot], earned_by_miner[slot], ZERO32)
        for slot, account in facts.miners.items()
    ] + [
        (
            MAX_MINERS + slot,
            seat.account,
            weight_of_validator[slot],
            earned_by_validator[slot],
            cells_root(cells[slot]) if slot in cells else ZERO32,
        )
        for slot, seat in facts.validators.items()
    ]
    return SettlementTree(facts.epoch, {row[0]: _leaf(facts.earlier, *row) for row in rows})


def split(share: Units, weights: Mapping[Slot, int]) -> dict[Slot, Units]:
    """floor(share * w / sum of w) for each slot; 0 for all if nobody has weight."""
    total = sum(weights.values())
    return {slot: Units(share * w // total if total else 0) for slot, w in weights.items()}


def _leaf(
    earlier: Mapping[Address, EarlierLeaf],
    index: int,
    account: Address,
    w: int,
    amount: Units,
    cells: Hash32,
) -> SettlementLeaf:
    before = earlier.get(account, EarlierLeaf(epoch=Epoch(0), cumulative=Units(0)))
    return SettlementLeaf(
        index=index,
        account=account,
        w=w,
        amount=amount,
        cumulative=Units(before.cumulative + amount),
        prev_epoch=before.epoch,
        cells=cells,
    )
