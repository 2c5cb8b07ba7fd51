"""The registry: who holds which slot, and signs for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.contracts.registry import Role
from ledger.event_types.base import Event
from protocol.ids import Address, Epoch, Round, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Event):
    """`account` holds `slot` from `from_epoch` on."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    role: Role
    slot: Slot
    operator: Address
    payout: Address
    endpoint: str
    from_epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSet(Event):
    """`operator` signs for `account` from `from_round` on."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    operator: Address
    from_round: Round


@dataclass(frozen=True, slots=True, kw_only=True)
class PayoutSet(Event):
    """The account's rewards go to `payout`."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    payout: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSet(Event):
    """The account's node serves at `endpoint`."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    endpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotVacated(Event):
    """`account` holds no slot from `from_epoch` on."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    role: Role
    slot: Slot
    from_epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded(Event):
    """A fault was proven; the account can't register before `until_epoch`."""

    CONTRACT: ClassVar[str] = "Registry"

    account: Address
    faults: int
    until_epoch: Epoch
