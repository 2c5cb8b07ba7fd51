"""How the tensors of a model lie in one flat vector and how they are cut into chunks.

The flat vector holds the tensors in the order of their names. A chunk never crosses a tensor: a matrix is cut into square tiles
of `codec.chunk` values (rows of tiles from the top, each from the left), a vector into pieces of so many; at the edges they are
smaller. A chunk of n values keeps ceil(n * k / chunk) of them, so that its density is that of a full one and the layout
follows from the spec alone. Inside a chunk values count row by row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec
from training.parameters import Parameters, Shape, shapes

CODEC_VERSION = 2
INDEX_BITS = 12
TAIL_BYTES = 5  # scale, ratio
HEADER_BYTES = 16
TABLE_BYTES = 12 + 1024  # lengths and frequencies of the coded stream, at most
DECODER_BYTES = (
    128 << 10
)  # what decoding takes whatever the model: tables by slot, the header that is expected
ENTRY_BYTES, CHUNK_BYTES = 2 + 1, 4 + 1  # index and code; scale and ratio
MAX_CHUNK = 1 << INDEX_BITS
BITS = (1, 2, 4, 8)
# A scale is +0 or lies between these, and leaves so many low bits of its fp32 mantissa 0.
MIN_SCALE = np.float32(2.0**-40)
MAX_SCALE = np.float32(2.0**40)
SCALE_SHIFT = 17
RATIOS = 16
CHUNK = np.dtype(
    [
        ("start", "<i8"),  # of its first value in the flat vector
        ("stride", "<i8"),  # from one of its rows to the next; 0 for a piece of a vector
        ("rows", "<i4"),
        ("cols", "<i4"),
        ("k", "<i4"),
    ],
    align=True,
)
"""A chunk as the kernels take it."""
_BUILDING = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatLayout:
    """Where each tensor lies in the flat vector."""

    shapes: Mapping[str, Shape]
    offsets: Mapping[str, int]
    size: int

    def flatten(self, params: Parameters) -> NDArray[np.float32]:
        """A new vector with all tensors in order."""
        flat = np.empty(self.size, np.float32)
        for name, shape in self.shapes.items():
            if params[name].shape != shape:
                raise ValueError(f"{name} has shape {params[name].shape}, expected {shape}")
            start = self.offsets[name]
            flat[start : start + params[name].size] = params[name].reshape(-1)
        return flat

    def split(self, flat: NDArray[np.float32]) -> Parameters:
        """Views into `flat`, one per tensor."""
        starts = self.offsets
        return {
            name: flat[starts[name] : starts[name] + count(shape)].reshape(shape)
            for name, shape in self.shapes.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkLayout:
    """The chunks of a model in payload order. `C` chunks keep `E` entries in all.

    table (C,) of CHUNK · sizes (C,) values in a chunk · entry_starts (C+1,) its first entry · byte_starts (C+1,) its first
    byte in the canonical form · chunk_of_entry (E,) · tensor_chunks: name -> (first chunk, one past the last)
    """

    flat: FlatLayout
    bits: int
    transform: str
    table: NDArray[np.void]
    sizes: NDArray[np.int64]
    entry_starts: NDArray[np.int64]
    byte_starts: NDArray[np.int64]
    chunk_of_entry: NDArray[np.int64]
    tensor_chunks: Mapping[str, tuple[int, int]]

    @property
    def chunks(self) -> int:
        """C, the number of chunks."""
        return len(self.table)

    @property
    def entries(self) -> int:
        """E, the number of values kept."""
        return int(self.entry_starts[-1])

    @property
    def levels(self) -> int:
        """Magnitudes that a value can have in its chunk."""
        return 1 << (self.bits - 1)

    @property
    def canonical_bytes(self) -> int:
        """Exact size of every payload's canonical form."""
        return int(self.byte_starts[-1])

    @property
    def transport_bytes(self) -> int:
        """The most bytes that a payload may take on the wire: coding never costs more than the canonical form."""
        return HEADER_BYTES + TABLE_BYTES + self.canonical_bytes

    @property
    def decoding_bytes(self) -> int:
        """The most memory that decoding takes beyond the bytes that came: a copy of the stream, the arrays, the decoder's own."""
        arrays = self.entries * ENTRY_BYTES + self.chunks * CHUNK_BYTES
        return self.transport_bytes + arrays + DECODER_BYTES

    def positions(self, indices: NDArray[np.uint16]) -> NDArray[np.int64]:
        """(E,) where entries with these indices inside their chunks lie in the flat vector."""
        chunk = self.table[self.chunk_of_entry]
        row, col = np.divmod(indices.astype(np.int64), chunk["cols"])
        where: NDArray[np.int64] = chunk["start"] + row * chunk["stride"] + col
        return where


def count(shape: Shape) -> int:
    """Number of elements."""
    total = 1
    for extent in shape:
        total *= extent
    return total


@lru_cache(maxsize=16)
def flat_layout(model: ModelSpec) -> FlatLayout:
    """The one flat layout of a model."""
    offsets: dict[str, int] = {}
    size = 0
    for name, shape in shapes(model).items():
        offsets[name] = size
        size += count(shape)
    return FlatLayout(shapes=shapes(model), offsets=offsets, size=size)


def chunk_layout(model: ModelSpec, codec: CodecSpec) -> ChunkLayout:
    """The one layout of a run's payloads. Raises ValueError for a codec that this version can't speak.

    Layouts are compared by identity, and payloads are decoded in several threads at once: a cache alone would let two
    threads that both ask first build one each.
    """
    with _BUILDING:
        return _chunk_layout(model, codec)


@lru_cache(maxsize=16)
def _chunk_layout(model: ModelSpec, codec: CodecSpec) -> ChunkLayout:
    if codec.version != CODEC_VERSION or codec.bits not in BITS:
        raise ValueError(
            f"codec version {codec.version} with {codec.bits} bits is not known here "
            f"(known: version {CODEC_VERSION}, {', '.join(map(str, BITS))} bits)"
        )
    edge = math.isqrt(codec.chunk)
    if not (1 <= codec.chunk <= MAX_CHUNK and edge * edge == codec.chunk):
        raise ValueError(f"chunk {codec.chunk} is no square number up to {MAX_CHUNK}")
    return cut(flat_layout(model), codec)


def cut(flat: FlatLayout, codec: CodecSpec) -> ChunkLayout:
    """The chunks of any flat vector, by a codec that was checked."""
    rows: list[tuple[int, ...]] = []
    tensor_chunks: dict[str, tuple[int, int]] = {}
    for name, shape in flat.shapes.items():
        first = len(rows)
        for start, stride, height, width in _tiles(shape, codec.chunk):
            k = -(-height * width * codec.k // codec.chunk)  # ceil; at least 1
            rows.append((flat.offsets[name] + start, stride, height, width, k))
        tensor_chunks[name] = (first, len(rows))
    table = np.array(rows, CHUNK)
    kept = table["k"].astype(np.int64)
    leaf_bytes = (kept * INDEX_BITS + 7) // 8 + (kept * codec.bits + 7) // 8 + TAIL_BYTES
    return ChunkLayout(
        flat=flat,
        bits=codec.bits,
        transform=codec.transform,
        table=table,
        sizes=table["rows"].astype(np.int64) * table["cols"],
        entry_starts=np.concatenate([[0], np.cumsum(kept)]),
        byte_starts=np.concatenate([[0], np.cumsum(leaf_bytes)]),
        chunk_of_entry=np.repeat(np.arange(len(table)), kept),
        tensor_chunks=tensor_chunks,
    )


def _tiles(shape: Shape, chunk: int) -> Iterator[tuple[int, int, int, int]]:
    """(start, stride, rows, cols) of every chunk of a tensor."""
    if len(shape) < 2:
        total = count(shape)
        for start in range(0, total, chunk):
            yield start, 0, 1, min(chunk, total - start)
        return
    height, width, edge = shape[0], count(shape[1:]), math.isqrt(chunk)
    for top in range(0, height, edge):
        for left in range(0, width, edge):
            yield top * width + left, width, min(edge, height - top), min(edge, width - left)
