"""Functions of one binary32 number as fixed sequences of exact operations: exp, log and what a transformer makes of them.

They are part of what a run computes, so every implementation takes the same operations in the same order, and gives the same
words: this one, `contracts/src/libraries/Float32Math.sol`, and the native kernels. They are accurate, but that is not the
point. Faults stick, as in `protocol.float32`; log(0), log of less and exp beyond the largest number are faults.

The coefficients are the best polynomials of their degree, rounded (`scripts/minimax.py` derives them; a test derives them
again). Errors are in units in the last place of the result (ulp), the largest seen by `scripts/bench/float32`.
"""

from __future__ import annotations

from protocol.float32 import (
    FAULT,
    ONE,
    ZERO,
    Word,
    absolute,
    add,
    div,
    fma,
    from_int,
    is_fault,
    le,
    lt,
    maximum,
    minimum,
    mul,
    neg,
    scale,
    sqrt,
    sub,
    to_int,
)

LOG2_E = Word(0x3FB8AA3B)
LN2_HIGH = Word(0x3F317218)
"""ln 2 rounded, and what that leaves: 48 bits and more in the two."""
LN2_LOW = Word(0xB102E308)
EXP = (Word(0x3EFFFFFE), Word(0x3E2AAA49), Word(0x3D2AAC78), Word(0x3C091CBD), Word(0x3AB5126B))
"""(e^r - 1 - r) / r² ≈ Σ EXP[i] r^i for |r| ≤ ln 2 / 2: a relative error of e^r of 3.0e-9 (0.05 ulp)."""
LOG = (Word(0x3F2AAABD), Word(0x3ECCAF6E), Word(0x3E98EFB4))
"""(ln((1 + s) / (1 - s)) / s - 2) / s² ≈ Σ LOG[i] s^2i for |s| ≤ 0.1716: a relative error of ln of 8.0e-10 (0.01 ulp)."""
ROOT_HALF = Word(0x3F3504F3)
HALF = Word(0x3F000000)
TWO = Word(0x40000000)
EXP_ENDS = (Word(0xC3000000), Word(0x43000000))
"""-128 and 128: beyond them e^x is 0 or FAULT anyhow."""
LEAST_NORMAL = Word(0x00800000)


def exp(x: Word) -> Word:
    """e^x: 2^n e^r with n the integer nearest to x / ln 2."""
    x = minimum(maximum(x, EXP_ENDS[0]), EXP_ENDS[1])
    n = to_int(mul(x, LOG2_E))
    if n is None:
        return FAULT
    # The first step is exact: x and n · LN2_HIGH nearly cancel, and both are multiples of the difference's last place.
    r = fma(from_int(-n), LN2_HIGH, x)
    r = fma(from_int(-n), LN2_LOW, r)
    q = EXP[-1]
    for coefficient in EXP[-2::-1]:
        q = fma(q, r, coefficient)
    return scale(add(fma(q, mul(r, r), r), ONE), n)


def log(x: Word) -> Word:
    """ln x: k ln 2 + ln(1 + f) with x = 2^k (1 + f) and 1 + f from √½ to √2."""
    if is_fault(x) or le(x, ZERO):
        return FAULT
    m, k = _split(x)
    f = sub(m, ONE)
    s = div(f, add(f, TWO))
    z = mul(s, s)
    q = LOG[-1]
    for coefficient in LOG[-2::-1]:
        q = fma(q, z, coefficient)
    # ln(1 + f) = 2 s + s z q(z) = f - (h - s (h + z q(z))) with h = f² / 2, whose large terms are exact; the small ones go
    # first.
    h = mul(mul(f, f), HALF)
    rest = fma(s, fma(z, q, h), mul(from_int(k), LN2_LOW))
    return fma(from_int(k), LN2_HIGH, sub(f, sub(h, rest)))


def sigmoid(x: Word) -> Word:
    """1 / (1 + e^-x), by e^-|x|, which is never too large."""
    t = exp(neg(absolute(x)))
    return div(t if lt(x, ZERO) else ONE, add(t, ONE))


def silu(x: Word) -> Word:
    """x sigmoid(x)."""
    return mul(x, sigmoid(x))


def silu_grad(x: Word) -> Word:
    """The derivative of silu: sigmoid(x) (1 + x sigmoid(-x))."""
    return mul(sigmoid(x), fma(x, sigmoid(neg(x)), ONE))


def rsqrt(x: Word) -> Word:
    """1 / √x; FAULT for zero and less."""
    return div(ONE, sqrt(x))


def _split(x: Word) -> tuple[Word, int]:
    """(m, k) with x = 2^k m and m from √½ to √2, for a positive x; exact."""
    k = 0
    if lt(x, LEAST_NORMAL):
        x, k = scale(x, 24), -24
    over = x - ROOT_HALF
    return Word((over & 0x7FFFFF) + ROOT_HALF), k + (over >> 23)
