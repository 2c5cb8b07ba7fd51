"""What dishonest validators reveal."""

from __future__ import annotations

import pytest

from protocol.errors import OperatorError
from protocol.ids import Slot
from scoring.weights import FULL_WEIGHT
from syntience.lab.judges import JUDGES, Ballot, judge_named
from tests.scoring.peers import peer

SLOTS = {Slot(0): peer(0), Slot(1): peer(1), Slot(2): peer(2)}
BALLOT = Ballot(
    honest=(40_000, 25_535, 0), slots=SLOTS, friends=frozenset({peer(2)}), last=(20_000, 20_000, 0)
)


@pytest.mark.parametrize("kind", JUDGES)
def test_judge__any_kind__reveals_a_whole_vector(kind: str) -> None:
    assert sum(judge_named(kind)(BALLOT)) == FULL_WEIGHT


def test_honest__says_what_its_book_says() -> None:
    assert judge_named("honest")(BALLOT) == BALLOT.honest


def test_liar__gives_its_friend_half_and_keeps_the_others_proportions() -> None:
    first, second, friend = judge_named("liar")(BALLOT)
    assert friend == pytest.approx(FULL_WEIGHT / 2, abs=1)
    assert first / second == pytest.approx(40_000 / 25_535, rel=1e-3)


def test_clique__gives_nothing_to_anybody_else() -> None:
    assert judge_named("clique")(BALLOT) == (0, 0, FULL_WEIGHT)


def test_weight_copier__repeats_the_last_consensus() -> None:
    first, second, third = judge_named("weight-copier")(BALLOT)
    assert (third, abs(first - second)) == (0, 1)


def test_judge__unknown__is_told_the_choices() -> None:
    with pytest.raises(OperatorError, match="weight-copier"):
        judge_named("saint")
