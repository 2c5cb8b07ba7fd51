"""The cosine of a fraction of pi, with the same digits on every machine; no function of the system's library takes part."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

DIGITS = 40
_PI = Decimal("3.1415926535897932384626433832795028841971693993751")


@lru_cache(maxsize=4096)
def cosine(halves: Fraction) -> Fraction:
    """Cosine of `halves` of pi, from 0 to 1, to 40 digits: by its series, as `decimal` rounds alike everywhere."""
    if not 0 <= halves <= 1:
        raise ValueError(f"{halves} of pi is not in the first half turn")
    with localcontext(Context(prec=DIGITS + 10)):
        angle = _PI * halves.numerator / halves.denominator
        term, total, n = Decimal(1), Decimal(1), 0
        while abs(term) > Decimal(10) ** -(DIGITS + 5):
            n += 2
            term *= -angle * angle / (n * (n - 1))
            total += term
        return Fraction(round(total, DIGITS))
