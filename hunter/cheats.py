"""Hunters that accuse the innocent, for devnets and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hunter.behaviour import Behaviour
from protocol.errors import OperatorError
from protocol.ids import Hash32


class FalseAccuser(Behaviour):
    """Opens one game about work that it did reproduce, and disputes some step of it."""

    name = "false-game"

    def __init__(self) -> None:
        super().__init__(disputes=True)

    def accuses(self, *, matches: bool, games: int) -> bool:
        """The first innocent that comes along."""
        return matches and games == 0

    def pick(self, mine: Sequence[Hash32], posted: Sequence[Hash32]) -> int | None:
        """The second node, whatever it is: the start of a trace is beyond dispute."""
        return super().pick(mine, posted) or 1


_KINDS: dict[str, Callable[[], Behaviour]] = {"false-game": FalseAccuser}

CHEATS = tuple(_KINDS)
"""The names of all ways to cheat."""


def behaviour_named(kind: str, *, disputes: bool = False, audits: int = 1) -> Behaviour:
    """The behaviour with this name; raises `OperatorError` for an unknown one."""
    if kind == Behaviour.name:
        return Behaviour(disputes=disputes, audits=audits)
    try:
        return _KINDS[kind]()
    except KeyError:
        raise OperatorError(
            f"unknown behaviour {kind!r}", f"choose one of {', '.join((Behaviour.name, *_KINDS))}"
        ) from None
