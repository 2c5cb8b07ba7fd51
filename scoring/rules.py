"""The numbers of the scoring rules: those of the run's spec, parsed once, and this code's own.

The spec's numbers bind every validator. The constants below are this implementation's judgement:
two validators may differ in them, and the median of their weights decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from protocol.errors import Rejected
from protocol.spec import ScoringSpec

IMPROVEMENT_FLOOR = 0.1
"""An update that gains less than this fraction of the median positive gain improved nothing. Without
it a random payload, whose tiny effect falls on either side of zero, would count as work."""
FOOTHOLD = 0.25
"""LossRating of a peer that beats doing nothing is at least this fraction of the prior's sigma: the
ordinal of an honest peer stays near or below zero for its first rounds, and a slow one's for ever."""
MAX_STRIKES = 16
"""Failed checks are counted up to here (0.75^16 = 1 %), so that a recovered peer has a way back."""
REUSE_MEMORY_ROUNDS = 128
"""Payload roots are remembered for so many rounds; older work is useless work anyway."""
OVERLAP_THRESHOLD = 0.5
"""Fraction of shared indices above which two updates may be one; raised above the honest baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`ScoringSpec` as floats, checked. Names as there; `mu_margin` is z."""

    mu_gamma: float
    mu_margin: float
    phi: float
    rating_mu: float
    rating_sigma: float
    rating_beta: float
    rating_tau: float

    def __post_init__(self) -> None:
        if not 0 < self.mu_gamma < 1:
            raise Rejected("scoring: mu_gamma must lie in (0, 1)")
        if not 0 < self.phi < 1:
            raise Rejected("scoring: phi must lie in (0, 1)")
        if not self.mu_margin >= 0:
            raise Rejected("scoring: mu_margin must not be negative")
        if not min(self.rating_sigma, self.rating_beta) > 0 or not self.rating_tau > 0:
            raise Rejected("scoring: rating_sigma, rating_beta and rating_tau must be positive")

    @classmethod
    def of(cls, spec: ScoringSpec) -> Rules:
        """Parses the decimal strings of a spec; raises `Rejected`."""
        return cls(
            mu_gamma=float(spec.mu_gamma),
            mu_margin=float(spec.mu_margin),
            phi=float(spec.phi),
            rating_mu=float(spec.rating_mu),
            rating_sigma=float(spec.rating_sigma),
            rating_beta=float(spec.rating_beta),
            rating_tau=float(spec.rating_tau),
        )
