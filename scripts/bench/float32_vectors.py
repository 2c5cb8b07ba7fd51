"""Operands that binary32 arithmetic may get wrong: border words in every combination, and random ones near every edge.

Operands are arrays of shape (n, 3) of uint32 words; an operation takes the first ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint32]

_SIGN = np.uint32(0x80000000)
_POSITIVE = (
    *(0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF),  # zero and subnormals
    *(0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x1000001),  # the least normal ones
    *(0x1F800000, 0x20000000, 0x2B000000),  # 2^-64, 2^-63, 2^-41
    *(0x33000000, 0x33800000, 0x33800001, 0x34000000, 0x34000001),  # 2^-25, 2^-24, 2^-23
    *(0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F3504F3, 0x3F7FFFFF),  # up to one
    *(0x3F800000, 0x3F800001, 0x3F800002, 0x3FC00000, 0x3FFFFFFF, 0x40000000),  # up to two
    *(0x42B17217, 0x42B17218, 0x42CE8ED0, 0x43000000),  # where exp ends
    *(0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4B800000),  # 2^23, 2^24
    *(0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF, 0x4F800000),  # 2^31, 2^32
    *(0x5F000000, 0x5F800000, 0x7E800000, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF),  # the largest
    *(0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),  # no numbers
)
BORDERS: Words = np.array([word | sign for sign in (0, 1 << 31) for word in _POSITIVE], np.uint32)


def vectors(count: int, operands: int, seed: int, *, most: int = 1 << 16) -> Iterator[Words]:
    """So many in all, at most `most` at a time: first every combination of border words (for fewer than three million triples
    of every fourth one), then random ones of every kind.
    """
    borders = BORDERS[::4] if operands == 3 and count < 3_000_000 else BORDERS
    combinations = len(borders) ** operands
    for start in range(0, min(count, combinations), most):
        places = np.arange(start, min(start + most, count, combinations))
        made = np.zeros((len(places), 3), np.uint32)
        for column in range(operands):
            made[:, column] = borders[places // len(borders) ** column % len(borders)]
        yield made
    rng = np.random.default_rng(seed)
    for start in range(combinations, count, most):
        yield _random(rng, min(most, count - start))


def _random(rng: np.random.Generator, size: int) -> Words:
    """Equal parts of every kind, in random order."""
    share = -(-size // len(_KINDS))
    made = np.concatenate([kind(rng, share) for kind in _KINDS])
    return rng.permutation(made)[:size]


def _uniform(rng: np.random.Generator, size: int) -> Words:
    return rng.integers(0, 1 << 32, (size, 3), np.uint32)


def _words(rng: np.random.Generator, exponents: NDArray[np.int64]) -> Words:
    """Words with these exponents, cut to what there is; their fractions full, sparse, or all ones but a few."""
    shape = exponents.shape
    fractions = rng.integers(0, 1 << 23, shape, np.uint32)
    fractions &= np.uint32(0x7FFFFF) << rng.integers(0, 24, shape, np.uint32)
    fractions ^= np.where(rng.random(shape) < 0.2, np.uint32(0x7FFFFF), np.uint32(0))
    signs = rng.integers(0, 2, shape, np.uint32) << np.uint32(31)
    found: Words = signs | np.clip(exponents, 0, 254).astype(np.uint32) << np.uint32(23) | fractions
    return found


def _near(rng: np.random.Generator, size: int) -> Words:
    """All of a size in which they meet: a · b and c, a and b."""
    b = rng.integers(1, 255, size)
    a = np.where(rng.random(size) < 0.5, 127, b) + rng.integers(-28, 29, size)
    c = a + b - 127 + rng.integers(-30, 31, size)
    return _words(rng, np.stack((a, b, c), 1))


def _cancelling(rng: np.random.Generator, size: int) -> Words:
    """c within a few places of -a · b; a third of them with b near -a."""
    found = _words(rng, rng.integers(40, 190, (size, 3)))
    values = found.view(np.float32)
    with np.errstate(all="ignore"):
        found[:, 2] = (-values[:, 0] * values[:, 1]).view(np.uint32)
    third = size // 3
    found[:third, 1] = found[:third, 0] ^ _SIGN
    found[:third, 1] += rng.integers(-3, 4, third).astype(np.uint32)
    found[:, 2] += rng.integers(-3, 4, size).astype(np.uint32)
    return found


def _dividing(rng: np.random.Generator, size: int) -> Words:
    """a within a few places of b · q and of b²: quotients and roots near ties."""
    found = _words(rng, rng.integers(0, 255, (size, 3)))
    values = found.view(np.float32)
    half = size // 2
    with np.errstate(all="ignore"):
        found[:half, 0] = (values[:half, 1] * values[:half, 2]).view(np.uint32)
        found[half:, 0] = (values[half:, 1] * values[half:, 1]).view(np.uint32)
    found[:, 0] += rng.integers(-2, 3, size).astype(np.uint32)
    return found


def _tiny(rng: np.random.Generator, size: int) -> Words:
    """Products, sums and quotients about the subnormal numbers."""
    a = rng.integers(0, 150, size)
    b = np.where(
        rng.random(size) < 0.5, rng.integers(0, 4, size), 127 - a - rng.integers(-4, 30, size)
    )
    return _words(rng, np.stack((a, b, rng.integers(0, 30, size)), 1))


def _huge(rng: np.random.Generator, size: int) -> Words:
    """Products, sums and quotients about the largest number."""
    a = rng.integers(127, 255, size)
    b = np.where(rng.random(size) < 0.5, 254, 381 - a) + rng.integers(-2, 3, size)
    return _words(rng, np.stack((a, b, rng.integers(225, 255, size)), 1))


def _ordinary(rng: np.random.Generator, size: int) -> Words:
    """What functions and conversions are for: about one, up to 2^33, and integers and halves."""
    found = _words(rng, rng.integers(100, 160, (size, 3)))
    third = size // 3
    halves = rng.integers(-(1 << 24), 1 << 24, third) >> rng.integers(0, 24, third)
    found[:third, 0] = (halves / 2).astype(np.float32).view(np.uint32)
    found[:, 1] = rng.integers(-320, 320, size).astype(np.int32).view(np.uint32)
    return found


def _bordering(rng: np.random.Generator, size: int) -> Words:
    """Border words beside random ones."""
    found = _uniform(rng, size)
    mask = rng.random((size, 3)) < 0.6
    found[mask] = rng.choice(BORDERS, int(mask.sum()))
    return found


_KINDS: tuple[Callable[[np.random.Generator, int], Words], ...] = (
    _uniform,
    _near,
    _cancelling,
    _dividing,
    _tiny,
    _huge,
    _ordinary,
    _bordering,
)
