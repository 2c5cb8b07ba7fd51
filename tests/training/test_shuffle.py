"""The order of samples: every sample once, computed place by place, the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.shuffle import ROUNDS, Shuffle

WORD = (1 << 64) - 1


def mix(value: int) -> int:
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & WORD
    return value ^ value >> 31


def slow(size: int, seed: int, place: int) -> int:
    """One place, in plain integers."""
    bits = 1
    while 1 << 2 * bits < size:
        bits += 1
    mask = (1 << bits) - 1
    while True:
        left, right = place >> bits, place & mask
        for number in range(ROUNDS):
            data = b"".join(each.to_bytes(8, "little") for each in (size, seed, number))
            key = int.from_bytes(
                hashlib.sha256(b"syntience.shuffle.v2" + data).digest()[:8], "little"
            )
            left, right = right, left ^ mix((right + key) & WORD) & mask
        place = left << bits | right
        if place < size:
            return place


def places(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.arange(size, dtype=np.uint64)


@given(size=st.integers(1, 5_000), seed=st.integers(0, WORD))
def test_shuffle__any_size__is_a_bijection(size: int, seed: int) -> None:
    assert sorted(Shuffle(size, seed)(places(size)).tolist()) == list(range(size))


@given(size=st.integers(1, (1 << 62) - 1), seed=st.integers(0, WORD), data=st.data())
def test_shuffle__any_place__equals_the_slow_reference(
    size: int, seed: int, data: st.DataObject
) -> None:
    asked = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    found = Shuffle(size, seed)(np.array(asked, np.uint64)).tolist()
    assert found == [slow(size, seed, place) for place in asked]


@pytest.mark.parametrize("size", [1000, 65_536, 65_537])
def test_shuffle__in_parts__gives_the_whole(size: int) -> None:
    shuffle = Shuffle(size, 5)
    parts = [shuffle(places(size)[first : first + 333]) for first in range(0, size, 333)]
    assert np.array_equal(np.concatenate(parts), shuffle(places(size)))


def test_shuffle__asked__leaves_the_places_alone() -> None:
    asked = places(100)
    Shuffle(100, 1)(asked)
    assert np.array_equal(asked, places(100))


def test_shuffle__many_samples__mixes_evenly() -> None:
    """Each tenth of the order draws alike from each tenth of the stream, and neighbours part."""
    size = 100_000
    order = Shuffle(size, 9)(places(size)).astype(np.int64)
    table, _, _ = np.histogram2d(np.arange(size), order, bins=10)
    chi2 = float(((table - size / 100) ** 2 / (size / 100)).sum())
    assert chi2 < 135  # 81 degrees of freedom: 1 in 5,000 by chance, and the seed is fixed
    assert abs(float(np.corrcoef(order[:-1], order[1:])[0, 1])) < 0.02
    assert (np.abs(np.diff(order)) == 1).sum() < 20


def test_shuffle__other_seed__is_another_order() -> None:
    orders = [tuple(Shuffle(50, seed)(places(50)).tolist()) for seed in range(20)]
    assert len(set(orders)) == 20


@pytest.mark.parametrize("size", [0, -1, 1 << 62])
def test_shuffle__impossible_size__raises(size: int) -> None:
    with pytest.raises(ValueError, match="can't shuffle"):
        Shuffle(size, 0)
