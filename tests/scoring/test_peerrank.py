"""PeerRank: the paper's values and axioms, and liars apart from honest validators."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Slot, Units, to_address
from scoring.consensus import Reveal
from scoring.errors import Contradiction
from scoring.peerrank import Grades, Trust, peer_rank, validator_trust

MIXED = [[0.8, 0.7, 0.9], [0.6, 0.5, 0.2], [0.3, 0.4, 0.9]]
HALVES = [[0.5] * 3] * 3
HONEST, LIARS, MINERS = 7, 3, 20


def squares(least: float = 0.0) -> st.SearchStrategy[list[list[float]]]:
    grade = st.floats(least, 1, allow_subnormal=False)
    return st.integers(1, 6).flatmap(
        lambda size: st.lists(
            st.lists(grade, min_size=size, max_size=size), min_size=size, max_size=size
        )
    )


def slow_peer_rank(grades: Grades, alpha: float, beta: float) -> list[float]:
    """The formula as it is printed, for a long time."""
    size = len(grades)
    x = [sum(grades[i]) / size for i in range(size)]
    for _ in range(2_000):
        x = [
            (1 - alpha - beta) * x[i]
            + (alpha * sum(x[j] * grades[i][j] for j in range(size)) / sum(x) if sum(x) else 0)
            + beta / size * sum(1 - abs(grades[j][i] - x[j]) for j in range(size))
            for i in range(size)
        ]
    return x


@pytest.mark.parametrize(
    ("grades", "plain", "generalised"),
    [
        (MIXED, (0.801939, 0.461115, 0.495215), (0.833097, 0.642160, 0.623494)),
        (HALVES, (0.5, 0.5, 0.5), (2 / 3, 2 / 3, 2 / 3)),
        ([[1.0, 1.0], [0.0, 0.0]], (1.0, 0.0), (0.875, 0.375)),
    ],
)
def test_peer_rank__known_grades__have_the_known_ranks(
    grades: Grades, plain: Sequence[float], generalised: Sequence[float]
) -> None:
    assert peer_rank(grades) == pytest.approx(plain, abs=1e-6)
    assert peer_rank(grades, beta=0.1) == pytest.approx(generalised, abs=1e-6)


@settings(max_examples=25)
@given(squares(0.05), st.sampled_from([0.0, 0.1, 0.4]))
def test_peer_rank__any_grades__is_the_printed_formula(grades: Grades, beta: float) -> None:
    assert peer_rank(grades, alpha=0.5, beta=beta) == pytest.approx(
        slow_peer_rank(grades, 0.5, beta), abs=1e-6
    )


@given(squares(), st.sampled_from([0.0, 0.1]))
def test_peer_rank__domain__stays_within_0_and_1(grades: Grades, beta: float) -> None:
    assert all(0 <= rank <= 1 + 1e-9 for rank in peer_rank(grades, beta=beta))


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6))
def test_peer_rank__unanimity__is_the_agreed_grade(agreed: list[float]) -> None:
    grades = [[grade] * len(agreed) for grade in agreed]
    assert peer_rank(grades) == pytest.approx(agreed, abs=1e-9)


def test_peer_rank__accuracy_counts__unanimity_fails() -> None:
    assert peer_rank(HALVES, beta=0.1)[0] > 0.6


@given(squares(0.05), st.data())
def test_peer_rank__no_dummy__every_grader_matters(grades: Grades, data: st.DataObject) -> None:
    size = len(grades)
    grader = data.draw(st.integers(0, size - 1))
    high, low = ([list(row) for row in grades] for _ in range(2))
    for row in range(size):
        high[row][grader], low[row][grader] = 1.0, 0.0
    assert peer_rank(high) != pytest.approx(peer_rank(low), abs=1e-6)


@given(st.permutations([0.9, 0.6, 0.3]))
def test_peer_rank__no_discrimination__any_order_of_peers_can_win(order: list[float]) -> None:
    ranks = peer_rank([[grade] * 3 for grade in order])
    assert sorted(range(3), key=lambda i: -ranks[i]) == sorted(range(3), key=lambda i: -order[i])


@given(squares(0.05), st.randoms(use_true_random=False))
def test_peer_rank__symmetry__names_do_not_matter(grades: Grades, chance: random.Random) -> None:
    order = list(range(len(grades)))
    chance.shuffle(order)
    moved = peer_rank([[grades[i][j] for j in order] for i in order], beta=0.1)
    ranks = peer_rank(grades, beta=0.1)
    assert moved == pytest.approx([ranks[i] for i in order], abs=1e-9)


@given(squares(0.05), st.floats(0.05, 1))
def test_peer_rank__alpha__does_not_matter(grades: Grades, alpha: float) -> None:
    assert peer_rank(grades, alpha=alpha) == pytest.approx(peer_rank(grades), abs=1e-6)


@pytest.mark.parametrize(
    ("grades", "alpha", "beta"),
    [
        ([[0.5, 0.5]], 0.1, 0.0),
        ([[1.5]], 0.1, 0.0),
        ([[float("nan")]], 0.1, 0.0),
        ([[0.5]], 0.0, 0.0),
        ([[0.5]], 0.6, 0.5),
        ([[0.5]], 0.1, -0.1),
    ],
)
def test_peer_rank__impossible__is_refused(grades: Grades, alpha: float, beta: float) -> None:
    with pytest.raises(Contradiction):
        peer_rank(grades, alpha=alpha, beta=beta)


def reveal(slot: int, weights: Sequence[float], stake: int = 1_000) -> Reveal:
    total = sum(weights)
    return Reveal(
        validator=to_address(f"0x{slot + 1:040x}"),
        slot=Slot(slot),
        stake=Units(stake),
        weights=tuple(int(65_535 * weight / total) for weight in weights) if total else (),
    )


def trial(seed: int) -> tuple[Trust, ...]:
    """Honest validators near the truth, liars near a lie of their own that they agree on."""
    chance = random.Random(seed)
    truth, lie = ([chance.random() for _ in range(MINERS)] for _ in range(2))
    return validator_trust(
        [
            reveal(slot, [min(1.0, max(0.0, weight + chance.gauss(0, 0.1))) for weight in near])
            for slot, near in enumerate([truth] * HONEST + [lie] * LIARS)
        ]
    )


def test_validator_trust__three_liars_of_ten__separate_in_300_of_300() -> None:
    separated = 0
    for seed in range(300):
        ranks = [trust.rank for trust in trial(seed)]
        separated += min(ranks[:HONEST]) > max(ranks[HONEST:])
    assert separated == 300


def test_validator_trust__stake__gives_a_grade_its_weight() -> None:
    one, other = [1.0, 0.0, 0.5], [0.0, 1.0, 0.5]
    votes = [reveal(0, one, 9_000), reveal(1, one), reveal(2, other), reveal(3, other)]
    ranks = [trust.rank for trust in validator_trust(votes)]
    assert ranks[1] > ranks[2]
    assert ranks[0] < ranks[1]  # its own stake does not speak for it


def test_validator_trust__order_of_reveals__does_not_matter() -> None:
    votes = [reveal(slot, [slot + 1.0, 2.0, 3.0]) for slot in range(4)]
    assert validator_trust(votes[::-1]) == validator_trust(votes)


def test_validator_trust__silent_or_alone__has_no_rank() -> None:
    alone = validator_trust([reveal(0, [1.0, 2.0])])
    silent = validator_trust([reveal(0, []), reveal(1, [1.0]), reveal(2, [1.0])])
    assert [trust.rank for trust in alone] == [0.0]
    assert [trust.rank for trust in silent] == [0.0, 1.0, 1.0]
    assert not silent[0].grades


def test_validator_trust__twice__is_a_contradiction() -> None:
    with pytest.raises(Contradiction):
        validator_trust([reveal(0, [1.0]), reveal(0, [1.0])])
