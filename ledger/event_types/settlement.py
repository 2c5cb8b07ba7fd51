"""Weights, settlements and what they pay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.event_types.base import Event
from protocol.ids import Address, Epoch, Hash32, Slot, Units
from protocol.settlement import SumNode


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsCommitted(Event):
    """A validator committed to its weights of an epoch."""

    CONTRACT: ClassVar[str] = "ScoreRegistry"

    epoch: Epoch
    account: Address
    slot: Slot
    commitment: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsRevealed(Event):
    """`weights`: big-endian uint16 by miner slot."""

    CONTRACT: ClassVar[str] = "ScoreRegistry"

    epoch: Epoch
    account: Address
    slot: Slot
    weights_root: Hash32
    weights: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRevealPenalised(Event):
    """A validator that did not reveal lost `taken`."""

    CONTRACT: ClassVar[str] = "ScoreRegistry"

    epoch: Epoch
    account: Address
    slot: Slot
    taken: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementPosted(Event):
    """Somebody posted the two halves of an epoch's settlement."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    poster: Address
    miners: SumNode
    validators: SumNode
    pot: Units
    bond: Units
    window_ends: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafChallenged(Event):
    """Leaf `index` (of a validator: cell `cell` of it) has to be opened by `deadline`."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    index: int
    cell: int
    challenger: Address
    deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafOpened(Event):
    """The challenged leaf was right."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    index: int
    cell: int
    window_ends: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementStruck(Event):
    """The post fell; `bounty` of its bond went to the challenger, the rest was burned."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    index: int
    challenger: Address
    bounty: Units
    burned: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementFinalised(Event):
    """The epoch's settlement is final; `rollover` belongs to the next pot."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    root: Hash32
    amount: Units
    rollover: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class PostClosed(Event):
    """A post that still stood when its epoch was closed: with the final root its bond went back, else it burned."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    attempt: int
    poster: Address
    burned: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochVoided(Event):
    """Nobody settled the epoch in time; its pot rolls over."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    rollover: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(Event):
    """What `account` had earned up to `epoch` was paid."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    account: Address
    epoch: Epoch
    payout: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class FeesAdded(Event):
    """Fees for the pot of `epoch`."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    sender: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited(Event):
    """`account` did a chore of `epoch`."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    account: Address
    epoch: Epoch
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundsWithdrawn(Event):
    """Chore refunds were paid."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    account: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BondReleased(Event):
    """Bonds and bounties became withdrawable."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    account: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BondsWithdrawn(Event):
    """Released bonds were paid."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    account: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted(Event):
    """New tokens for an epoch's pot."""

    CONTRACT: ClassVar[str] = "RewardsDistributor"

    epoch: Epoch
    amount: Units
