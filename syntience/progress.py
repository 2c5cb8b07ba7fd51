"""A bar on a terminal for work on data that takes minutes; elsewhere nothing is shown."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from syntience.documents import Documents

_UNITS = {"train the tokenizer": "documents", "encode": "tokens"}
_READING = frozenset(_UNITS)
"""Stages that read the documents through: how far they are is told by the documents."""


class ProgressBar:
    """A bar for each stage; `watch` is called as the work goes on. Use as a context manager.

    Args:
        console: where; only a terminal shows anything.
        documents: what is being read, if anything is.
    """

    def __init__(self, console: Console, documents: Documents | None = None) -> None:
        self._documents = documents
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._stages: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def watch(self, stage: str, done: int, total: int | None) -> None:
        """Shows how far a stage has come; the stages before it are done."""
        if stage not in self._stages:
            for earlier in self._stages.values():
                self._bars.update(earlier, total=1, completed=1)
            self._stages[stage] = self._bars.add_task(stage, total=None, count="")
        completed = done
        if stage in _READING and self._documents is not None:
            completed, total = self._documents.position, self._documents.size
        self._bars.update(
            self._stages[stage],
            completed=completed,
            total=total,
            count=f"{done:,} {_UNITS.get(stage, 'samples')}",
        )
