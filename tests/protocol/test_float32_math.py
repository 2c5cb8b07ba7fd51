"""How far the published functions are from the true values, in 40 decimal digits, and where their coefficients come from."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from protocol import float32_math
from protocol.float32 import FAULT, ONE, ZERO, Word, exact, is_fault, nearest, neg
from protocol.float32_math import exp, log, rsqrt, sigmoid, silu, silu_grad
from scripts.minimax import Fit, exp_rest, log_rest

SAMPLES = 1_500
FUNCTIONS: dict[str, tuple[Callable[[Word], Word], Callable[[Decimal], Decimal], float]] = {
    "exp": (exp, lambda x: x.exp(), 1.1),
    "log": (log, lambda x: x.ln(), 1.0),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + (-x).exp()), 2.0),
    "silu": (silu, lambda x: x / (1 + (-x).exp()), 2.5),
    "rsqrt": (rsqrt, lambda x: 1 / x.sqrt(), 1.5),
}
LEAST_PLACE = Fraction(2) ** -149


def decimal(word: Word) -> Decimal:
    value = exact(word)
    return Decimal(value.numerator) / Decimal(value.denominator)


def place_of(value: Decimal) -> Fraction:
    """A unit in the last place of binary32 about a value."""
    fraction = abs(Fraction(value))
    exponent = fraction.numerator.bit_length() - fraction.denominator.bit_length()
    if fraction < Fraction(2) ** exponent:
        exponent -= 1
    return max(Fraction(2) ** (exponent - 23), LEAST_PLACE)


def samples(name: str) -> list[Word]:
    """Around zero and one, in the whole range, and positive for those that want it."""
    rng = random.Random(name)
    reach = {"log": 126, "rsqrt": 126}.get(name, 6)
    found = []
    for _ in range(SAMPLES):
        exponent = rng.choice((rng.randint(-reach, reach), rng.randint(-3, 3)))
        word = Word(127 + exponent << 23 | rng.getrandbits(23))
        found.append(word if name in ("log", "rsqrt") or rng.random() < 0.5 else neg(word))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function__random_numbers__is_within_its_bound_of_the_true_value(name: str) -> None:
    function, true, bound = FUNCTIONS[name]
    with localcontext(prec=40):
        for x in samples(name):
            found, value = function(x), true(decimal(x))
            if is_fault(found):
                assert nearest(value) == FAULT
                continue
            place = max(place_of(value), Fraction(2) ** -143 if name == "silu" else LEAST_PLACE)
            assert abs(exact(found) - Fraction(value)) <= Fraction(bound) * place, hex(x)


def test_silu_grad__random_numbers__is_within_a_few_places_of_one() -> None:
    with localcontext(prec=40):
        for x in samples("silu'"):
            s = 1 / (1 + (-decimal(x)).exp())
            value = s * (1 + decimal(x) * (1 - s))
            place = max(place_of(value), Fraction(2) ** -24)
            assert abs(exact(silu_grad(x)) - Fraction(value)) <= 4 * place, hex(x)


def test_exp__ends__are_zero_and_fault() -> None:
    assert exp(Word(0x42B17217)) == Word(0x7F7FFF84)
    assert exp(Word(0x42B17218)) == FAULT
    assert exp(Word(0x7F7FFFFF)) == FAULT
    assert exp(Word(0xC2CFF1B4)) == Word(1)  # ln 2^-150 and a little
    assert exp(Word(0xFF7FFFFF)) == ZERO
    assert exp(ZERO) == exp(neg(ZERO)) == ONE
    assert exp(FAULT) == FAULT


def test_log__no_positive_number__is_a_fault() -> None:
    assert log(ONE) == ZERO
    for x in (ZERO, neg(ZERO), neg(ONE), Word(0x80000001), Word(0x7F800000), FAULT):
        assert log(x) == FAULT


def test_log__subnormal_numbers__are_as_accurate() -> None:
    with localcontext(prec=40):
        for x in (1, 2, 3, 0x7FFFFF, 0x400001):
            value = decimal(Word(x)).ln()
            assert abs(exact(log(Word(x))) - Fraction(value)) <= place_of(value)


def test_functions__a_fault__stay_one() -> None:
    for function in (sigmoid, silu, silu_grad, rsqrt):
        assert function(FAULT) == FAULT
    assert rsqrt(ZERO) == rsqrt(neg(ONE)) == FAULT


@pytest.mark.parametrize(
    ("fit", "published", "bound"),
    [(exp_rest, float32_math.EXP, "3.1e-9"), (log_rest, float32_math.LOG, "8.1e-10")],
)
def test_coefficients__fitted_again__are_the_published_ones(
    fit: Callable[[], Fit], published: tuple[Word, ...], bound: str
) -> None:
    again = fit()
    assert again.words() == published
    assert again.error < Decimal(bound)


def test_constants__from_their_definition__are_the_published_ones() -> None:
    with localcontext(prec=40):
        ln2 = Decimal(2).ln()
        assert nearest(1 / ln2) == float32_math.LOG2_E
        assert nearest(ln2) == float32_math.LN2_HIGH
        assert nearest(ln2 - decimal(float32_math.LN2_HIGH)) == float32_math.LN2_LOW
        assert nearest(Decimal("0.5").sqrt()) == float32_math.ROOT_HALF
