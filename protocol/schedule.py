"""Factors that rise and fall over a run: of the inner learning rate by step, of alpha by round.

Everybody must get the same bits, so a value is computed exactly, in fractions, or for the cosine in 40 decimal digits, and rounded
once; no function of the system's library takes part.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from protocol.cosine import cosine
from protocol.errors import Rejected

SHAPES = ("linear", "cosine")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """A factor by place, counted from 1: up to 1 over the warm-up, then 1, then down to `final`, which it keeps.

    Attributes:
        warmup: the factor of place n of the first `warmup` is n / warmup; 0 is none.
        decay_from: the last place with factor 1.
        decay_to: the first place with factor `final`. No later than `decay_from`: the factor drops at once after that one.
        shape: of the way between them, ``linear`` or ``cosine`` (half a period, Loshchilov and Hutter 2016).
        final: from 0 to 1; 1 is no decay at all.
    """

    warmup: int = 0
    decay_from: int = 0
    decay_to: int = 0
    shape: str = "linear"
    final: str = "1"

    def __post_init__(self) -> None:
        for name in ("warmup", "decay_from", "decay_to"):
            if getattr(self, name) < 0:
                raise Rejected(f"schedule: {name} is negative")
        if self.shape not in SHAPES:
            raise Rejected(f"schedule: shape {self.shape!r} is none of {', '.join(SHAPES)}")
        if not 0 <= _decimal(self.final) <= 1:
            raise Rejected(f"schedule: final {self.final} is not between 0 and 1")

    def apply(self, value: str, place: int) -> float:
        """A decimal value times the factor of a place, rounded once."""
        return float(Fraction(_decimal(value)) * self.factor(place))

    def factor(self, place: int) -> Fraction:
        """The factor of a place, exact; a cosine's to 40 digits."""
        if place < 1:
            raise ValueError(f"places count from 1, not {place}")
        rise = Fraction(place, self.warmup) if place < self.warmup else Fraction(1)
        final = Fraction(_decimal(self.final))
        return rise * (final + (1 - final) * self._left(place))

    def _left(self, place: int) -> Fraction:
        """What of the decay is still to come, from 1 down to 0."""
        if place <= self.decay_from:
            return Fraction(1)
        if place >= self.decay_to:
            return Fraction(0)
        way = Fraction(place - self.decay_from, self.decay_to - self.decay_from)
        return 1 - way if self.shape == "linear" else (1 + cosine(way)) / 2


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise Rejected(f"schedule: not a decimal number: {text!r}")
    return value


CONSTANT = ScheduleSpec()
"""The factor is always 1."""
