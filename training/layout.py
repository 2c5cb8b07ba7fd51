"""How the tensors of a model lie in one flat vector and how that vector is cut into chunks.

The flat vector holds the tensors in the order of their names. A chunk never crosses a tensor: each tensor is cut into pieces
of `codec.chunk` values in row-major order, the last one possibly shorter. A short chunk of n values keeps
ceil(n * k / chunk) of them, so that its density is that of a full one and the layout follows from the spec alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from protocol.spec import CodecSpec, ModelSpec
from training.parameters import Parameters, Shape, shapes

INDEX_BITS = 12
CODE_BITS = 2
SCALE_BYTES = 4
MAX_CHUNK = 1 << INDEX_BITS
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkGroup:
    """All chunks with the same size and k, so that they are worked on as one matrix."""

    size: int
    k: int
    chunks: NDArray[np.int64]  # (C,) chunk numbers

    @property
    def index_bytes(self) -> int:
        """Bytes of a leaf's packed indices."""
        return (self.k * INDEX_BITS + 7) // 8

    @property
    def code_bytes(self) -> int:
        """Bytes of a leaf's packed codes."""
        return (self.k * CODE_BITS + 7) // 8

    @property
    def leaf_bytes(self) -> int:
        """Bytes of a whole leaf."""
        return self.index_bytes + self.code_bytes + SCALE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkLayout:
    """The chunks of a model in payload order. `C` chunks keep `E` entries in all.

    starts (C,) position of a chunk in the flat vector · entry_starts (C+1,) its first entry · byte_starts (C+1,) its first
    byte in the payload · chunk_of_entry (E,) · tensor_chunks: name -> (first chunk, one past the last)
    """

    flat: FlatLayout
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    entry_starts: NDArray[np.int64]
    byte_starts: NDArray[np.int64]
    chunk_of_entry: NDArray[np.int64]
    tensor_chunks: Mapping[str, tuple[int, int]]
    groups: tuple[ChunkGroup, ...]

    @property
    def chunks(self) -> int:
        """C, the number of chunks."""
        return len(self.sizes)

    @property
    def entries(self) -> int:
        """E, the number of values kept."""
        return int(self.entry_starts[-1])

    @property
    def payload_bytes(self) -> int:
        """Exact size of every payload."""
        return int(self.byte_starts[-1])


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
    if codec.version != 1 or codec.bits != CODE_BITS:
        raise ValueError(
            f"codec version {codec.version} with {codec.bits} bits is not known here (known: version 1, 2 bits)"
        )
    if not (1 <= codec.chunk <= MAX_CHUNK and 1 <= codec.k <= codec.chunk):
        raise ValueError(f"chunk {codec.chunk} and k {codec.k} don't fit {INDEX_BITS}-bit indices")
    flat = flat_layout(model)
    sizes: list[int] = []
    starts: list[int] = []
    tensor_chunks: dict[str, tuple[int, int]] = {}
    for name, shape in flat.shapes.items():
        total = count(shape)
        first = len(sizes)
        for start in range(0, total, codec.chunk):
            starts.append(flat.offsets[name] + start)
            sizes.append(min(codec.chunk, total - start))
        tensor_chunks[name] = (first, len(sizes))
    return _assemble(flat, np.array(sizes), np.array(starts), tensor_chunks, codec)


def _assemble(
    flat: FlatLayout,
    sizes: NDArray[np.int64],
    starts: NDArray[np.int64],
    tensor_chunks: Mapping[str, tuple[int, int]],
    codec: CodecSpec,
) -> ChunkLayout:
    ks = -(-sizes * codec.k // codec.chunk)  # ceil; at least 1 because size and k are
    groups = tuple(
        ChunkGroup(
            size=int(size),
            k=int(-(-size * codec.k // codec.chunk)),
            chunks=np.flatnonzero(sizes == size),
        )
        for size in np.unique(sizes)
    )
    leaf_bytes = np.zeros_like(sizes)
    for group in groups:
        leaf_bytes[group.chunks] = group.leaf_bytes
    return ChunkLayout(
        flat=flat,
        sizes=sizes,
        starts=starts,
        entry_starts=np.concatenate([[0], np.cumsum(ks)]),
        byte_starts=np.concatenate([[0], np.cumsum(leaf_bytes)]),
        chunk_of_entry=np.repeat(np.arange(len(sizes)), ks),
        tensor_chunks=tensor_chunks,
        groups=groups,
    )
