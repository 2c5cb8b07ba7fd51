"""Validators that cheat, each a real alternative validator, for devnets and tests.

They run the same process as an honest validator, against real contracts; only what they post or
vote differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from protocol.errors import OperatorError
from protocol.ids import Address, Units
from protocol.settlement import MAX_MINERS, SettlementLeaf, SettlementTree
from validator.behaviour import Behaviour

_EXTRA = 10
"""An overpayer takes one part in so many more than it earned."""


class Overpayer(Behaviour):
    """Posts settlements in which its own leaf is 10 % too large, at another validator's expense.

    It opens every leaf that is challenged, also the false one, and leaves a struck epoch to others.
    """

    name = "overpay"
    is_hasty = True

    def settlement(self, right: SettlementTree, me: Address) -> SettlementTree:
        """The right one, but for its own leaf and the one that pays for it."""
        leaves = [leaf for leaf in right.leaves.values() if leaf.index >= MAX_MINERS]
        own = next((leaf for leaf in leaves if leaf.account == me), None)
        others = [leaf for leaf in leaves if leaf.account != me]
        if own is None or not others:
            return right
        richest = max(others, key=lambda leaf: leaf.amount)
        extra = min(own.amount // _EXTRA, richest.amount)
        changed = {leaf.index: leaf for leaf in (_paid(own, extra), _paid(richest, -extra))}
        return SettlementTree(right.epoch, {**right.leaves, **changed})


class FalseVoter(Behaviour):
    """Recomputes nothing that it would not deny: votes the opposite of what it found."""

    name = "false-vote"

    def vote(self, *, guilty: bool) -> bool:
        """The opposite of the truth."""
        return not guilty


_KINDS: dict[str, Callable[[], Behaviour]] = {
    "honest": Behaviour,
    "overpay": Overpayer,
    "false-vote": FalseVoter,
}

CHEATS = tuple(kind for kind in _KINDS if kind != "honest")
"""The names of all ways to cheat."""


def behaviour_named(kind: str) -> Behaviour:
    """The behaviour with this name; raises `OperatorError` for an unknown one."""
    try:
        return _KINDS[kind]()
    except KeyError:
        raise OperatorError(
            f"unknown behaviour {kind!r}", f"choose one of {', '.join(_KINDS)}"
        ) from None


def _paid(leaf: SettlementLeaf, change: int) -> SettlementLeaf:
    return replace(
        leaf,
        amount=Units(leaf.amount + change),
        cumulative=Units(leaf.cumulative + change),
    )
