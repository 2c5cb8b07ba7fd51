"""The hot loops of codec and optimiser in C, built on first use with whatever compiler is there, and their typed doors.

The same bits on every processor (their sources say why); a processor without AVX-512 or AVX2 is only slower. The library is
built once and kept under a name that holds the source's digest, so that another version is never loaded by mistake.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from training.errors import PayloadError, TrainingDiverged
from training.kernels.build import library_path
from training.layout import ChunkLayout

_NOT_FINITE, _NO_MEMORY = -1, -2

Update: TypeAlias = (
    "tuple[NDArray[np.uint16], NDArray[np.uint8], NDArray[np.float32], NDArray[np.uint8]]"
)
"""A sparse update: indices (E,), codes (E,), scales (C,), ratios (C,)."""


_CHOSEN: ContextVar[Path | None] = ContextVar("chosen kernels", default=None)


@contextmanager
def using(library: Path) -> Iterator[None]:
    """Takes the kernels from another build of them: one that is compared with the usual one, or watched."""
    token = _CHOSEN.set(library)
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def _library() -> ctypes.CDLL:
    return _loaded(_CHOSEN.get() or library_path())


@lru_cache(maxsize=8)
def _loaded(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.syn_pack.restype = ctypes.c_int64
    library.syn_pack_limit.restype = ctypes.c_int64
    library.syn_unpack_memory.restype = ctypes.c_int64
    library.syn_add.restype = None
    library.syn_canonical.restype = None
    library.syn_squares.restype = ctypes.c_double
    library.syn_adamw.restype = None
    library.syn_transform.restype = None
    return library


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    if not array.flags.c_contiguous:
        raise ValueError("a kernel takes contiguous arrays only")
    return ctypes.c_void_p(array.ctypes.data)


def select(flat: NDArray[np.float32], layout: ChunkLayout) -> NDArray[np.uint16]:
    """(E,) ascending positions inside each chunk of its k largest magnitudes; of equal ones the lowest are kept."""
    indices = np.empty(layout.entries, np.uint16)
    failed = _library().syn_select(
        _pointer(_checked(flat, layout)),
        _pointer(layout.table),
        ctypes.c_int64(layout.chunks),
        _pointer(layout.entry_starts),
        _pointer(indices),
    )
    _raise_for(failed)
    return indices


def encode(flat: NDArray[np.float32], layout: ChunkLayout) -> Update:
    """Indices (E,), codes (E,), scales (C,) and ratios (C,) of a flat vector. Raises TrainingDiverged if it is not finite."""
    indices = np.empty(layout.entries, np.uint16)
    codes = np.empty(layout.entries, np.uint8)
    scales = np.empty(layout.chunks, np.float32)
    ratios = np.empty(layout.chunks, np.uint8)
    bounds = np.array([0, *(last for _, last in layout.tensor_chunks.values())], np.int64)
    failed = _library().syn_encode(
        _pointer(_checked(flat, layout)),
        _pointer(layout.table),
        _pointer(layout.entry_starts),
        _pointer(bounds),
        ctypes.c_int64(len(bounds) - 1),
        ctypes.c_int(layout.bits),
        _pointer(indices),
        _pointer(codes),
        _pointer(scales),
        _pointer(ratios),
    )
    _raise_for(failed)
    return indices, codes, scales, ratios


def add(
    flat: NDArray[np.float32],
    layout: ChunkLayout,
    update: Update,
    factors: NDArray[np.float32],
    floor: np.float32,
) -> None:
    """flat[position] += scale * level * factor of the chunk, signed; products below `floor` count as 0."""
    indices, codes, scales, ratios = update
    _library().syn_add(
        _pointer(_checked(flat, layout)),
        _pointer(layout.table),
        ctypes.c_int64(layout.chunks),
        _pointer(layout.entry_starts),
        ctypes.c_int(layout.bits),
        _pointer(indices),
        _pointer(codes),
        _pointer(scales),
        _pointer(ratios),
        _pointer(factors),
        ctypes.c_float(float(floor)),
    )


def transform(
    flat: NDArray[np.float32],
    layout: ChunkLayout,
    bases: NDArray[np.float64],
    *,
    inverse: bool,
) -> None:
    """The cosine transform of every matrix's tiles, in place, by the `bases` of `training.transform`."""
    _library().syn_transform(
        _pointer(_checked(flat, layout)),
        _pointer(layout.table),
        ctypes.c_int64(layout.chunks),
        _pointer(bases),
        ctypes.c_int(inverse),
    )


def canonical(
    layout: ChunkLayout,
    update: Update,
) -> bytes:
    """The fixed-width form of an update, leaf after leaf."""
    out = np.empty(layout.canonical_bytes, np.uint8)
    _library().syn_canonical(
        _pointer(layout.table),
        ctypes.c_int64(layout.chunks),
        ctypes.c_int(layout.bits),
        *(_pointer(array) for array in update),
        _pointer(out),
    )
    return out.tobytes()


def pack(
    layout: ChunkLayout,
    update: Update,
) -> bytes:
    """The entropy-coded form of an update."""
    library = _library()
    entries, chunks = ctypes.c_int64(layout.entries), ctypes.c_int64(layout.chunks)
    out = np.empty(library.syn_pack_limit(entries, chunks), np.uint8)
    size = library.syn_pack(
        _pointer(layout.table),
        chunks,
        entries,
        ctypes.c_int(layout.bits),
        *(_pointer(array) for array in update),
        _pointer(out),
    )
    _raise_for(size)
    return out[:size].tobytes()


def unpack_memory() -> int:
    """Bytes that `unpack` allocates besides what it returns."""
    return int(_library().syn_unpack_memory())


def unpack(data: bytes, layout: ChunkLayout) -> Update:
    """The update in what a stranger sent. Raises PayloadError. Allocates by the layout alone, never by what `data` says."""
    raw = np.frombuffer(data, np.uint8)
    indices = np.empty(layout.entries, np.uint16)
    codes = np.empty(layout.entries, np.uint8)
    scales = np.empty(layout.chunks, np.float32)
    ratios = np.empty(layout.chunks, np.uint8)
    failed = _library().syn_unpack(
        _pointer(raw),
        ctypes.c_int64(len(raw)),
        _pointer(layout.table),
        ctypes.c_int64(layout.chunks),
        ctypes.c_int(layout.bits),
        _pointer(indices),
        _pointer(codes),
        _pointer(scales),
        _pointer(ratios),
    )
    if failed == _NO_MEMORY:
        raise MemoryError
    if failed:
        raise PayloadError("the coded stream is no update of this model")
    return indices, codes, scales, ratios


class AdamWStep(ctypes.Structure):
    """The numbers of one step of AdamW, as kernels/adamw.c takes them, rounded to fp32."""

    _fields_ = tuple(
        (name, ctypes.c_float)
        for name in (
            "scale",
            "keep",
            "beta1",
            "rest1",
            "beta2",
            "rest2",
            "rate",
            "root",
            "epsilon",
        )
    )


def squares(values: NDArray[np.float32]) -> float:
    """The sum of squares in fp64, in a fixed order: 16 lanes, element i in lane i % 16, then the lanes in pairs."""
    total: float = _library().syn_squares(_pointer(_fp32(values)), ctypes.c_int64(values.size))
    return total


def adamw(
    theta: NDArray[np.float32],
    m: NDArray[np.float32],
    v: NDArray[np.float32],
    gradient: NDArray[np.float32],
    step: AdamWStep,
) -> None:
    """One step on arrays of one size, in place: scaled gradient, decayed theta, both moments, corrected update."""
    if not theta.size == m.size == v.size == gradient.size:
        raise ValueError("theta, moments and gradient differ in size")
    _library().syn_adamw(
        *(_pointer(_fp32(array)) for array in (theta, m, v, gradient)),
        ctypes.c_int64(theta.size),
        ctypes.byref(step),
    )


def _fp32(array: NDArray[np.float32]) -> NDArray[np.float32]:
    if array.dtype != np.float32:
        raise ValueError(f"expected float32, got {array.dtype}")
    return array


def _checked(flat: NDArray[np.float32], layout: ChunkLayout) -> NDArray[np.float32]:
    if flat.dtype != np.float32 or flat.shape != (layout.flat.size,):
        raise ValueError(f"expected float32({layout.flat.size},), got {flat.dtype}{flat.shape}")
    return flat


def _raise_for(failed: int) -> None:
    if failed == _NO_MEMORY:
        raise MemoryError
    if failed == _NOT_FINITE:
        raise TrainingDiverged(
            "the update holds NaN or infinity",
            "lower the run's learning rate or start from a zero local state",
        )
