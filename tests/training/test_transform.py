"""The cosine transform: orthonormal, linear, invertible, the definition's values, and the same bits everywhere."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.specs import MODEL
from tests.training.samples import DCT, FULL, SMALL, random_tensors, torch_settings
from tests.training.transform_reference import definition, slow_tile, slow_transform
from training.layout import ChunkLayout, FlatLayout, chunk_layout, cut
from training.transform import cosines, from_coefficients, to_coefficients

WHOLE = replace(FULL, transform="dct")
edges = st.integers(1, 64)
seeds = st.integers(0, 2**32 - 1)


def layout_of(*shapes: tuple[int, ...]) -> ChunkLayout:
    """A layout of tensors of these shapes, cut into whole chunks."""
    offsets = np.cumsum([0, *(math.prod(shape) for shape in shapes)]).tolist()
    names = [f"tensor {number}" for number in range(len(shapes))]
    flat = FlatLayout(
        shapes=dict(zip(names, shapes, strict=True)),
        offsets=dict(zip(names, offsets, strict=False)),
        size=offsets[-1],
    )
    return cut(flat, WHOLE)


def normal(seed: int, *shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def transformed(tile: NDArray[np.float32], *, inverse: bool = False) -> NDArray[np.float32]:
    """One tile by the kernel."""
    layout = layout_of(tile.shape)
    flat = tile.reshape(-1)
    found = from_coefficients(flat.copy(), layout) if inverse else to_coefficients(flat, layout)
    return found.reshape(tile.shape)


def fft_dct(tile: NDArray[np.float32]) -> NDArray[np.float64]:
    """The same by a Fourier transform of the mirrored values, in fp64."""
    found = torch.from_numpy(tile.astype(np.float64))
    for axis in (0, 1):
        n = found.shape[axis]
        spectrum = torch.fft.fft(torch.cat([found, found.flip(axis)], axis), dim=axis)
        k = torch.arange(n, dtype=torch.float64).reshape((-1, 1) if axis == 0 else (1, -1))
        turned = spectrum.narrow(axis, 0, n) * torch.exp(-0.5j * math.pi * k / n)
        scale = torch.where(k == 0, math.sqrt(0.25 / n), math.sqrt(0.5 / n))
        found = turned.real * scale
    return found.numpy()


@pytest.mark.parametrize("points", range(1, 65))
def test_cosines__every_size__are_orthonormal_and_the_librarys_up_to_rounding(points: int) -> None:
    basis = cosines(points)
    assert np.abs(basis @ basis.T - np.eye(points)).max() < 1e-15 * max(8, points)
    k, j = np.mgrid[:points, :points]
    scale = np.where(k == 0, math.sqrt(1 / points), math.sqrt(2 / points))
    by_library = scale * np.cos(np.pi * k * (2 * j + 1) / (2 * points))
    assert np.abs(basis - by_library).max() < 1e-13
    # A cosine of a quarter turn is 0 and not about 0; the two halves mirror each other to the bit.
    assert (np.abs(basis[np.abs(by_library) < 1e-13]) == 0).all()
    assert (basis[:, ::-1] == basis * np.where(k % 2 == 0, 1, -1)).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (8, 8), (5, 12), (16, 3)])
def test_coefficients__small_tile__are_those_of_the_definition(shape: tuple[int, int]) -> None:
    tile = normal(1, *shape)
    assert np.allclose(transformed(tile), definition(tile), rtol=1e-6, atol=1e-6)


@given(edges, edges, seeds)
@settings(max_examples=60)
def test_coefficients__any_tile__are_those_of_a_fourier_transform(
    rows: int, cols: int, seed: int
) -> None:
    tile = normal(seed, rows, cols)
    assert np.allclose(transformed(tile), fft_dct(tile), rtol=1e-6, atol=1e-6)


@given(edges, edges, seeds, st.booleans())
@settings(max_examples=30)
def test_transform__any_tile__has_the_bits_of_the_slow_reference(
    rows: int, cols: int, seed: int, inverse: bool
) -> None:
    tile = normal(seed, rows, cols)
    assert (
        transformed(tile, inverse=inverse).tobytes() == slow_tile(tile, inverse=inverse).tobytes()
    )


@given(edges, edges, seeds, st.sampled_from([1e-20, 1e-3, 1.0, 1e20]))
def test_values__of_coefficients__are_where_they_came_from(
    rows: int, cols: int, seed: int, scale: float
) -> None:
    tile = normal(seed, rows, cols) * np.float32(scale)
    again = transformed(transformed(tile), inverse=True)
    assert np.abs(again - tile).max() <= 2.0**-22 * np.abs(tile).max()


@given(edges, edges, seeds)
def test_coefficients__any_tile__keep_the_energy(rows: int, cols: int, seed: int) -> None:
    tile = normal(seed, rows, cols)
    energies = [
        float(np.square(each.astype(np.float64)).sum()) for each in (tile, transformed(tile))
    ]
    assert energies[0] == pytest.approx(energies[1], rel=1e-6)


@given(edges, edges, seeds)
def test_values__of_a_sum__are_the_sum_of_values(rows: int, cols: int, seed: int) -> None:
    a, b = normal(seed, rows, cols), normal(seed + 1, rows, cols)
    together = transformed(a + b, inverse=True)
    apart = transformed(a, inverse=True) + transformed(b, inverse=True)
    assert np.allclose(together, apart, rtol=1e-5, atol=1e-5)


def test_coefficients__constant_tile__are_one_number() -> None:
    found = transformed(np.full((64, 40), 0.5, np.float32))
    assert found[0, 0] == pytest.approx(0.5 * math.sqrt(64 * 40))
    found[0, 0] = 0.0
    assert np.abs(found).max() < 1e-14


@pytest.mark.parametrize("codec", [WHOLE, DCT, replace(DCT, chunk=9, k=1)])
def test_transform__a_model__is_that_of_each_tile_and_leaves_vectors_alone(codec: object) -> None:
    assert isinstance(codec, type(WHOLE))
    layout = chunk_layout(MODEL, codec)
    flat = layout.flat.flatten(random_tensors(3))
    before = flat.copy()
    found = to_coefficients(flat, layout)
    assert flat.tobytes() == before.tobytes(), "the values are left alone"
    assert found.tobytes() == slow_transform(flat, layout, inverse=False).tobytes()
    assert from_coefficients(flat, layout) is flat
    assert flat.tobytes() == slow_transform(before, layout, inverse=True).tobytes()
    for name, tensor in layout.flat.split(found).items():
        same = np.array_equal(tensor, layout.flat.split(before)[name])
        assert same == (tensor.ndim == 1), name


def test_transform__none__is_the_array_itself() -> None:
    layout = chunk_layout(MODEL, SMALL)
    flat = layout.flat.flatten(random_tensors(3))
    assert to_coefficients(flat, layout) is flat
    assert from_coefficients(flat, layout) is flat


@given(seeds, st.sampled_from([1.0, 2.0**-99, 2.0**-126, 2.0**-140]))
@settings(max_examples=20)
def test_transform__flush_to_zero_and_threads__give_the_same_bits(seed: int, scale: float) -> None:
    tile = normal(seed, 64, 33) * np.float32(scale)
    outcomes = set()
    for threads, flush in ((1, False), (2, False), (1, True)):
        with torch_settings(threads, flush):
            outcomes.add((transformed(tile).tobytes(), transformed(tile, inverse=True).tobytes()))
    assert len(outcomes) == 1


def test_transform__values_that_are_not_finite__stay_so() -> None:
    for bad in (np.nan, np.inf):
        tile = normal(1, 20, 20)
        tile[3, 4] = bad
        assert not np.isfinite(transformed(tile)).all()


def test_transform__golden_bits() -> None:
    """Another compiler, another processor, another day: these digests stay."""
    layout = layout_of((130, 70), (9,), (3, 200))
    flat = (np.arange(layout.flat.size) * 2654435761 % 2**32 / 2**32 - 0.5).astype(np.float32)
    found = to_coefficients(flat, layout)
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == "07179aa8415901c0"
    assert (
        hashlib.sha256(from_coefficients(found, layout).tobytes()).hexdigest()[:16]
        == "02332acd21b39ce9"
    )
