"""The epoch manager: terms, pauses, beacons, commits, attestations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.event_types.base import Event
from protocol.beacon import Purpose
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsAnnounced(Event):
    """These terms apply from `from_epoch` on, unless they are withdrawn."""

    CONTRACT: ClassVar[str] = "EpochManager"

    from_epoch: Epoch
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsWithdrawn(Event):
    """The terms announced last don't apply after all."""

    CONTRACT: ClassVar[str] = "EpochManager"

    from_epoch: Epoch
    spec_hash: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseStarted(Event):
    """The run's clocks stand still since this block time."""

    CONTRACT: ClassVar[str] = "EpochManager"

    timestamp: int
    block_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseEnded(Event):
    """The clocks go on; `total_s` and `total_blocks` of all pauses so far are taken off the chain's."""

    CONTRACT: ClassVar[str] = "EpochManager"

    timestamp: int
    block_number: int
    total_s: int
    total_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconFixed(Event):
    """The beacon will come from `target_block`."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    purpose: Purpose
    target_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeaconRecorded(Event):
    """The beacon is known."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    purpose: Purpose
    target_block: int
    value: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Event):
    """A key committed to the submission with this digest. Whether it is a miner's operator, the contract didn't ask."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    operator: Address
    digest: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested(Event):
    """A validator attested `root` as the state at the start of `round`, and what it holds, bit by miner slot."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    account: Address
    slot: Slot
    root: Hash32
    bitmap: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RootFinalised(Event):
    """More than half of the snapshot's stake attested `root` as the state at the start of `round`."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    root: Hash32
    stake: Units
    total_stake: Units
