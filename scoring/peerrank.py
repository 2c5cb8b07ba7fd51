"""PeerRank (Walsh, arXiv 1405.7192): grades weighted by the grader's own grade, as the validators' published reputation.

A[i][j] in [0, 1] is the grade that j gives i. Grades that peers write themselves are captured by any clique, so between validators
they are *grounded*: how near i's revealed weights lie to j's, over the miners that either of them gave weight. Nobody grades itself, and a
grade counts by its grader's stake. Whom to fetch from, whom to delegate to and whom to watch may go by it; pay does not: an
iteration would not fit a challenge.

Only IEEE sums, products and quotients in a fixed order take part, so whoever has the reveals gets the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.ids import Address
from scoring.consensus import Reveal
from scoring.errors import Contradiction

Grades = Sequence[Sequence[float]]
"""Rows are graded, columns grade; the diagonal is a peer's grade of itself."""

ALPHA = 0.1
BETA = 0.1
GROUNDED_ALPHA = 0.5
_SETTLED = 1e-13
_MOST_STEPS = 20_000


def peer_rank(grades: Grades, *, alpha: float = ALPHA, beta: float = 0.0) -> tuple[float, ...]:
    """The fixed point X of PeerRank, from the mean grades on.

    X_i <- (1 - alpha - beta) X_i + alpha sum_j X_j A[i][j] / sum_j X_j + beta / m sum_j (1 - |A[j][i] - X_j|)

    Args:
        grades: m rows of m grades in [0, 1].
        alpha: weight of the grades that a peer gets. Without `beta` the fixed point does not depend on it.
        beta: weight of the accuracy of the grades that a peer gives (generalised PeerRank). With it a grade that all
            agree on is no longer the outcome.

    Raises:
        Contradiction: not a square of grades, or alpha and beta out of range.
    """
    size = len(grades)
    if any(len(row) != size for row in grades):
        raise Contradiction("grades are no square")
    if not all(0 <= grade <= 1 for row in grades for grade in row):
        raise Contradiction("a grade lies outside of [0, 1]")
    if not (alpha > 0 and beta >= 0 and alpha + beta <= 1):
        raise Contradiction(f"alpha {alpha} and beta {beta} are no shares of a step")
    ranks = [math.fsum(row) / size for row in grades]
    for _ in range(_MOST_STEPS):
        total = math.fsum(ranks)
        after = []
        for i, own in enumerate(ranks):
            earned = _weighed(grades[i], ranks, total)
            accurate = math.fsum(1 - abs(grades[j][i] - ranks[j]) for j in range(size)) / size
            after.append((1 - alpha - beta) * own + alpha * earned + beta * accurate)
        moved = max((abs(new - old) for new, old in zip(after, ranks, strict=True)), default=0.0)
        ranks = after
        if moved <= _SETTLED:
            break
    return tuple(ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """A validator's standing in an epoch.

    Attributes:
        rank: its PeerRank, in [0, 1].
        grades: what each other validator's weights say of its own, in [0, 1]; missing where one of them gave nobody weight.
    """

    validator: Address
    rank: float
    grades: Mapping[Address, float]


def validator_trust(reveals: Sequence[Reveal]) -> tuple[Trust, ...]:
    """Grounded PeerRank of the validators that revealed weights for an epoch, by validator.

    A validator that gave nobody weight, or that is alone, has rank 0: nothing speaks for it.
    """
    if len({reveal.validator for reveal in reveals}) != len(reveals):
        raise Contradiction("a validator revealed twice")
    ordered = sorted(reveals, key=lambda reveal: reveal.validator)
    scores = [_scores(reveal) for reveal in ordered]
    stakes = [float(reveal.stake) for reveal in ordered]
    grades = [[_likeness(mine, theirs) for theirs in scores] for mine in scores]
    ranks = _grounded(grades, stakes)
    return tuple(
        Trust(
            validator=reveal.validator,
            rank=rank,
            grades={
                other.validator: grade
                for j, (other, grade) in enumerate(zip(ordered, grades[i], strict=True))
                if j != i and grade is not None
            },
        )
        for i, (reveal, rank) in enumerate(zip(ordered, ranks, strict=True))
    )


def _grounded(grades: Sequence[Sequence[float | None]], stakes: Sequence[float]) -> list[float]:
    """X_i <- (1 - alpha) X_i + alpha sum_j stake_j X_j A[i][j] / sum_j stake_j X_j over the j that grade i."""
    graders = [
        [(j, grade) for j, grade in enumerate(row) if j != i and grade is not None]
        for i, row in enumerate(grades)
    ]
    ranks = [_mean([(grade, stakes[j]) for j, grade in each]) for each in graders]
    for _ in range(_MOST_STEPS):
        after = [
            (1 - GROUNDED_ALPHA) * own
            + GROUNDED_ALPHA * _mean([(grade, stakes[j] * ranks[j]) for j, grade in each])
            for own, each in zip(ranks, graders, strict=True)
        ]
        moved = max((abs(new - old) for new, old in zip(after, ranks, strict=True)), default=0.0)
        ranks = after
        if moved <= _SETTLED:
            break
    return ranks


def _scores(reveal: Reveal) -> dict[int, float]:
    """Its weights by miner slot, the largest being 1: what counts is their proportion."""
    most = max(reveal.weights, default=0)
    return {slot: weight / most for slot, weight in enumerate(reveal.weights) if weight}


def _likeness(mine: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """1 - mean |difference| over the miners that either gave weight; None if one gave nobody any."""
    if not mine or not theirs:
        return None
    slots = sorted(mine.keys() | theirs.keys())
    apart = math.fsum(abs(mine.get(slot, 0.0) - theirs.get(slot, 0.0)) for slot in slots)
    return 1 - apart / len(slots)


def _mean(weighed: Sequence[tuple[float, float]]) -> float:
    total = math.fsum(weight for _, weight in weighed)
    return math.fsum(value * weight for value, weight in weighed) / total if total > 0 else 0.0


def _weighed(grades: Sequence[float], ranks: Sequence[float], total: float) -> float:
    """Mean of the grades by the graders' ranks; 0 where nobody has any."""
    if total <= 0:
        return 0.0
    return math.fsum(rank * grade for rank, grade in zip(ranks, grades, strict=True)) / total
