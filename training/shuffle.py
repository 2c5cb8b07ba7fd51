"""A seeded order of millions of samples that is computed place by place and never held.

A Feistel network permutes the numbers below 4^h, the smallest such power that holds all samples; a value outside of them is put
through it again until it falls inside (cycle walking, Black and Rogaway 2002), so what remains is a permutation of the samples.
The round function is splitmix64's finaliser over the half and a key from sha-256: an even mixture, not a cipher.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

ROUNDS = 8
_DOMAIN = b"syntience.shuffle.v2"


class Shuffle:
    """A bijection of [0, size), the same on every machine for a size and seed."""

    def __init__(self, size: int, seed: int) -> None:
        if not 0 < size < 1 << 62:
            raise ValueError(f"can't shuffle {size} things")
        self.size = size
        self._bits = max(1, ((size - 1).bit_length() + 1) // 2)
        self._keys = [
            np.frombuffer(_digest(size, seed, number)[:8], "<u8")[0] for number in range(ROUNDS)
        ]

    def __call__(self, places: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """(n,) which samples stand at these places."""
        values = self._permute(places)
        while (outside := np.flatnonzero(values >= self.size)).size:
            values[outside] = self._permute(values[outside])
        return values

    def _permute(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """One pass of the network over the numbers below 4^h."""
        mask = np.uint64((1 << self._bits) - 1)
        left, right = values >> np.uint64(self._bits), values & mask
        for key in self._keys:
            left, right = right, left ^ (_mix(right + key) & mask)
        return (left << np.uint64(self._bits)) | right


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _digest(size: int, seed: int, number: int) -> bytes:
    parts = (part.to_bytes(8, "little") for part in (size, seed, number))
    return hashlib.sha256(_DOMAIN + b"".join(parts)).digest()
