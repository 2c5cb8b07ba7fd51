"""Ratings against OpenSkill, and against its formulas (Weng and Lin 2011, algorithm 4) written out."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from openskill.models import PlackettLuce

from protocol.ids import Address
from scoring.rating import Rating, exponential, improvement_floor, loss_rating, prior, rate
from tests.scoring.peers import RULES, peer

PRIOR = prior(RULES)


def plackett_luce(before: list[Rating], results: list[float]) -> list[Rating]:
    """Weng-Lin with sigma inflated by tau, kappa 0.0001 and gamma = sigma_i / c."""
    sigmas = [math.sqrt(r.sigma**2 + RULES.rating_tau**2) for r in before]
    c = math.sqrt(sum(s**2 + RULES.rating_beta**2 for s in sigmas))
    ranks = [sum(other > result for other in results) for result in results]
    strength = [math.exp(r.mu / c) for r in before]
    players = range(len(before))
    behind = [sum(strength[s] for s in players if ranks[s] >= ranks[q]) for q in players]
    ties = [sum(ranks[s] == ranks[q] for s in players) for q in players]
    after = []
    for i in players:
        ahead = [q for q in players if ranks[q] <= ranks[i]]
        p = {q: strength[i] / behind[q] for q in ahead}
        omega = sum(((q == i) - p[q]) / ties[q] for q in ahead) * sigmas[i] ** 2 / c
        delta = sum(p[q] * (1 - p[q]) / ties[q] for q in ahead) * sigmas[i] ** 2 / c**2
        shrink = math.sqrt(max(1 - sigmas[i] / c * delta, 0.0001))
        after.append(Rating(mu=before[i].mu + omega, sigma=sigmas[i] * shrink))
    return after


def is_strict(scores: Collection[float]) -> bool:
    """Whether nobody draws, the null player included."""
    results = [*scores, improvement_floor(scores)]
    return len(set(results)) == len(results)


def assert_close(found: Rating, expected: Rating) -> None:
    assert found.mu == pytest.approx(expected.mu, rel=1e-12)
    assert found.sigma == pytest.approx(expected.sigma, rel=1e-12)


def test_rate__two_fresh_peers__matches_hand_worked_values() -> None:
    # Three players with sigma^2 = 69.4544, c^2 = 3 (69.4544 + 49); each p is 1/3, 1/2, 1.
    ratings, null = rate({peer(0): 0.2, peer(1): 0.1}, {}, PRIOR, RULES)
    variance = (25 / 3) ** 2 + 0.01
    c = math.sqrt(3 * (variance + 49))
    step = variance / c
    assert ratings[peer(0)].mu == pytest.approx(25 + step * (2 / 3), rel=1e-12)
    assert ratings[peer(1)].mu == pytest.approx(25 + step * (1 - 1 / 3 - 1 / 2), rel=1e-12)
    assert null.mu == pytest.approx(25 + step * (1 - 1 / 3 - 1 / 2 - 1), rel=1e-12)
    assert ratings[peer(0)].mu == pytest.approx(27.457, abs=1e-3)


numbers = st.floats(-1, 1)
beliefs = st.builds(
    lambda mu, sigma: Rating(mu=mu, sigma=sigma), st.floats(-60, 90), st.floats(1, 9)
)


@settings(deadline=None)
@given(st.lists(st.tuples(numbers, beliefs), min_size=1, max_size=9), beliefs)
def test_rate__any_match__equals_the_formulas(
    field: list[tuple[float, Rating]], null: Rating
) -> None:
    scores = {peer(i): score for i, (score, _) in enumerate(field)}
    assume(is_strict(scores.values()))
    ratings = {peer(i): rating for i, (_, rating) in enumerate(field)}
    played, null_after = rate(scores, ratings, null, RULES)
    results = [*scores.values(), improvement_floor(scores.values())]
    expected = plackett_luce([*ratings.values(), null], results)
    for miner, rating in zip(scores, expected, strict=False):
        assert_close(played[miner], rating)
    assert_close(null_after, expected[-1])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(numbers, beliefs), min_size=1, max_size=40), beliefs)
def test_rate__any_match_without_draws__equals_openskill(
    field: list[tuple[float, Rating]], null: Rating
) -> None:
    scores = {peer(i): score for i, (score, _) in enumerate(field)}
    assume(is_strict(scores.values()))
    ratings = {peer(i): rating for i, (_, rating) in enumerate(field)}
    played, null_after = rate(scores, ratings, null, RULES)
    results = [*scores.values(), improvement_floor(scores.values())]
    ranks = [float(sum(other > result for other in results)) for result in results]
    model = PlackettLuce(
        mu=RULES.rating_mu, sigma=RULES.rating_sigma, beta=RULES.rating_beta, tau=RULES.rating_tau
    )
    teams = [[model.rating(mu=each.mu, sigma=each.sigma)] for each in (*ratings.values(), null)]
    expected = [team[0] for team in model.rate(teams, ranks=ranks)]
    for miner, rating in zip(scores, expected, strict=False):
        assert_close(played[miner], Rating(mu=rating.mu, sigma=rating.sigma))
    assert_close(null_after, Rating(mu=expected[-1].mu, sigma=expected[-1].sigma))


@pytest.mark.parametrize("tied", [2, 3, 4])
def test_rate__equals_that_draw__move_by_the_mean_over_the_orders(tied: int) -> None:
    above, below = {peer(90): 0.2}, {peer(91): 0.05}
    scores = {**above, **{peer(i): 0.1 for i in range(tied)}, **below}
    played, null = rate(scores, {}, PRIOR, RULES)
    orders = []
    for order in permutations(range(tied)):
        broken = {peer(i): 0.1 - 1e-6 * place for place, i in enumerate(order)}
        orders.append(rate({**above, **broken, **below}, {}, PRIOR, RULES))
    for miner in scores:
        mean = sum(each[miner].mu for each, _ in orders) / len(orders)
        assert played[miner].mu == pytest.approx(mean, rel=1e-12)
    assert null.mu == pytest.approx(orders[0][1].mu, rel=1e-12)


def test_rate__another_hands_in_the_same_update__costs_its_maker_no_rating() -> None:
    ratings: dict[Address, Rating] = {}
    null = PRIOR
    for round_ in range(100):
        scores = {peer(i): 0.05 + 0.01 * ((i + round_) % 5) for i in range(5)}
        scores |= {peer(10): scores[peer(0)], peer(11): scores[peer(0)]}
        played, null = rate(scores, ratings, null, RULES)
        ratings |= played
    assert ratings[peer(0)].ordinal > ratings[peer(1)].ordinal - 1
    assert ratings[peer(0)].ordinal == pytest.approx(ratings[peer(10)].ordinal)


@given(st.floats(-500, 500))
def test_exponential__any_exponent__is_the_c_librarys_but_for_the_last_bits(x: float) -> None:
    assert exponential(x) == pytest.approx(math.exp(x), rel=5e-16)


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 40), numbers, min_size=1, max_size=8), st.data())
def test_rate__order_of_the_peers__does_not_change_a_bit(
    field: dict[int, float], data: st.DataObject
) -> None:
    scores = {peer(i): score for i, score in field.items()}
    shuffled = dict(data.draw(st.permutations(list(scores.items()))))
    assert rate(scores, {}, PRIOR, RULES) == rate(shuffled, {}, PRIOR, RULES)


def test_rate__equal_scores__are_a_draw() -> None:
    played, _ = rate({peer(0): 0.1, peer(1): 0.1, peer(2): 0.3}, {}, PRIOR, RULES)
    assert played[peer(0)] == played[peer(1)]
    assert played[peer(0)].mu < played[peer(2)].mu


def test_rate__broken_update__comes_last() -> None:
    played, null = rate({peer(0): -math.inf, peer(1): 0.1}, {}, PRIOR, RULES)
    assert played[peer(0)].mu < null.mu < played[peer(1)].mu


def test_rate__nobody__leaves_the_null_player_alone() -> None:
    assert rate({}, {}, PRIOR, RULES) == ({}, PRIOR)


def test_rate__a_lone_peer__plays_against_doing_nothing() -> None:
    played, null = rate({peer(0): 0.1}, {}, PRIOR, RULES)
    assert played[peer(0)].mu > 25 > null.mu


def test_floor__tenth_of_the_lower_median_of_gains__ignores_losses() -> None:
    assert improvement_floor([0.4, 0.2, 0.1, 0.3, -5.0]) == pytest.approx(0.02)
    assert improvement_floor([-1.0, 0.0]) == 0.0
    assert improvement_floor([]) == 0.0


@given(st.lists(numbers))
def test_floor__any_scores__at_least_half_of_the_gains_lie_above(scores: list[float]) -> None:
    gains = [score for score in scores if score > 0]
    assert 2 * sum(gain > improvement_floor(scores) for gain in gains) >= len(gains)


def test_loss_rating__is_the_ordinal_with_a_foothold_above_doing_nothing() -> None:
    null = Rating(mu=10.0, sigma=8.0)
    assert loss_rating(Rating(mu=40.0, sigma=5.0), null, RULES) == 25.0
    assert loss_rating(Rating(mu=22.0, sigma=8.0), null, RULES) == pytest.approx(25 / 12)
    assert loss_rating(null, null, RULES) == 0.0
    assert loss_rating(Rating(mu=9.0, sigma=8.0), null, RULES) == 0.0


def test_loss_rating__better_than_useless_but_not_than_nothing__is_zero() -> None:
    scores: dict[Address, float] = {peer(0): -0.001, peer(1): -0.002}
    ratings: dict[Address, Rating] = {}
    null = PRIOR
    for _ in range(200):
        ratings, null = rate(scores, ratings, null, RULES)
    assert loss_rating(ratings[peer(0)], null, RULES) == 0.0
