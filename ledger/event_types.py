"""What the contracts announce, as frozen records.

One class per Solidity event, with its name and its arguments in snake case (``from`` is `sender`). Amounts are in base
units. A test holds this list against the packaged interfaces, so that no event is missing and no field is misspelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Position, Turn
from ledger.contracts.registry import Role
from ledger.contracts.requests import Item, Opening
from ledger.contracts.verdicts import Fault
from protocol.beacon import Purpose
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.settlement import SumNode
from protocol.submission import Submission
from protocol.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Where an event stands on chain. `CONTRACT` names the interface that declares it, `ALSO` others that share it."""

    CONTRACT: ClassVar[str] = ""
    ALSO: ClassVar[tuple[str, ...]] = ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOpened(Event):
    """A game against `defendant`; `Moved` told its position just before."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    defendant: Address
    challenger: Address
    commitment: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Event):
    """The game stands here now; `turn` has until block `last_block` of the run's clock (0: no clock runs)."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    position: Position
    turn: Turn
    last_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPosted(Event):
    """All nodes some levels below `node`, from the left. Good for every game; empty if another game showed them."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    node: Hash32
    children: tuple[Hash32, ...]
    last_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEntered(Event):
    """The root of a level of a claim, for every game that comes this way."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    path: Hash32
    root: Hash32
    preimage: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding(Event):
    """The judge was asked and takes its time."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOver(Event):
    """The end; what of the bond went to neither side was burned."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    defendant: Address
    challenger: Address
    outcome: GameOutcome
    to_defendant: Units
    to_challenger: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOpened(Event):
    """The validators of `epoch` vote on a game. Deadlines are blocks of the run's clock, inclusive."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    defendant: Address
    round: Round
    epoch: Epoch
    commit_deadline: int
    reveal_deadline: int
    total_stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCommitted(Event):
    """A validator committed to its vote."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    commitment: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRevealed(Event):
    """A validator's vote, with its stake."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    guilty: bool
    stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteClosed(Event):
    """What came of a vote; amounts are stakes."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    ruling: Ruling
    guilty: Units
    not_guilty: Units
    total_stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterFined(Event):
    """A validator was silent, or voted against the majority (`dissent`)."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    dissent: bool
    taken: Units
