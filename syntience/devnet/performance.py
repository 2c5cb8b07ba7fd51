"""From the first process to the last claim: looking on, showing, and noticing what went wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ledger.connection import Connection
from syntience.anvil import Anvil
from syntience.devnet.curtain import raise_curtain
from syntience.devnet.disturber import Disturber
from syntience.devnet.players import Player
from syntience.devnet.screen import view_of
from syntience.devnet.settings import DevnetSettings
from syntience.devnet.stage import Stage
from syntience.devnet.watch import Onlooker
from syntience.display import Display
from syntience.files import write_atomically
from syntience.supervisor import Supervisor
from syntience.table import DevnetView, to_svg

_TICK_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """A run under way. `began` is when the devnet was started, on the monotonic clock; `disturber` kills."""

    settings: DevnetSettings
    stage: Stage
    players: Sequence[Player]
    onlooker: Onlooker
    supervisor: Supervisor
    anvil: Anvil
    connection: Connection
    display: Display
    began: float
    disturber: Disturber | None

    async def attend(self) -> None:
        """Looks on until the run is over; raises what makes it impossible."""
        async with asyncio.TaskGroup() as group:
            guards = [
                group.create_task(self._raise_on_failure()),
                group.create_task(self._raise_on_end()),
            ]
            await self._open()
            guards.append(group.create_task(self._read_boards()))
            if self.disturber is not None:
                guards.append(group.create_task(self.disturber.disturb()))
            while not (self.onlooker.is_over() or self.onlooker.is_late()):
                await self._look()
                await asyncio.sleep(_TICK_S)
            for guard in guards:
                guard.cancel()
        await self.onlooker.look_at_boards(everything=True)
        view = self._view()
        self.display.update(view)
        if self.settings.svg is not None:
            told = tuple(event for event in view.events if event.kind != "info")
            write_atomically(self.settings.svg, to_svg(replace(view, events=told)).encode())

    async def _open(self) -> None:
        in_time = await raise_curtain(
            self.connection,
            self.onlooker.clock,
            self.onlooker.boards,
            self.players,
            meanwhile=self._look,
        )
        if not in_time:
            self.onlooker.note("warning", "genesis came before every process was ready")

    async def _look(self) -> None:
        await self.onlooker.look_at_chain()
        self.onlooker.notice_restarts(self.supervisor.statuses())
        self.display.update(self._view())

    async def _read_boards(self) -> None:
        while True:
            await self.onlooker.look_at_boards()
            await asyncio.sleep(_TICK_S)

    def _view(self) -> DevnetView:
        return view_of(
            self.settings,
            self.players,
            self.onlooker,
            self.supervisor.statuses(),
            first_loss=self.stage.first_loss,
            elapsed_s=time.monotonic() - self.began,
        )

    async def _raise_on_failure(self) -> None:
        raise await self.supervisor.wait_for_failure()

    async def _raise_on_end(self) -> None:
        await self.anvil.wait()
        raise self.anvil.failure()
