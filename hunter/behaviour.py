"""Which work a hunter takes to a game. The honest way is here; other ways are its subclasses."""

from __future__ import annotations

from collections.abc import Sequence

from node.games import first_difference
from protocol.ids import Hash32


class Behaviour:
    """The honest hunter: accuses whoever's work it can't reproduce, if it was told to open games.

    Args:
        disputes: whether to open games at all.
        audits: how many accepted miners to recompute each round.
    """

    name = "honest"

    def __init__(self, *, disputes: bool = False, audits: int = 1) -> None:
        self.disputes = disputes
        self.audits = audits

    def accuses(self, *, matches: bool, games: int) -> bool:
        """Whether to open a game about audited work.

        Args:
            matches: whether its recomputation gave the same bits.
            games: how many games this hunter has opened so far.
        """
        return self.disputes and not matches

    def pick(self, mine: Sequence[Hash32], posted: Sequence[Hash32]) -> int | None:
        """Which node of a posted list to dispute: the first that differs; None if none does."""
        return first_difference(mine, posted)
