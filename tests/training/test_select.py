"""Selection against its definition, through every kind of vector code that the library holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.training.codec_reference import chunk_values, slow_top
from tests.training.samples import FULL
from training import kernels
from training.errors import TrainingDiverged
from training.kernels.build import build, library_path
from training.layout import ChunkLayout, FlatLayout, cut

# Tiles of every height and width up to a full one, beside full ones; vectors around the widths of processors' own vectors.
SHAPES = {f"tile{edge}": (edge, 65 - edge) for edge in range(1, 65)}
SHAPES |= {"edges": (130, 191), "wide": (64, 640), "exact": (64, 64)}
SHAPES |= {
    f"vector{size}": (size,) for size in (1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 4095, 4097)
}
DENSITIES = (1, 64, 700, 4096)
MANY = {
    "w": (1536, 1472)
}  # more chunks than are left to the cache, so that coming tiles are fetched


def _values(size: int, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
    normal = rng.standard_normal(size)
    steps = np.exp(8 * rng.standard_normal(size // 256 + 1)).repeat(256)[:size]
    few = rng.integers(-3, 4, size)
    return {
        name: np.asarray(values, np.float32)
        for name, values in {
            "normal": normal,
            "heavy tails": rng.standard_cauchy(size),
            "another scale every few rows": normal * steps,
            "all equal": np.full(size, -0.75),
            "few values, so that ties lie across vectors": few,
            "alike in all but the lowest bits": 1 + rng.integers(0, 4096, size) * 2.0**-23,
            "alike in those too, a few": 1 + rng.integers(4000, 4200, size) * 2.0**-23,
            "zeros of both signs": np.where(few > 0, 0.0, -0.0),
            "nearly all zero": np.where(rng.random(size) < 0.002, normal, 0.0),
            "denormals": few * 1e-44,
            "rising": np.arange(size),
            "falling": -np.arange(size, 0, -1.0),
            "up to the largest": np.clip(normal * 3e38, -3.4e38, 3.4e38),
        }.items()
    }


def layout_of(k: int, shapes: dict[str, tuple[int, ...]] = SHAPES) -> ChunkLayout:
    """Shapes of any kind, one after the other."""
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    offsets = dict(zip(shapes, starts, strict=False))
    return cut(FlatLayout(shapes=shapes, offsets=offsets, size=starts[-1]), replace(FULL, k=k))


@lru_cache
def cases(k: int) -> tuple[tuple[str, NDArray[np.float32], list[int]], ...]:
    """(name, values, what the definition says), made once for all libraries."""
    layout = layout_of(k)
    found = []
    for name, values in _values(layout.flat.size, np.random.default_rng(k)).items():
        kept = layout.table["k"].tolist()
        rows = (chunk_values(values, layout, chunk).tolist() for chunk in range(layout.chunks))
        expected = [i for row, few in zip(rows, kept, strict=True) for i in slow_top(row, few)]
        found.append((name, values, expected))
    return tuple(found)


@pytest.fixture(scope="module", params=[0, 256, 512])
def library(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """The kernels with vectors of at most so many bits, in use."""
    path: Path = library_path()
    if request.param < 512:
        path = tmp_path_factory.mktemp("kernels") / f"widest{request.param}.so"
        build(path, f"-DSYN_WIDEST={request.param}")
    with kernels.using(path):
        yield request.param


@pytest.mark.parametrize("k", DENSITIES)
def test_select__every_shape_and_kind_of_values__equals_the_definition(
    library: int, k: int
) -> None:
    layout = layout_of(k)
    for name, values, expected in cases(k):
        assert kernels.select(values, layout).tolist() == expected, name


def test_select__tiles_fetched_ahead__equals_the_definition(library: int) -> None:
    layout = layout_of(64, MANY)
    assert layout.chunks > 512
    values = np.random.default_rng(1).standard_normal(layout.flat.size).astype(np.float32)
    found = kernels.select(values, layout)
    for chunk in (0, 1, 100, layout.chunks - 2, layout.chunks - 1):
        expected = slow_top(chunk_values(values, layout, chunk).tolist(), 64)
        assert found[64 * chunk : 64 * (chunk + 1)].tolist() == expected


@pytest.mark.parametrize(
    "at",
    [
        lambda layout: 0,
        lambda layout: layout.flat.offsets["edges"] + 64 * 191 - 1,
        lambda layout: layout.flat.offsets["edges"] + 130 * 191 - 1,
        lambda layout: layout.flat.offsets["tile33"] + 31,
        lambda layout: layout.flat.size - 1,
    ],
)
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
def test_select__one_value_not_finite__raises_training_diverged(
    library: int, bad: float, at: Callable[[ChunkLayout], int]
) -> None:
    layout = layout_of(64)
    values = np.random.default_rng(2).standard_normal(layout.flat.size).astype(np.float32)
    values[at(layout)] = bad
    with pytest.raises(TrainingDiverged):
        kernels.select(values, layout)
    with pytest.raises(TrainingDiverged):
        kernels.encode(values, layout)


def test_encode__narrower_vectors__gives_the_same_bits(library: int) -> None:
    layout = layout_of(64)
    values = np.random.default_rng(3).standard_t(3, layout.flat.size).astype(np.float32)
    found = kernels.encode(values, layout)
    with kernels.using(library_path()):
        expected = kernels.encode(values, layout)
    assert [array.tobytes() for array in found] == [array.tobytes() for array in expected]
    assert kernels.pack(layout, found) == kernels.pack(layout, expected)
