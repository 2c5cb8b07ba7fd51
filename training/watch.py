"""How long work on data tells of its progress."""

from __future__ import annotations

from collections.abc import Callable

Watch = Callable[[str, int, int | None], None]
"""Told what is being done, how much is done, and of how much in all where that is known."""


def unwatched(stage: str, done: int, total: int | None) -> None:
    """Nobody looks on."""
