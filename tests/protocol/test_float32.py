"""The plain arithmetic against glibc and numpy, and what holds of it whatever the numbers are."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.float32 import (
    FAULT,
    ONE,
    ZERO,
    Word,
    add,
    chain,
    div,
    eq,
    exact,
    fma,
    from_int,
    is_fault,
    lt,
    maximum,
    mul,
    nearest,
    neg,
    scale,
    sqrt,
    sub,
    to_float,
    to_int,
)
from scripts.bench.float32 import Differs, against_oracle, compare
from scripts.bench.float32_operations import OPERATIONS, Operation
from scripts.bench.float32_vectors import BORDERS, vectors

VECTORS = 20_000
MINUS_ZERO = Word(0x80000000)
INFINITY = Word(0x7F800000)
LARGEST = Word(0x7F7FFFFF)
LEAST = Word(1)

words = st.one_of(st.integers(0, (1 << 32) - 1), st.sampled_from(BORDERS.tolist())).map(Word)
numbers = words.filter(lambda word: not is_fault(word))


@pytest.mark.parametrize(
    "operation", [o for o in OPERATIONS if o.oracle is not None], ids=lambda o: o.name
)
def test_operation__random_and_border_words__is_that_of_glibc_and_numpy(
    operation: Operation,
) -> None:
    assert against_oracle(operation, VECTORS, seed=5) == VECTORS


def test_compare__one_wrong_word__is_shown() -> None:
    operands = next(vectors(100, 3, seed=1))
    right = OPERATIONS[0].computed(operands)
    wrong = right.copy()
    wrong[70] ^= np.uint64(1)
    with pytest.raises(Differs, match=r"fma of .* 1 differ"):
        compare(OPERATIONS[0], operands, wrong, right)


@given(words, words, words)
def test_fma__any_words__is_the_rational_rounded(a: Word, b: Word, c: Word) -> None:
    found = fma(a, b, c)
    if is_fault(a) or is_fault(b) or is_fault(c):
        assert found == FAULT
    elif total := exact(a) * exact(b) + exact(c):
        assert found == nearest(total)
    else:
        assert found in (ZERO, MINUS_ZERO)


@given(numbers, numbers)
def test_nearest__any_rational__no_number_is_nearer(a: Word, b: Word) -> None:
    value = exact(a) / exact(b) if exact(b) else exact(a)
    word = nearest(value)
    if is_fault(word):
        assert abs(value) >= exact(LARGEST) + Fraction(2) ** 103  # half a place more
        return
    error = abs(exact(word) - value)
    for other in (word - 1, word + 1):
        if 0 <= other & 0x7FFFFFFF < INFINITY and other >= 0:
            beside = abs(exact(Word(other)) - value)
            assert error < beside or (error == beside and word % 2 == 0)


def test_nearest__decimals__are_numpys() -> None:
    for text in ("0.1", "-1e-45", "7e-46", "3.4028235e38", "16777217", "-0.333333333333"):
        assert to_float(nearest(Decimal(text))) == float(np.float32(text))


@given(words)
def test_to_float__any_number__holds_it_exactly(a: Word) -> None:
    if not is_fault(a):
        assert Fraction(to_float(a)) == exact(a)


def test_exact__no_number__is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        exact(INFINITY)


@pytest.mark.parametrize(
    "result",
    [
        add(LARGEST, LARGEST),
        sub(INFINITY, INFINITY),
        mul(ZERO, INFINITY),
        div(ONE, ZERO),
        div(ZERO, ZERO),
        div(ONE, INFINITY),
        sqrt(neg(ONE)),
        neg(INFINITY),
        maximum(ONE, INFINITY),
        scale(ONE, 128),
        scale(ONE, None),
        from_int(1 << 128),
    ],
)
def test_operation__no_number_in_or_out__is_the_one_fault(result: Word) -> None:
    assert result == FAULT


def test_comparison__a_fault__is_never_true() -> None:
    for compare_ in (lt, eq):
        assert not compare_(FAULT, ONE)
        assert not compare_(FAULT, FAULT)
        assert not compare_(ONE, INFINITY)
    assert to_int(FAULT) is None


def test_zeros__signs__are_those_of_the_standard() -> None:
    assert add(ZERO, MINUS_ZERO) == ZERO
    assert add(MINUS_ZERO, MINUS_ZERO) == MINUS_ZERO
    assert sub(ONE, ONE) == ZERO
    assert mul(MINUS_ZERO, ONE) == MINUS_ZERO
    assert fma(MINUS_ZERO, ONE, ZERO) == ZERO
    assert sqrt(MINUS_ZERO) == MINUS_ZERO
    assert maximum(MINUS_ZERO, ZERO) == MINUS_ZERO
    assert mul(LEAST, neg(LEAST)) == MINUS_ZERO


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_to_int__an_integer_made_a_number__is_within_its_rounding(n: int) -> None:
    found = to_int(from_int(n))
    assert found is None or abs(found - n) <= 64
    assert (found is None) == (n >= (1 << 31) - 64)


@given(st.lists(st.tuples(numbers, numbers), max_size=20), numbers)
def test_chain__two_rows__is_fma_in_their_order(pairs: list[tuple[Word, Word]], acc: Word) -> None:
    expected = acc
    for a, b in pairs:
        expected = fma(a, b, expected)
    assert chain(acc, [a for a, _ in pairs], [b for _, b in pairs]) == expected


def test_chain__rows_of_different_length__are_refused() -> None:
    with pytest.raises(ValueError):
        chain(ZERO, [ONE], [])
