"""Exact binary32 arithmetic on words, in integers alone: what the contracts compute, as plainly as it can be said.

A word is sign (1 bit), exponent (8), fraction (23). Every operation takes its operands as exact rationals, computes exactly and
rounds once: to nearest, ties to even; subnormal numbers are kept, zeros have signs. NaN and infinity are no numbers here but
one fault, FAULT, that sticks: an operation gives it for an operand that is not finite and for a result that would not be, and
never gives another word that is not finite. `contracts/src/libraries/Float32.sol` is the same in Solidity; native kernels must
give the same words (docs/verification.md).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NewType

Word = NewType("Word", int)
"""A binary32 number as its 32 bits."""

ZERO = Word(0)
ONE = Word(0x3F800000)
FAULT = Word(0x7FC00000)
"""The one word that is not finite and that operations give."""

_SIGN = 0x80000000
_LARGEST = 0x7F7FFFFF
_LEAST = -149
"""The least number is 2^-149, and every number a multiple of it."""
_BITS = 24
"""Of a significand."""
_INT_BITS = 32
"""Of the integers that `to_int` gives."""


def fma(a: Word, b: Word, c: Word) -> Word:
    """a · b + c, rounded once."""
    if is_fault(a) or is_fault(b) or is_fault(c):
        return FAULT
    (ma, ea), (mb, eb), (mc, ec) = _integers(a), _integers(b), _integers(c)
    e = min(ea + eb, ec)
    total = (ma * mb << ea + eb - e) + (mc << ec - e)
    if total == 0:  # both are zero or they cancel: -0 only if both have that sign
        return Word((a ^ b) & c & _SIGN)
    return _round(total < 0, abs(total), e)


def add(a: Word, b: Word) -> Word:
    """a + b."""
    return fma(a, ONE, b)


def sub(a: Word, b: Word) -> Word:
    """a - b."""
    return fma(a, ONE, neg(b))


def mul(a: Word, b: Word) -> Word:
    """a · b; a zero has the sign of the product."""
    return fma(a, b, Word((a ^ b) & _SIGN))


def div(a: Word, b: Word) -> Word:
    """a / b; FAULT if b is zero."""
    if is_fault(a) or is_fault(b):
        return FAULT
    (ma, ea), (mb, eb) = _integers(a), _integers(b)
    if mb == 0:
        return FAULT
    quotient, rest = divmod(abs(ma) << 80, abs(mb))
    # A rest is one bit far below the place of rounding: it only keeps a tie from being one.
    return _round(bool((a ^ b) & _SIGN), quotient << 1 | (rest != 0), ea - eb - 81)


def sqrt(a: Word) -> Word:
    """The square root; FAULT below zero, but the root of -0 is -0."""
    if is_fault(a) or a > _SIGN:
        return FAULT
    m, e = _integers(a)
    radicand = m << 60 + e % 2
    root = math.isqrt(radicand)
    return _round(bool(a & _SIGN), root << 1 | (root * root != radicand), (e - e % 2 - 60) // 2 - 1)


def neg(a: Word) -> Word:
    """The number with the other sign."""
    return FAULT if is_fault(a) else Word(a ^ _SIGN)


def absolute(a: Word) -> Word:
    """The number without its sign."""
    return FAULT if is_fault(a) else Word(a & ~_SIGN)


def scale(a: Word, n: int | None) -> Word:
    """a · 2^n, rounded once (where the result is subnormal); FAULT if there is no n."""
    if is_fault(a) or n is None:
        return FAULT
    m, e = _integers(a)
    return _round(bool(a & _SIGN), abs(m), e + max(-600, min(n, 600)))


def is_fault(a: Word) -> bool:
    """Whether the word is NaN or infinite."""
    return a & ~_SIGN > _LARGEST


def lt(a: Word, b: Word) -> bool:
    """a < b; False if either is FAULT. The zeros are equal."""
    return not is_fault(a) and not is_fault(b) and exact(a) < exact(b)


def le(a: Word, b: Word) -> bool:
    """a ≤ b; False if either is FAULT."""
    return not is_fault(a) and not is_fault(b) and exact(a) <= exact(b)


def eq(a: Word, b: Word) -> bool:
    """a = b; False if either is FAULT."""
    return not is_fault(a) and not is_fault(b) and exact(a) == exact(b)


def maximum(a: Word, b: Word) -> Word:
    """b if a < b, else a: the first of two zeros. FAULT if either is."""
    if is_fault(a) or is_fault(b):
        return FAULT
    return b if lt(a, b) else a


def minimum(a: Word, b: Word) -> Word:
    """b if b < a, else a: the first of two zeros. FAULT if either is."""
    if is_fault(a) or is_fault(b):
        return FAULT
    return b if lt(b, a) else a


def from_int(n: int) -> Word:
    """The number nearest to n, ties to even; FAULT beyond the largest."""
    return _round(n < 0, abs(n), 0)


def to_int(a: Word) -> int | None:
    """The integer nearest to a, ties to even; None if a is FAULT or the integer no int32."""
    if is_fault(a):
        return None
    n = round(exact(a))
    return n if -(1 << _INT_BITS - 1) <= n < 1 << _INT_BITS - 1 else None


def chain(acc: Word, a: Sequence[Word], b: Sequence[Word]) -> Word:
    """fma over two rows, in their order: acc = a[k] · b[k] + acc for k = 0, 1 and so on."""
    for x, y in zip(a, b, strict=True):
        acc = fma(x, y, acc)
    return acc


def exact(a: Word) -> Fraction:
    """The number itself, which must be finite."""
    if is_fault(a):
        raise ValueError(f"0x{a:08x} is no number")
    m, e = _integers(a)
    return Fraction(m) * Fraction(2) ** e


def nearest(number: Decimal | Fraction) -> Word:
    """The word nearest to any number, ties to even: how constants are made."""
    number = Fraction(number)
    # As in `div`: so many bits that the rest only keeps a tie from being one.
    shift = 400 + number.denominator.bit_length()
    whole, rest = divmod(abs(number.numerator) << shift, number.denominator)
    return _round(number < 0, whole << 1 | (rest != 0), -shift - 1)


def to_float(a: Word) -> float:
    """The number as a float, which holds it exactly."""
    value: float = struct.unpack("<f", a.to_bytes(4, "little"))[0]
    return value


def _integers(a: Word) -> tuple[int, int]:
    """(m, e) with a = m · 2^e."""
    exponent, fraction = a >> 23 & 0xFF, a & 0x7FFFFF
    m = fraction | 1 << 23 if exponent else fraction
    return (-m if a & _SIGN else m), max(exponent, 1) - 1 + _LEAST


def _round(negative: bool, m: int, e: int) -> Word:
    """The word of ± m · 2^e, rounded to nearest, ties to even."""
    drop = max(m.bit_length() - _BITS, _LEAST - e)
    if drop > 0:
        kept, rest = m >> drop, m & (1 << drop) - 1
        half = 1 << drop - 1
        if rest > half or (rest == half and kept & 1):
            kept += 1
    else:
        kept = m << -drop
    # The field of the exponent counts from the least one; the 24th bit of what is kept adds one to it, a carry another.
    word = (e + drop - _LEAST << 23) + kept if kept else 0
    if word > _LARGEST:
        return FAULT
    return Word(word | _SIGN if negative else word)
