"""Killing honest processes, and which kills the run's promise counts."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from types import SimpleNamespace
from typing import cast

from protocol.ids import Round
from syntience.devnet.disturber import Disturber, Kill, lasting
from syntience.supervisor import ProcessState, ProcessStatus, Supervisor
from tests.syntience.devnet.stage import CHEAT, FIRST, HONEST, HUNTER, PLAYERS, SECOND


class FakeSupervisor:
    """Remembers whom it was to signal; `down` are not running just now."""

    def __init__(self, down: str = "") -> None:
        self.signals: list[tuple[str, signal.Signals]] = []
        self._down = down

    def status(self, name: str) -> ProcessStatus:
        state = ProcessState.WAITING if name == self._down else ProcessState.RUNNING
        return ProcessStatus(name=name, state=state)

    def signal(self, name: str, number: signal.Signals) -> None:
        self.signals.append((name, number))


async def disturbed(supervisor: FakeSupervisor, *, seed: int = 1) -> list[Kill]:
    disturber = Disturber(
        cast(Supervisor, supervisor),
        PLAYERS,
        every_s=0.001,
        seed=seed,
        round_now=lambda: Round(2),
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await disturber.disturb()
    return disturber.kills


async def test_disturb__a_while__kills_every_honest_process_and_no_cheat() -> None:
    supervisor = FakeSupervisor()
    kills = await disturbed(supervisor)
    names = {name for name, _ in supervisor.signals}
    assert names == {player.name for player in (HONEST, FIRST, SECOND, HUNTER)}
    assert {number for _, number in supervisor.signals} == {signal.SIGKILL}
    assert [kill.player.name for kill in kills] == [name for name, _ in supervisor.signals]
    assert {kill.round for kill in kills} == {2}


async def test_disturb__the_same_seed__kills_in_the_same_order() -> None:
    first, second, other = [await disturbed(FakeSupervisor(), seed=seed) for seed in (1, 1, 2)]
    count = min(len(first), len(second), len(other))
    assert count > 8
    assert first[:count] == second[:count] != other[:count]


async def test_disturb__a_process_that_is_down__is_left_alone() -> None:
    supervisor = FakeSupervisor(down=HONEST.name)
    assert HONEST not in [kill.player for kill in await disturbed(supervisor)]


def test_lasting__kills__counts_those_whose_next_round_was_undisturbed() -> None:
    def kill(player: object, round_: int) -> Kill:
        return Kill(player=cast(SimpleNamespace, player), round=Round(round_))  # type: ignore[arg-type]

    kills = [
        kill(FIRST, 0),  # before round 1
        kill(FIRST, 1),  # killed again in the next round
        kill(HONEST, 1),
        kill(FIRST, 2),
        kill(CHEAT, 4),  # the last round: there is no next one
    ]
    assert lasting(kills, last=Round(4)) == [kills[2], kills[3]]
