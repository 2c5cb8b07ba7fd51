"""Shows a devnet's view as it changes: the live table in a terminal, a line per change elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live

from syntience.table import DevnetView, progress_line, render

_REFRESHES_PER_S = 4


class Display:
    """Use as ``with Display(Console()) as display: display.update(view)``. The last table stays on the screen."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = (
            Live(console=console, refresh_per_second=_REFRESHES_PER_S)
            if console.is_terminal
            else None
        )
        self._events_shown = 0
        self._round_shown: int | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def update(self, view: DevnetView) -> None:
        """Shows a newer view. `view.events` must hold all events so far."""
        if self._live:
            self._live.update(render(view))
            return
        for event in view.events[self._events_shown :]:
            self._print(f"{event.kind}: {event.text}")
        self._events_shown = len(view.events)
        if view.round != self._round_shown:
            self._round_shown = view.round
            self._print(progress_line(view))

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)
