"""A running node's curves as a TensorBoard event file that grows with them."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from node.curves import Curves, EvaluationRow, TrainingRow
from protocol.ids import Round
from syntience.curves.tensorboard import Event, encoded, events_of, write_events

EVERY_S = 2.0
_ROUNDS_BACK = 8
"""So many rounds after its training a miner's round may still be judged, or a reorganised one done again."""

logger = logging.getLogger(__name__)


class Mirror:
    """One node's event file. It is written whole at first, because the one before may end in a torn record.

    Args:
        curves: the node's.
        path: of the file; see `event_file`.

    Raises:
        UnwritableOutput: it can't be written.
    """

    def __init__(self, curves: Curves, path: Path) -> None:
        self._curves = curves
        self._path = path
        self._since = Round(1)
        write_events(path, events := self._recent())
        self._written = set(events)

    def catch_up(self) -> None:
        """Appends what is new. What can't be written is left out: a node works on without its pictures."""
        recent = self._recent()
        fresh = [event for event in recent if event not in self._written]
        if fresh:
            try:
                with self._path.open("ab") as file:
                    file.write(encoded(fresh))
            except OSError as error:
                logger.warning("can't write %s (%s)", self._path, error.strerror or error)
        self._written = set(recent)

    def _recent(self) -> list[Event]:
        """The events of the rounds that may still change, and of all since they were looked at last."""
        rows: list[TrainingRow | EvaluationRow] = [
            *self._curves.training(self._since),
            *self._curves.evaluation(self._since),
        ]
        newest = max((row.round for row in rows), default=self._since)
        self._since = Round(max(1, newest - _ROUNDS_BACK))
        return [event for row in rows for event in events_of(row)]


async def keep_mirror(mirror: Mirror) -> None:
    """Keeps the file up to date until cancelled."""
    try:
        while True:
            await asyncio.to_thread(mirror.catch_up)
            await asyncio.sleep(EVERY_S)
    finally:
        mirror.catch_up()
