"""Proof of computation: does an update serve the data that its miner says it trained on?

mu <- gamma mu + (1 - gamma) sign(...), started at 0, a tie counting -1 (arXiv 2505.21684). Ours: what
is paid is max(0, mu - z sigma_n), where sigma_n is the deviation of the same average over n tosses of
a fair coin, so that a free-rider isn't paid for luck. The same average serves for "does it improve
the loss at all".
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SignAverage:
    """An exponential average of signs, in [-1, 1], and how many it holds."""

    mean: float = 0.0
    count: int = 0

    def after(self, positive: bool, *, gamma: float) -> SignAverage:
        """The average with one more sign."""
        sign = 1.0 if positive else -1.0
        return SignAverage(mean=gamma * self.mean + (1 - gamma) * sign, count=self.count + 1)

    def above_luck(self, *, gamma: float, z: float) -> float:
        """max(0, mean - z sigma_n); 0 before the first sign."""
        if self.count == 0:
            return 0.0
        return max(0.0, self.mean - z * coin_deviation(self.count, gamma=gamma))


def coin_deviation(count: int, *, gamma: float) -> float:
    """Standard deviation of the average after ``count`` tosses of a fair coin.

    The average is (1 - gamma) sum gamma^(n-i) s_i, so the variance is
    (1 - gamma)^2 sum gamma^(2j), j < n = (1 - gamma) / (1 + gamma) * (1 - gamma^(2n)).
    """
    return math.sqrt((1 - gamma) / (1 + gamma) * (1 - gamma ** (2 * count)))
