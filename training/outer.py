"""The outer rules: what the summed updates of a round make of the model.

A rule turns a sum of scaled updates and their number into a direction; the model goes against it by `size`, alpha or, in an exam, a
part of it. The same step is taken with one update alone, so a score is that of what the aggregate would apply if nobody
else had sent anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from protocol.ids import Round
from protocol.spec import OuterSpec

Rule: TypeAlias = Callable[[NDArray[np.float32], int], NDArray[np.float32]]

# Results below it become +0 (see training.aggregate).
TINY = np.float32(2.0**-100)


def _mean(total: NDArray[np.float32], number: int) -> NDArray[np.float32]:
    """SparseLoCo. The divisor is the size of the set, not the number of senders of a coordinate: a lone sender would own it."""
    mean: NDArray[np.float32] = total / np.float32(number)
    return mean


def _sign(total: NDArray[np.float32], _number: int) -> NDArray[np.float32]:
    """DeMo. Where nothing was sent, or it cancels out exactly, the sign is 0 and the weight stays."""
    return np.sign(total)


RULES: Mapping[str, Rule] = {"sparseloco": _mean, "demo": _sign}
"""By the name that a spec gives (`protocol.spec.OUTER_RULES`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OuterStep:
    """One step of the model. `rule` is a key of `RULES`, `size` how far it goes along the direction."""

    rule: str
    size: float

    @classmethod
    def of(cls, outer: OuterSpec, round_: Round, *, fraction: float = 1.0) -> OuterStep:
        """A round's step, or a part of it."""
        return cls(rule=outer.rule, size=fraction * outer.alpha_at(round_))

    def move(
        self, flat: NDArray[np.float32], total: NDArray[np.float32], number: int
    ) -> NDArray[np.float32]:
        """The model after a step from `flat`, given the sum of so many scaled updates."""
        direction = RULES[self.rule](total, number)
        moved: NDArray[np.float32] = flat - np.float32(self.size) * direction
        moved[np.abs(moved) < TINY] = 0.0
        return moved
