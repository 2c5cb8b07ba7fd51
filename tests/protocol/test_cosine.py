"""The exact cosine, against the system's and its own identities."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.cosine import DIGITS, cosine

halves = st.fractions(0, 1, max_denominator=512)


@given(halves)
def test_cosine__any_angle__is_the_librarys_within_its_rounding(angle: Fraction) -> None:
    assert float(cosine(angle)) == pytest.approx(math.cos(math.pi * float(angle)), abs=1e-15)


@given(halves)
def test_cosine__double_angle__holds_to_38_digits(angle: Fraction) -> None:
    if angle <= Fraction(1, 2):
        twice = 2 * cosine(angle) ** 2 - 1
        assert abs(cosine(2 * angle) - twice) < Fraction(1, 10 ** (DIGITS - 2))


def test_cosine__known_angles__are_exact() -> None:
    known = {Fraction(0): 1, Fraction(1, 3): Fraction(1, 2), Fraction(1, 2): 0, Fraction(1): -1}
    assert {angle: cosine(angle) for angle in known} == known


@pytest.mark.parametrize("angle", [Fraction(-1, 8), Fraction(9, 8)])
def test_cosine__beyond_the_half_turn__raises_value_error(angle: Fraction) -> None:
    with pytest.raises(ValueError, match="half turn"):
        cosine(angle)
