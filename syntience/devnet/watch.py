"""The onlooker: follows the chain and the boards of a devnet, and keeps what there is to show."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ledger.accounting import Books, take_books
from ledger.connection import Connection
from ledger.contracts.disputes import GameOutcome
from ledger.event_types import Attested, Committed, Event, RootFinalised
from ledger.events import EventReader
from node.chain import RunChain
from node.settlements import Settlements
from protocol.clock import RoundClock
from protocol.errors import Retryable
from protocol.ids import Epoch, Round
from syntience.devnet.boards import Boards
from syntience.devnet.game_story import GameStory
from syntience.devnet.gas import GasMeter
from syntience.devnet.launch import Founding
from syntience.devnet.names import Names
from syntience.devnet.picture import Picture, take_picture
from syntience.devnet.players import Part, Player
from syntience.devnet.story import tell
from syntience.supervisor import ProcessStatus
from syntience.table import EventLine
from transport.client import PeerClient
from transport.store import FolderStore

_LOG = logging.getLogger(__name__)
_PATIENCE_S = 20
"""So long after the last epoch must be settled or void, an unfinished run is given up."""


class Onlooker:
    """Everything that is known of a run from outside.

    Args:
        founding: the run.
        reader: of the run's events, the onlooker's own.
        client: for the boards.
        store: for what is fetched from them.
        last_epoch: the epoch with which the devnet ends.
    """

    def __init__(
        self,
        founding: Founding,
        players: Sequence[Player],
        *,
        reader: EventReader,
        client: PeerClient,
        store: FolderStore,
        last_epoch: Epoch,
    ) -> None:
        spec = founding.run_file.spec
        self.clock = RoundClock(spec.chain)
        self.boards = Boards(client, players, store)
        self.events: list[EventLine] = []
        self.picture: Picture | None = None
        self._founding = founding
        self._players = players
        self._reader = reader
        self._names = Names(players)
        self._games = GameStory(self._names, spec.inner)
        self._last_epoch = last_epoch
        self._chain = RunChain(contracts=founding.contracts, events=reader, clock=self.clock)
        self._settlements = Settlements(self._chain, miners_bps=spec.chain.miners_bps)
        self._restarts: dict[str, int] = {}

    @property
    def last_round(self) -> Round:
        """The last round of the devnet."""
        return self.clock.last_round(self._last_epoch)

    def note(self, kind: str, text: str) -> None:
        """Adds a line of our own."""
        self.events.append(EventLine(kind=kind, text=text))

    async def look_at_chain(self) -> None:
        """Catches up with the chain; a silent node is asked again the next time."""
        try:
            update = await self._chain.poll()
            picture = await take_picture(self._chain, self._settlements)
        except Retryable as error:
            _LOG.warning("%s", error)
            return
        self.picture = picture
        accepted = {
            event.round: await self._held(event.round)
            for event in update.events
            if isinstance(event, RootFinalised)
        }
        self.events += tell(
            self._in_time(update.events), self._names, accepted=accepted, games=self._games
        )

    async def look_at_boards(self, *, everything: bool = False) -> None:
        """Catches up with the nodes' boards."""
        if self.picture is not None:
            newest = Round(min(self.picture.round, self.last_round + 1))
            await self.boards.look(newest, everything=everything)

    def notice_restarts(self, statuses: Sequence[ProcessStatus]) -> None:
        """Tells of processes that crashed and were started again."""
        for status in statuses:
            if status.restarts > self._restarts.get(status.name, 0):
                self._restarts[status.name] = status.restarts
                self.note("warning", f"{status.name} crashed and was started again")

    def is_over(self) -> bool:
        """Whether every epoch ended and the honest miners have all that they earned."""
        picture = self.picture
        if picture is None:
            return False
        ended = picture.settled | picture.void
        if any(epoch not in ended for epoch in range(1, self._last_epoch + 1)):
            return False
        return not self.unclaimed() and not self._disputed()

    def is_late(self) -> bool:
        """Whether the run should have been over long ago."""
        limit = self.clock.settlement_void_at(self._last_epoch) + _PATIENCE_S
        if self._disputed():
            chain = self.clock.params
            votes = chain.vote_commit_blocks + chain.vote_reveal_blocks
            limit += (chain.clock_blocks + votes) * chain.block_s
        return self.picture is not None and self.picture.time > limit

    def _disputed(self) -> bool:
        """Whether a game about a round of the devnet is open, or a fine of one is due."""
        picture = self.picture
        return picture is not None and any(
            trial.outcome is GameOutcome.NONE or trial.unfined
            for trial in picture.trials
            if trial.round <= self.last_round
        )

    def unclaimed(self) -> list[Player]:
        """Honest miners that were granted more than they claimed."""
        picture = self.picture
        if picture is None:
            return []
        return [
            player
            for player in self._players
            if player.part is Part.MINER
            and player.is_honest
            and picture.earned.get(player.account, 0) > picture.claimed.get(player.account, 0)
        ]

    def worked(self, player: Player, round_: Round) -> bool:
        """Whether a miner committed or a validator attested in a round; hunters owe no round anything."""
        match player.part:
            case Part.MINER:
                commits = self._reader.events(Committed, round_=round_)
                return any(event.operator == player.operator for event in commits)
            case Part.VALIDATOR:
                return bool(self._reader.events(Attested, round_=round_, account=player.account))
            case Part.HUNTER:
                return True

    async def read_gas(self, connection: Connection) -> list[tuple[str, int]]:
        """(function, gas) of every transaction to the run's contracts so far."""
        run_file = self._founding.run_file
        meter = GasMeter(connection, run_file.contracts, from_block=run_file.deploy_block)
        await meter.read_upto(self._reader.complete_upto)
        return meter.used

    async def take_books(self) -> Books:
        """The run's books as of the block that was read last."""
        return await take_books(self._founding.contracts, self._reader)

    async def _held(self, round_: Round) -> tuple[int, int]:
        """Submissions that a majority holds, and committed ones."""
        facts = await self._chain.round_facts(round_)
        return sum(facts.tally().bits), len(facts.commits)

    def _in_time(self, events: Sequence[Event]) -> list[Event]:
        """Without what belongs to rounds and epochs after the devnet's last."""
        return [
            event
            for event in events
            if getattr(event, "epoch", 0) <= self._last_epoch
            and getattr(event, "round", 0) <= self.last_round
        ]


async def open_reader(connection: Connection, founding: Founding, folder: Path) -> EventReader:
    """The onlooker's own event reader."""
    return await EventReader.open(
        folder / "onlooker.db",
        connection,
        founding.run_file.contracts,
        from_block=founding.run_file.deploy_block,
    )
