"""LossRating: OpenSkill Plackett-Luce over the ranking by LossScore on D_rand.

Each round is one match of all evaluated peers. Ours: doing nothing plays too. The *null player*
scores the improvement floor (see `improvement_floor`), so its rating shows what an update without
effect deserves, and a peer is paid only above it. Without it a match among five says only who is
better than whom, and a useless peer among useless ones would be rated like an honest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from openskill.models import PlackettLuce

from protocol.ids import Address
from scoring.rules import FOOTHOLD, IMPROVEMENT_FLOOR, Rules

ORDINAL_Z = 3.0


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
    model = PlackettLuce(
        mu=rules.rating_mu, sigma=rules.rating_sigma, beta=rules.rating_beta, tau=rules.rating_tau
    )
    # Sums of floats depend on their order: it is by score and address, never the caller's.
    peers = sorted(scores, key=lambda miner: (-scores[miner], miner))
    before = [*(ratings.get(miner, prior(rules)) for miner in peers), null]
    results = [*(scores[miner] for miner in peers), improvement_floor(scores.values())]
    ranks = [float(sum(other > result for other in results)) for result in results]
    teams = [[model.rating(mu=rating.mu, sigma=rating.sigma)] for rating in before]
    played = [Rating(mu=team[0].mu, sigma=team[0].sigma) for team in model.rate(teams, ranks=ranks)]
    return dict(zip(peers, played, strict=False)), played[-1]


def loss_rating(rating: Rating, null: Rating, rules: Rules) -> float:
    """What a rating is worth as a factor of the score: its ordinal, with a foothold.

    0 for a peer that is not rated above doing nothing; otherwise the ordinal, and at least
    FOOTHOLD times the prior's sigma.
    """
    if rating.ordinal <= null.ordinal:
        return 0.0
    return max(rating.ordinal, FOOTHOLD * rules.rating_sigma)
