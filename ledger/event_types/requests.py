"""Requests for data that is withheld."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.contracts.requests import Item, Opening
from ledger.event_types.base import Event
from protocol.ids import Address, Hash32, Slot, Units
from protocol.submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRequested(Event):
    """`item` is wanted until `deadline`, of the validators in `setters` (a mask of slots) in turn, from `first_slot` on.

    Blocks are less pauses.
    """

    CONTRACT: ClassVar[str] = "DataRequests"

    id: Hash32
    requester: Address
    digest: Hash32
    item: Item
    setters: int
    first_slot: Slot
    opened_block: int
    deadline: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswered(Event):
    """`item` was shown; `paid` (or nobody) got `fee` for it."""

    CONTRACT: ClassVar[str] = "DataRequests"

    id: Hash32
    paid: Address
    fee: Units
    item: Item
    submission: Submission
    opening: Opening


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWithheld(Event):
    """Nobody showed `item`; each validator in `setters` (a mask of slots) was fined `fine`."""

    CONTRACT: ClassVar[str] = "DataRequests"

    id: Hash32
    requester: Address
    item: Item
    setters: int
    fine: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceWithdrawn(Event):
    """Fees for answers, or bonds of requests, were paid."""

    CONTRACT: ClassVar[str] = "DataRequests"

    account: Address
    amount: Units
