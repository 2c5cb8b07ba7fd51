"""The cosine transform of a tile once more, slow and obvious: by its definition, and in the order of training/kernels/transform.c."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from training.layout import ChunkLayout
from training.transform import cosines

TINY = 2.0**-100


def definition(tile: NDArray[np.float32]) -> NDArray[np.float64]:
    """The orthonormal DCT-II of (rows, cols) values, coefficient by coefficient; library cosines, so within rounding only."""
    rows, cols = tile.shape
    found = np.zeros(tile.shape)
    for u in range(rows):
        for v in range(cols):
            for r in range(rows):
                for c in range(cols):
                    found[u, v] += tile[r, c] * _wave(u, r, rows) * _wave(v, c, cols)
    return found


def _wave(k: int, j: int, points: int) -> float:
    scale = math.sqrt((1 if k == 0 else 2) / points)
    return scale * math.cos(math.pi * k * (2 * j + 1) / (2 * points))


def slow_transform(
    flat: NDArray[np.float32], layout: ChunkLayout, *, inverse: bool
) -> NDArray[np.float32]:
    """The whole of `kernels.transform`, to the bit."""
    found = flat.copy()
    for chunk in layout.table:
        start, stride, rows, cols = (int(chunk[f]) for f in ("start", "stride", "rows", "cols"))
        if stride == 0:
            continue
        places = start + stride * np.arange(rows)[:, None] + np.arange(cols)
        found[places] = slow_tile(found[places], inverse=inverse)
    return found


def slow_tile(tile: NDArray[np.float32], *, inverse: bool) -> NDArray[np.float32]:
    """Along each row, then along each column, in fp64; small values are 0 before and after."""
    one = _back if inverse else _forth
    along_rows = one(_significant(tile.astype(np.float64)).T).T
    return _significant(one(along_rows)).astype(np.float32)


def _significant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(values) < TINY, 0.0, values)


def _forth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column (n, m) by itself: even cosines of the sums of mirrored points, odd ones of their differences."""
    n = len(values)
    basis, half = cosines(n), n // 2
    sums = [values[j] + values[n - 1 - j] for j in range(half)] + [values[half]] * (n % 2)
    differences = [values[j] - values[n - 1 - j] for j in range(half)]
    found = np.zeros_like(values)
    for k in range(n):
        for j, folded in enumerate(differences if k % 2 else sums):
            found[k] += basis[k, j] * folded
    return found


def _back(found: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(found)
    basis, half = cosines(n), n // 2
    values = np.zeros_like(found)
    for j in range(half + n % 2):
        even, odd = np.zeros_like(found[0]), np.zeros_like(found[0])
        for k in range(0, n, 2):
            even += basis[k, j] * found[k]
        for k in range(1, n, 2):
            odd += basis[k, j] * found[k]
        if j < half:
            values[j], values[n - 1 - j] = even + odd, even - odd
        else:
            values[j] = even
    return values
