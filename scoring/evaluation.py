"""What the primary evaluation of one peer measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from protocol.ids import Address

_WORST = -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Losses in mean nats per token, before and after the scaled update at step beta.

    Attributes:
        miner: whose update.
        rand_before, rand_after: on D_rand, the same samples for every peer of this round.
        own_before, own_after: on samples of D_p, which the peer's signed data root names.
    """

    miner: Address
    rand_before: float
    rand_after: float
    own_before: float
    own_after: float

    @property
    def rand_score(self) -> float:
        """LossScore on D_rand; minus infinity if the update breaks the model."""
        return _loss_score(self.rand_before, self.rand_after)

    @property
    def own_score(self) -> float:
        """LossScore on D_p; minus infinity if the update breaks the model."""
        return _loss_score(self.own_before, self.own_after)

    @property
    def relative_score(self) -> float:
        """LossScore on D_rand relative to the loss before; for reports."""
        return self.rand_score / self.rand_before if self.rand_before > 0 else 0.0

    @property
    def own_beats_random(self) -> bool:
        """Whether the update serves its own data better; a tie does not count."""
        return self.own_score > self.rand_score


def _loss_score(before: float, after: float) -> float:
    score = before - after
    return score if math.isfinite(score) else _WORST
