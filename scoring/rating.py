"""LossRating: OpenSkill Plackett-Luce over the ranking by LossScore on D_rand.

Each round is one match of all evaluated peers. Ours: doing nothing plays too. The *null player*
scores the improvement floor (see `improvement_floor`), so its rating shows what an update without
effect deserves, and a peer is paid only above it. Without it a match among five says only who is
better than whom, and a useless peer among useless ones would be rated like an honest one.

The update is algorithm 4 of Weng and Lin (2011) as OpenSkill computes it, for one-player teams, in
time that grows with the peers and not with their pairs. It takes sums, products, quotients and
square roots alone, in one order, so that the same losses give the same ratings on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from protocol.ids import Address
from scoring.rules import FOOTHOLD, IMPROVEMENT_FLOOR, Rules

ORDINAL_Z = 3.0
_KAPPA = 0.0001
"""A match leaves at least so much of a variance (OpenSkill's kappa)."""
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""Their sum is ln 2; the first has so few digits that small multiples of it are exact."""
_EXP_TERMS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A skill as a normal belief."""

    mu: float
    sigma: float

    @property
    def ordinal(self) -> float:
        """The skill that a peer has almost surely: mean - 3 sigma."""
        return self.mu - ORDINAL_Z * self.sigma


def prior(rules: Rules) -> Rating:
    """The rating of whoever has not played yet."""
    return Rating(mu=rules.rating_mu, sigma=rules.rating_sigma)


def improvement_floor(scores: Iterable[float]) -> float:
    """The LossScore up to which an update counts as no improvement; at least 0.

    A fraction of the (lower) median of the positive scores: at least half of the peers that improve
    the loss at all lie above it, whatever the others hand in.
    """
    positive = sorted(score for score in scores if score > 0)
    return IMPROVEMENT_FLOOR * positive[(len(positive) - 1) // 2] if positive else 0.0


def rate(
    scores: Mapping[Address, float],
    ratings: Mapping[Address, Rating],
    null: Rating,
    rules: Rules,
) -> tuple[dict[Address, Rating], Rating]:
    """Plays one match.

    Args:
        scores: LossScore on D_rand of each evaluated peer; higher is better, equal is a draw.
        ratings: before the match; the prior for whoever is missing.
        null: the null player's rating before the match.
        rules: the model's parameters.

    Returns:
        The new ratings of the peers in `scores`, and the null player's.
    """
    if not scores:
        return {}, null
    # Sums of floats depend on their order: it is by score and address, never the caller's.
    ranked: list[tuple[float, Address | None]] = [(scores[miner], miner) for miner in scores]
    ranked.append((improvement_floor(scores.values()), None))
    ranked.sort(key=lambda entry: (-entry[0], entry[1] or ""))
    ties = [len(list(group)) for _, group in groupby(ranked, key=lambda entry: entry[0])]
    fresh = prior(rules)
    before = [null if miner is None else ratings.get(miner, fresh) for _, miner in ranked]
    played = dict(
        zip((miner for _, miner in ranked), _plackett_luce(before, ties, rules), strict=True)
    )
    after = played.pop(None)
    return {miner: rating for miner, rating in played.items() if miner is not None}, after


def _plackett_luce(before: Sequence[Rating], ties: Sequence[int], rules: Rules) -> list[Rating]:
    """One match of players given best first, in groups of `ties` equal ones.

    With p_iq = strength_i / (strengths of q and all that come after it), the sums over the q that
    do not come after i are strength_i * H and strength_i * H - strength_i^2 * G, where H and G add
    1 / behind and its square, place by place.

    Ours: a tie counts as the mean over the orders in which it could be broken (each of the tied has
    their mean strength where it is in another's way). OpenSkill shares one win among the tied, so
    that whoever hands in another's update of the same round sinks both.
    """
    variances = [rating.sigma * rating.sigma + rules.rating_tau**2 for rating in before]
    c = math.sqrt(sum(variances) + len(before) * rules.rating_beta**2)
    strengths = [exponential(rating.mu / c) for rating in before]
    after, h, g = [], 0.0, 0.0
    for count, end, tied, rest in zip(ties, *_groups(strengths, ties), strict=True):
        own_h, own_g = h, g
        for place in range(count):
            reached = (
                count - place
            ) / count  # the part of the orders in which a player comes no earlier
            behind = rest + tied * reached
            own_h += reached / behind
            own_g += reached / (behind * behind)
            h += 1 / behind
            g += 1 / (behind * behind)
        for player in range(end - count, end):
            strength, variance = strengths[player], variances[player]
            omega = variance / c * (1 - strength * own_h)
            delta = variance / (c * c) * (strength * own_h - strength * strength * own_g)
            sigma = math.sqrt(variance)
            kept = max(1 - sigma / c * delta, _KAPPA)
            after.append(Rating(mu=before[player].mu + omega, sigma=sigma * math.sqrt(kept)))
    return after


def _groups(
    strengths: Sequence[float], ties: Sequence[int]
) -> tuple[list[int], list[float], list[float]]:
    """Of each group of equal players: where it ends, its strength, and that of all after it."""
    ends = list(accumulate(ties))
    tied = [sum(strengths[end - count : end]) for count, end in zip(ties, ends, strict=True)]
    rest = [0.0, *accumulate(reversed(tied))][:-1]
    return ends, tied, rest[::-1]


def exponential(x: float) -> float:
    """e^x within 2 units in the last place for |x| < 500, of sums and products alone.

    The C library's differs between machines in the last bit.
    """
    halvings = round(x / _LN2_HIGH)
    rest = (x - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    power = 1.0
    for term in range(_EXP_TERMS, 0, -1):
        power = 1.0 + rest / term * power
    return math.ldexp(power, halvings)


def loss_rating(rating: Rating, null: Rating, rules: Rules) -> float:
    """What a rating is worth as a factor of the score: its ordinal, with a foothold.

    0 for a peer that is not rated above doing nothing; otherwise the ordinal, and at least
    FOOTHOLD times the prior's sigma.
    """
    if rating.ordinal <= null.ordinal:
        return 0.0
    return max(rating.ordinal, FOOTHOLD * rules.rating_sigma)
