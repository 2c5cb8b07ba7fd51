"""What the contracts announce, as frozen records.

One class per Solidity event, with its name and its arguments in snake case (``from`` is `sender`). Amounts are in base
units. A test holds this list against the packaged interfaces, so that no event is missing and no field is misspelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ledger.contracts.faults import Fault
from ledger.contracts.registry import Role
from protocol.beacon import Purpose
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.settlement import SumNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Where an event stands on chain. `CONTRACT` names the interface that declares it."""

    CONTRACT: ClassVar[str] = ""

    block: int
    log_index: int
    tx_hash: Hash32


EventT = TypeVar("EventT", bound=Event)


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
class Slashed(Event):
    """`bounty` of what was taken went to `bounty_to`, the rest was burned."""

    CONTRACT: ClassVar[str] = "StakeVault"

    account: Address
    judge: Address
    taken: Units
    bounty_to: Address
    bounty: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecScheduled(Event):
    """From `from_epoch` on the spec with this hash applies."""

    CONTRACT: ClassVar[str] = "EpochManager"

    from_epoch: Epoch
    spec_hash: Hash32


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
    """A miner committed to the submission with this digest."""

    CONTRACT: ClassVar[str] = "EpochManager"

    round: Round
    account: Address
    slot: Slot
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
    root: Hash32
    amount: Units
    rollover: Units


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeCommitted(Event):
    """A hunter committed to evidence."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"

    hunter: Address
    commitment: Hash32
    reveal_before: int
    bond: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeExpired(Event):
    """A challenge was never revealed; its bond is burned."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"

    hunter: Address
    commitment: Hash32
    bond: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultProven(Event):
    """`miner` did it; `bounty` of `slashed` went to `hunter`, the rest was burned."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"

    round: Round
    miner: Address
    hunter: Address
    kind: Fault
    slashed: Units
    bounty: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultConfirmed(Event):
    """A correct proof of a fault that was judged before."""

    CONTRACT: ClassVar[str] = "ObjectiveFaults"

    round: Round
    miner: Address
    hunter: Address
    kind: Fault
