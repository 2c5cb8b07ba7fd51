from __future__ import annotations

import math
from dataclasses import replace

import pytest

from protocol.errors import Rejected
from scoring.evaluation import Evaluation
from scoring.rules import Rules
from tests.scoring.peers import RULES, evaluated, peer
from tests.specs import SPEC


def test_scores__are_the_loss_before_less_the_loss_after() -> None:
    found = Evaluation(
        miner=peer(0), rand_before=5.0, rand_after=4.5, own_before=6.0, own_after=5.25
    )
    assert (found.rand_score, found.own_score) == (0.5, 0.75)
    assert found.relative_score == 0.1
    assert found.own_beats_random


def test_scores__tie__does_not_count_as_own_work() -> None:
    assert not evaluated(peer(0), rand=0.5, own=0.5).own_beats_random


@pytest.mark.parametrize("after", [math.inf, math.nan, -math.inf])
def test_scores__loss_that_is_no_number__is_the_worst(after: float) -> None:
    found = replace(evaluated(peer(0), rand=0.5), rand_after=after)
    assert found.rand_score == -math.inf
    assert replace(found, own_after=after).own_beats_random is False


def test_rules__of_a_spec__are_its_decimals() -> None:
    rules = Rules.of(replace(SPEC.scoring, mu_margin="1.25"))
    assert rules == RULES


@pytest.mark.parametrize(
    "change",
    [
        {"mu_gamma": 1.0},
        {"phi": 0.0},
        {"mu_margin": -1.0},
        {"rating_sigma": 0.0},
        {"rating_beta": 0.0},
        {"rating_tau": 0.0},
        {"mu_margin": math.nan},
    ],
)
def test_rules__senseless_numbers__are_refused(change: dict[str, float]) -> None:
    with pytest.raises(Rejected):
        replace(RULES, **change)
