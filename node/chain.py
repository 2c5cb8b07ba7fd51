"""The run as the chain shows it: who is in it, and what happened in each round and epoch.

Built from the stored events and the registry's snapshots. Times are those of blocks, less the run's
pauses. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ledger.contracts import Contracts
from ledger.contracts.registry import Role, SlotHolder
from ledger.errors import Reverted
from ledger.event_types import (
    Attested,
    BeaconFixed,
    BeaconRecorded,
    Committed,
    Convicted,
    EndpointSet,
    Event,
    OperatorSet,
    PauseEnded,
    PauseStarted,
    Registered,
    RootFinalised,
    SettlementFinalised,
    TermsAnnounced,
    TermsWithdrawn,
    WeightsRevealed,
)
from ledger.events import EventReader, Update
from node.chores import BeaconState
from node.exchange import Roster
from node.outcome import RoundFacts
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units
from protocol.terms import Terms
from scoring.acceptance import Attestation
from scoring.consensus import Reveal, consensus_weights, has_quorum, weights_by_address
from scoring.weights import decode_weights

_FORGOTTEN = "EpochForgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Who holds which slot in an epoch."""

    epoch: Epoch
    miners: Mapping[Slot, SlotHolder]
    validators: Mapping[Slot, SlotHolder]

    @property
    def miner_accounts(self) -> dict[Slot, Address]:
        """The account in each miner slot."""
        return {slot: holder.account for slot, holder in self.miners.items()}

    @property
    def total_stake(self) -> Units:
        """Stake of all validators."""
        return Units(sum(holder.stake for holder in self.validators.values()))

    def miner_slot(self, account: Address) -> Slot | None:
        """The miner slot that an account holds."""
        return _slot_of(self.miners, account)

    def validator_slot(self, account: Address) -> Slot | None:
        """The validator slot that an account holds."""
        return _slot_of(self.validators, account)


class RunChain:
    """One run on one chain, kept up to date by `poll`.

    Attributes:
        block: the newest block; `run_block` is its number less the blocks of all pauses, which games count by.
        time: its time less all pauses, which every deadline of the run compares with; it stands still in a pause.
        block_time: its time as the chain has it.
        paused_since: block time at which the pause under way started; None while the run goes on.
    """

    def __init__(self, *, contracts: Contracts, events: EventReader, clock: RoundClock) -> None:
        self.contracts = contracts
        self.events = events
        self.clock = clock
        self.block = 0
        self.run_block = 0
        self.time = 0
        self.block_time = 0
        self.paused_since: int | None = None
        self._snapshots: dict[Epoch, Snapshot] = {}

    async def poll(self) -> Update:
        """Catches up with the head."""
        update = await self.events.poll()
        self.block, self.block_time = update.head.number, update.head.time
        self._set_clock()
        if update.removed:
            self._snapshots.clear()
        return update

    def _set_clock(self) -> None:
        started, ended = self.events.events(PauseStarted), self.events.events(PauseEnded)
        self.paused_since = started[-1].timestamp if len(started) > len(ended) else None
        paused_s = ended[-1].total_s if ended else 0
        self.time = (self.paused_since or self.block_time) - paused_s
        block = self.block if self.paused_since is None else started[-1].block_number
        self.run_block = block - (ended[-1].total_blocks if ended else 0)

    @property
    def paused(self) -> bool:
        """Whether the run's clocks stand still, so that no contract takes anything."""
        return self.paused_since is not None

    def block_time_of(self, time: int) -> int:
        """Block time at which the run's clock shows `time`, if no further pause comes between."""
        return time + self.block_time - self.time

    def schedule(self) -> list[Terms]:
        """All terms that apply, applied or are announced, by ascending first epoch."""
        found: list[TermsAnnounced | TermsWithdrawn] = [
            *self.events.events(TermsAnnounced),
            *self.events.events(TermsWithdrawn),
        ]
        schedule: list[Terms] = []
        for event in sorted(found, key=_place):
            if isinstance(event, TermsAnnounced):
                schedule.append(event.terms)
            else:
                schedule.pop()
        return schedule

    @property
    def round(self) -> Round:
        """The round under way; 0 before genesis."""
        return self.clock.round_at(self.time)

    @property
    def epoch(self) -> Epoch:
        """The epoch under way; 0 before genesis."""
        return self.clock.epoch_at(self.time)

    async def snapshot(self, epoch: Epoch) -> Snapshot:
        """Who holds which slot in an epoch; final once the epoch is under way."""
        known = self._snapshots.get(epoch)
        if known is not None:
            return known
        final = epoch <= self.epoch
        snapshot = Snapshot(
            epoch=epoch,
            miners={held.slot: held for held in await self._holders(Role.MINER, epoch)},
            validators={held.slot: held for held in await self._holders(Role.VALIDATOR, epoch)},
        )
        if final:
            self._snapshots[epoch] = snapshot
        return snapshot

    async def _holders(self, role: Role, epoch: Epoch) -> list[SlotHolder]:
        """The slots of an epoch. Stakes that the vault has forgotten are read as it knew them then, from a node's archive."""
        registry = self.contracts.registry
        try:
            return await registry.slots(role, epoch)
        except Reverted as error:
            seen = self.events.events(WeightsRevealed, epoch=epoch)
            if error.name != _FORGOTTEN or not seen:
                raise
            return await registry.slots(role, epoch, block=seen[0].block)

    def slot_count(self, role: Role) -> int:
        """Slots of a role that were ever used."""
        taken = [event.slot for event in self.events.events(Registered) if event.role is role]
        return max(taken, default=-1) + 1

    def endpoints(self) -> dict[Address, str]:
        """Where each account's node serves, as last registered."""
        found: list[Registered | EndpointSet] = [
            *self.events.events(Registered),
            *self.events.events(EndpointSet),
        ]
        found.sort(key=_place)
        return {event.account: event.endpoint for event in found if event.endpoint}

    def operators(self, round_: Round) -> dict[Address, Address]:
        """The key that signs for each account in a round."""
        return {
            event.account: event.operator
            for event in self.events.events(OperatorSet)
            if event.from_round <= round_
        }

    def beacon(self, round_: Round, purpose: Purpose) -> Hash32 | None:
        """A round's recorded beacon."""
        return self.beacon_state(round_, purpose).value

    def beacon_state(self, round_: Round, purpose: Purpose) -> BeaconState:
        """How far a beacon is."""
        for recorded in self.events.events(BeaconRecorded, round_=round_):
            if recorded.purpose is purpose:
                return BeaconState(target=recorded.target_block, value=recorded.value)
        targets = [
            fixed.target_block
            for fixed in self.events.events(BeaconFixed, round_=round_)
            if fixed.purpose is purpose
        ]
        return BeaconState(target=targets[-1] if targets else 0)

    async def commits(self, round_: Round) -> dict[Address, Hash32]:
        """What each miner committed in a round. The contract takes commits of any key; others than operators' don't count."""
        snapshot = await self.snapshot(self.clock.epoch_of(round_))
        operators = self.operators(round_)
        miners = {
            operators[holder.account]: holder.account
            for holder in snapshot.miners.values()
            if holder.account in operators
        }
        return {
            miners[event.operator]: event.digest
            for event in self.events.events(Committed, round_=round_)
            if event.operator in miners
        }

    def final_roots(self) -> dict[Round, Hash32]:
        """Every finalised state root, by the round that starts with it."""
        return {event.round: event.root for event in self.events.events(RootFinalised)}

    def faults_of_epoch(self, epoch: Epoch) -> set[Address]:
        """The accounts with a proven fault in a round of an epoch."""
        return {
            event.offender
            for event in self.events.events(Convicted)
            if self.clock.epoch_of(event.round) == epoch
        }

    def settled(self) -> dict[Epoch, Hash32]:
        """The root of each settled epoch."""
        return {event.epoch: event.root for event in self.events.events(SettlementFinalised)}

    async def roster(self, round_: Round) -> Roster | None:
        """Whose submissions count in a round; None without an assignment beacon."""
        beacon = self.beacon(round_, Purpose.ASSIGNMENT)
        if beacon is None:
            return None
        snapshot = await self.snapshot(self.clock.epoch_of(round_))
        operators = self.operators(round_)
        miners = [holder.account for holder in snapshot.miners.values()]
        return Roster(
            round=round_,
            beacon=beacon,
            operators={miner: operators[miner] for miner in miners if miner in operators},
            commits=await self.commits(round_),
        )

    async def attestations(self, round_: Round) -> list[Attestation]:
        """The round's attestations with their stakes."""
        snapshot = await self.snapshot(self.clock.epoch_of(round_))
        return [
            Attestation(
                validator=event.account,
                slot=event.slot,
                stake=snapshot.validators[event.slot].stake,
                root=event.root,
                bitmap=event.bitmap,
            )
            for event in self.events.events(Attested, round_=round_)
        ]

    async def round_facts(self, round_: Round) -> RoundFacts:
        """Everything that a round's outcome is a function of."""
        epoch = self.clock.epoch_of(round_)
        snapshot = await self.snapshot(epoch)
        return RoundFacts(
            round=round_,
            assignment=self.beacon(round_, Purpose.ASSIGNMENT),
            evaluation=self.beacon(round_, Purpose.EVALUATION),
            miners=snapshot.miner_accounts,
            slot_count=self.slot_count(Role.MINER),
            attestations=await self.attestations(round_),
            total_stake=snapshot.total_stake,
            commits=await self.commits(round_),
            weights=await self.selection_weights(epoch),
        )

    async def reveals(self, epoch: Epoch) -> list[Reveal]:
        """The weights that validators revealed for an epoch."""
        snapshot = await self.snapshot(epoch)
        return [
            Reveal(
                validator=event.account,
                slot=event.slot,
                stake=snapshot.validators[event.slot].stake,
                weights=decode_weights(event.weights),
            )
            for event in self.events.events(WeightsRevealed, epoch=epoch)
        ]

    async def selection_weights(self, epoch: Epoch) -> dict[Address, int]:
        """The consensus weights that the selection goes by in the rounds of an epoch.

        Those of the newest epoch up to the one before the last for which a quorum revealed; none at
        the start of a run. Whether that epoch's settlement became final plays no part.
        """
        for earlier in range(epoch - 2, 0, -1):
            snapshot = await self.snapshot(Epoch(earlier))
            reveals = await self.reveals(Epoch(earlier))
            if has_quorum(reveals, total_stake=snapshot.total_stake):
                return weights_by_address(consensus_weights(reveals), snapshot.miner_accounts)
        return {}

    async def validator_endpoints(self, *, without: Address | None = None) -> list[str]:
        """Endpoints of the validators of the epoch under way (of the first, before genesis)."""
        snapshot = await self.snapshot(Epoch(max(1, self.epoch)))
        return self._endpoints_of(snapshot.validators.values(), without)

    async def miner_endpoints(self, *, without: Address | None = None) -> list[str]:
        """Endpoints of the miners of the epoch under way (of the first, before genesis)."""
        snapshot = await self.snapshot(Epoch(max(1, self.epoch)))
        return self._endpoints_of(snapshot.miners.values(), without)

    def _endpoints_of(self, holders: Iterable[SlotHolder], without: Address | None) -> list[str]:
        endpoints = self.endpoints()
        accounts = [holder.account for holder in holders if holder.account != without]
        return [endpoints[account] for account in accounts if account in endpoints]


def _slot_of(holders: Mapping[Slot, SlotHolder], account: Address) -> Slot | None:
    return next((slot for slot, held in holders.items() if held.account == account), None)


def _place(event: Event) -> tuple[int, int]:
    return event.block, event.log_index
