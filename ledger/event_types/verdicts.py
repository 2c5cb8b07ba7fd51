"""Challenges, proven faults and their bounties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.contracts.verdicts import Fault
from ledger.event_types.base import Event
from protocol.ids import Address, Hash32, Round, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeCommitted(Event):
    """A hunter committed to evidence."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"
    ALSO: ClassVar[tuple[str, ...]] = ("Disputes",)

    hunter: Address
    commitment: Hash32
    last_block: int
    bond: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeExpired(Event):
    """A challenge was never revealed; its bond is burned."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"
    ALSO: ClassVar[tuple[str, ...]] = ("Disputes",)

    hunter: Address
    commitment: Hash32
    bond: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BondWithdrawn(Event):
    """A hunter took back bonds that stood behind no challenge."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"
    ALSO: ClassVar[tuple[str, ...]] = ("Disputes",)

    hunter: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultProven(Event):
    """`hunter` proved that `miner` did it. What that cost, if anything, `Convicted` tells."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"

    round: Round
    miner: Address
    hunter: Address
    kind: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Convicted(Event):
    """`offender` lost `taken`; `bounty` of it is held for `hunter`, the rest was burned."""

    CONTRACT: ClassVar[str] = "Verdicts"

    round: Round
    offender: Address
    hunter: Address
    kind: Fault
    taken: Units
    bounty: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BountyMoved(Event):
    """The same fault was proven by a challenge committed earlier: the bounty held is `hunter`'s now."""

    CONTRACT: ClassVar[str] = "Verdicts"

    round: Round
    offender: Address
    hunter: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class BountyPaid(Event):
    """The bounty of a verdict was paid out."""

    CONTRACT: ClassVar[str] = "Verdicts"

    round: Round
    offender: Address
    hunter: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class BountyCredited(Event):
    """A graver verdict took the place of `hunter`'s, which can withdraw its bounty from now on."""

    CONTRACT: ClassVar[str] = "Verdicts"

    round: Round
    offender: Address
    hunter: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditWithdrawn(Event):
    """A hunter took out such bounties."""

    CONTRACT: ClassVar[str] = "Verdicts"

    hunter: Address
    amount: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Fined(Event):
    """A duty was missed that costs a fixed sum and no exclusion."""

    CONTRACT: ClassVar[str] = "Verdicts"

    account: Address
    by: Address
    taken: Units
    bounty_to: Address
    bounty: Units
