"""Kills honest processes in the middle of whatever they do, to show that nothing depends on their living.

SIGKILL gives no process a chance to tidy up; the supervisor starts it again, and by the next round
it has to be back at work.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from protocol.beacon import Draw, seed_from
from protocol.ids import ZERO32, Round
from syntience.devnet.players import Player
from syntience.supervisor import ProcessState, Supervisor


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A process that was killed, and the round that was under way."""

    player: Player
    round: Round


class Disturber:
    """Kills one honest player after the other, in an order and at moments that the seed fixes.

    Args:
        every_s: mean seconds between two kills.
        round_now: the round under way.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        players: Sequence[Player],
        *,
        every_s: float,
        seed: int,
        round_now: Callable[[], Round],
    ) -> None:
        self.kills: list[Kill] = []
        self._supervisor = supervisor
        self._victims = [player for player in players if player.is_honest]
        self._every_s = every_s
        self._draw = Draw(seed_from(ZERO32, "kill", seed))
        self._round_now = round_now

    async def disturb(self) -> None:
        """Goes on until cancelled."""
        while True:
            await asyncio.sleep(self._every_s * (0.5 + self._draw.unit()))
            victim = self._victims[self._draw.below(len(self._victims))]
            if self._supervisor.status(victim.name).state is ProcessState.RUNNING:
                self._supervisor.signal(victim.name, signal.SIGKILL)
                self.kills.append(Kill(player=victim, round=self._round_now()))


def lasting(kills: Sequence[Kill], *, last: Round) -> list[Kill]:
    """The kills whose next round is one of the run and was left undisturbed."""
    return [
        kill
        for number, kill in enumerate(kills)
        if 1 <= kill.round < last
        and not any(
            later.player == kill.player and later.round <= kill.round + 1
            for later in kills[number + 1 :]
        )
    ]
