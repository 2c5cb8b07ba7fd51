from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.computation import SignAverage, coin_deviation

GAMMA = 0.95


def average_of(signs: list[bool], gamma: float = GAMMA) -> SignAverage:
    average = SignAverage()
    for sign in signs:
        average = average.after(sign, gamma=gamma)
    return average


def test_average__three_wins__is_one_minus_gamma_cubed() -> None:
    average = average_of([True, True, True])
    assert average.mean == pytest.approx(1 - GAMMA**3, abs=1e-15)
    assert average.count == 3


def test_average__hand_worked_mix__is_the_recursion() -> None:
    # .05, then .95 * .05 - .05 = -.0025, then .95 * -.0025 + .05 = .047625
    assert average_of([True, False, True]).mean == pytest.approx(0.047625, abs=1e-15)


@pytest.mark.parametrize("gamma", [0.5, 0.95])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_deviation__all_coin_sequences__is_their_root_mean_square(gamma: float, count: int) -> None:
    means = [
        average_of(list(signs), gamma).mean
        for signs in itertools.product([False, True], repeat=count)
    ]
    exact = math.sqrt(sum(mean**2 for mean in means) / len(means))
    assert coin_deviation(count, gamma=gamma) == pytest.approx(exact, rel=1e-12)


def test_above_luck__never_evaluated__is_zero() -> None:
    assert SignAverage().above_luck(gamma=GAMMA, z=0.0) == 0.0


def test_above_luck__default_margin__needs_two_of_two_and_not_two_of_three() -> None:
    def paid(*signs: bool) -> bool:
        return average_of(list(signs)).above_luck(gamma=GAMMA, z=1.25) > 0

    assert not paid(True)
    assert paid(True, True)
    assert paid(True, True, True)
    assert not any(paid(*signs) for signs in set(itertools.permutations([True, True, False])))
    assert all(paid(*signs) for signs in set(itertools.permutations([True] * 5 + [False])))


def test_above_luck__free_rider_for_fourteen_rounds__gets_under_two_per_cent_of_honest_pay() -> (
    None
):
    # All coin sequences of 14 rounds, against an honest peer that always wins; pay goes by the square.
    z = 1.25
    paid = [
        average_of(list(signs)).above_luck(gamma=GAMMA, z=z) ** 2
        for signs in itertools.product([False, True], repeat=14)
    ]
    honest = average_of([True] * 14).above_luck(gamma=GAMMA, z=z) ** 2
    assert sum(paid) / len(paid) < 0.02 * honest


@given(st.lists(st.booleans(), max_size=60), st.floats(0.01, 0.99), st.floats(0, 5))
def test_average__any_signs__stays_within_one_and_luck_only_lowers_it(
    signs: list[bool], gamma: float, z: float
) -> None:
    average = average_of(signs, gamma)
    assert -1 <= average.mean <= 1
    assert 0 <= average.above_luck(gamma=gamma, z=z) <= max(0.0, average.mean)
