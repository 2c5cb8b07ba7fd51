"""The stake vault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.event_types.base import Event
from protocol.ids import Address, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Deposited(Event):
    """`active` is the account's active stake now."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    amount: Units
    active: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbondRequested(Event):
    """`unbonding` is the whole bucket; it unlocks after `unlock_time`."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    amount: Units
    unbonding: Units
    unlock_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn(Event):
    """Unbonded stake was paid out."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked(Event):
    """A game against `account` opened: it can't withdraw while any of its `locks` is open."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    locks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlocked(Event):
    """A game against `account` ended; so many `locks` are left."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    locks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slashed(Event):
    """`bounty` of what was taken went to `bounty_to`, the rest was burned."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    judge: Address
    taken: Units
    bounty_to: Address
    bounty: Units
