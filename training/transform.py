"""The basis in which an update is compressed: the tensors' own values, or the cosine transform of a matrix's tiles (DeMo).

With ``dct`` each tile of a matrix, whole or at an edge, is replaced by its orthonormal two-dimensional DCT-II (arXiv 2411.19870,
section 3): top-k then keeps patterns that go through a tile, and what a receiver puts back touches all of its weights. Vectors
stay as they are: a norm's weights have no order that a cosine could follow, are few, and a basis of up to 4096 points would
cost more than all matrices together.

An orthonormal transform keeps the norm, so that of a tensor's update is that of its coefficients, and it is linear: peers' updates
are added as coefficients and transformed back once. Everybody must get the same bits, so the basis is computed exactly, to 40
digits, and rounded once to fp64; the kernel adds in a fixed order and rounds once to fp32. Values below 2**-100 count as 0 on
both sides.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.cosine import DIGITS, cosine
from training import kernels
from training.layout import MAX_CHUNK, ChunkLayout

_MAX_EDGE = math.isqrt(MAX_CHUNK)
_HALF = _MAX_EDGE // 2


def to_coefficients(flat: NDArray[np.float32], layout: ChunkLayout) -> NDArray[np.float32]:
    """What is compressed of values in the flat layout; the same array where nothing is transformed."""
    if layout.transform == "none":
        return flat
    found = flat.copy()
    kernels.transform(found, layout, _bases(_sizes(layout)), inverse=False)
    return found


def from_coefficients(found: NDArray[np.float32], layout: ChunkLayout) -> NDArray[np.float32]:
    """The values that belong to coefficients, in their place: `found` is overwritten and returned."""
    if layout.transform != "none":
        kernels.transform(found, layout, _bases(_sizes(layout)), inverse=True)
    return found


def cosines(points: int) -> NDArray[np.float64]:
    """(points, points) the orthonormal DCT-II: row k is s * cos(pi * k * (2 j + 1) / (2 points)), exact before one rounding."""
    around = 4 * points  # quarters of a turn are `points` apart
    waves = [cosine(Fraction(min(i, around - i), 2 * points)) for i in range(around)]
    with localcontext(Context(prec=DIGITS)):
        scales = [(Decimal(1 if k == 0 else 2) / points).sqrt() for k in range(points)]
        return np.array(
            [
                [
                    float(scales[k] * _decimal(waves[k * (2 * j + 1) % around]))
                    for j in range(points)
                ]
                for k in range(points)
            ]
        )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


def _sizes(layout: ChunkLayout) -> tuple[int, ...]:
    """The edges of all tiles."""
    tiles = layout.table[layout.table["stride"] > 0]
    return tuple(np.unique(np.concatenate([tiles["rows"], tiles["cols"]])).tolist())


@lru_cache(maxsize=16)
def _bases(sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """(edge, 2, half, half) even and odd cosines at the first half of the points, by number of points."""
    bases = np.zeros((_MAX_EDGE + 1, 2, _HALF, _HALF))
    for points in sizes:
        basis, even, odd = cosines(points), (points + 1) // 2, points // 2
        bases[points, 0, :even, :even] = basis[::2, :even]
        bases[points, 1, :odd, :odd] = basis[1::2, :odd]
    bases.flags.writeable = False
    return bases
