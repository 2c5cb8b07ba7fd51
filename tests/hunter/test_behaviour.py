"""Whom a hunter takes to a game, and which node of a list it disputes."""

from __future__ import annotations

import pytest

from hunter.cheats import CHEATS, behaviour_named
from protocol.errors import OperatorError
from tests.specs import some_hash

A, B, C = (some_hash(name) for name in "abc")


def test_honest__told_to_or_not__accuses_only_what_differs() -> None:
    silent, loud = behaviour_named("honest"), behaviour_named("honest", disputes=True, audits=3)
    assert not silent.accuses(matches=False, games=0)
    assert loud.accuses(matches=False, games=7)
    assert not loud.accuses(matches=True, games=0)
    assert (silent.audits, loud.audits) == (1, 3)


def test_honest__picks__the_first_difference_or_nothing() -> None:
    honest = behaviour_named("honest")
    assert honest.pick([A, B, C], [A, C, B]) == 1
    assert honest.pick([A, B], [A, B]) is None


def test_false_accuser__accuses__one_innocent_and_picks_what_it_agrees_with() -> None:
    liar = behaviour_named("false-game")
    assert liar.accuses(matches=True, games=0)
    assert not liar.accuses(matches=True, games=1)
    assert not liar.accuses(matches=False, games=0)
    assert liar.pick([A, B, C], [A, B, C]) == 1


def test_behaviour_named__known_and_unknown__are_told_apart() -> None:
    assert [behaviour_named(kind).name for kind in CHEATS] == list(CHEATS)
    with pytest.raises(OperatorError, match="choose one of honest, false-game"):
        behaviour_named("saint")
