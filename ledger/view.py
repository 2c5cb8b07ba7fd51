"""What the roles want to know of the chain, composed from stored events and the contracts' views.

`refresh` polls once; everything derived from events is then a read of the local store and needs no request. Slots come
from the registry and are kept until something about participants changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.contracts import Contracts
from ledger.contracts.registry import Role, SlotHolder
from ledger.event_types import (
    Attested,
    BeaconFixed,
    BeaconRecorded,
    Committed,
    EpochVoided,
    EventT,
    FaultProven,
    RootFinalised,
    SettlementFinalised,
    SettlementPosted,
    SettlementStruck,
    WeightsCommitted,
    WeightsRevealed,
)
from ledger.events import EventReader, Update
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Address, Epoch, Hash32, Round, Slot
from protocol.ports import ChainTime

_PARTICIPANTS = ("Registry", "StakeVault")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementState:
    """How far an epoch's settlement has come. At most one of `final` and `void` is set.

    Attributes:
        standing: the post that stands (it was not struck), final or not.
        struck: posts that fell.
    """

    standing: SettlementPosted | None
    struck: tuple[SettlementStruck, ...]
    final: SettlementFinalised | None
    void: EpochVoided | None


class ChainView:
    """A node's view of its run."""

    def __init__(self, contracts: Contracts, reader: EventReader, clock: RoundClock) -> None:
        self.contracts = contracts
        self.clock = clock
        self._reader = reader
        self._now: ChainTime | None = None
        self._slots: dict[tuple[Role, Epoch], list[SlotHolder]] = {}
        self._slots_round = Round(0)

    async def refresh(self) -> Update:
        """Polls the chain; what the other methods say is as of the last refresh."""
        update = await self._reader.poll()
        self._now = ChainTime(block=update.head.number, time=update.head.time)
        round_ = self.clock.round_at(update.head.time)
        changed = any(event.CONTRACT in _PARTICIPANTS for event in update.events)
        if changed or update.removed or round_ != self._slots_round:
            self._slots.clear()
            self._slots_round = round_
        return update

    async def now(self) -> ChainTime:
        """Number and time of the newest block that the last refresh saw (`protocol.ports.ChainClock`)."""
        if self._now is None:
            await self.refresh()
        assert self._now is not None
        return self._now

    async def slots(self, role: Role, epoch: Epoch) -> list[SlotHolder]:
        """Who holds which slot in an epoch, by slot; stakes are the epoch's snapshot."""
        key = (role, epoch)
        if key not in self._slots:
            self._slots[key] = await self.contracts.registry.slots(role, epoch)
        return self._slots[key]

    def events(
        self,
        kind: type[EventT],
        *,
        round_: Round | None = None,
        epoch: Epoch | None = None,
        account: Address | None = None,
    ) -> list[EventT]:
        """Any stored events (`EventReader.events`)."""
        return self._reader.events(kind, round_=round_, epoch=epoch, account=account)

    def beacon(self, round_: Round, purpose: Purpose) -> Hash32 | None:
        """A recorded beacon."""
        recorded = self._reader.events(BeaconRecorded, round_=round_)
        return next((event.value for event in recorded if event.purpose is purpose), None)

    def beacon_target(self, round_: Round, purpose: Purpose) -> int | None:
        """The block that a beacon will come from, as it was fixed last."""
        targets = self._reader.events(BeaconFixed, round_=round_)
        return next(
            (event.target_block for event in reversed(targets) if event.purpose is purpose), None
        )

    def commits(self, round_: Round) -> dict[Slot, Committed]:
        """What miners committed to, by slot."""
        return {event.slot: event for event in self._reader.events(Committed, round_=round_)}

    def attestations(self, round_: Round) -> dict[Slot, Attested]:
        """What validators attested, by slot."""
        return {event.slot: event for event in self._reader.events(Attested, round_=round_)}

    def final_root(self, round_: Round) -> Hash32 | None:
        """The finalised state root at the start of a round."""
        final = self._reader.events(RootFinalised, round_=round_)
        return final[0].root if final else None

    def newest_final_root(self) -> RootFinalised | None:
        """The finalised root of the highest round that has one."""
        return max(self._reader.events(RootFinalised), key=lambda event: event.round, default=None)

    def weight_commits(self, epoch: Epoch) -> dict[Slot, WeightsCommitted]:
        """Validators' commitments to weights, by slot."""
        return {event.slot: event for event in self._reader.events(WeightsCommitted, epoch=epoch)}

    def reveals(self, epoch: Epoch) -> dict[Slot, WeightsRevealed]:
        """Validators' revealed weights, by slot."""
        return {event.slot: event for event in self._reader.events(WeightsRevealed, epoch=epoch)}

    def settlement(self, epoch: Epoch) -> SettlementState:
        """How far an epoch's settlement has come."""
        posts = self._reader.events(SettlementPosted, epoch=epoch)
        struck = self._reader.events(SettlementStruck, epoch=epoch)
        fallen = {event.attempt for event in struck}
        standing = [post for post in posts if post.attempt not in fallen]
        final = self._reader.events(SettlementFinalised, epoch=epoch)
        void = self._reader.events(EpochVoided, epoch=epoch)
        return SettlementState(
            standing=standing[-1] if standing else None,
            struck=tuple(struck),
            final=final[0] if final else None,
            void=void[0] if void else None,
        )

    def verdicts(self, miner: Address | None = None) -> list[FaultProven]:
        """Proven faults, of one miner or of all."""
        proven = self._reader.events(FaultProven)
        return [event for event in proven if miner is None or event.miner == miner]
