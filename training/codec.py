"""The compressed pseudo-gradient: chunked top-k, symmetric 2-bit values, one scale per chunk (after SparseLoCo, arXiv 2508.15706).

A value is sign * LEVELS[level] * scale of its chunk. There is no level at zero: top-k leaves nothing there, so a level spent on
it would carry no information. Error feedback subtracts what the receivers will decode, never the exact values.

Canonical bytes, chunk after chunk (one Merkle leaf each): k ascending 12-bit indices, then k 2-bit codes (bit 0 sign, bit 1
level), each field packed from the low bit up and padded with zero bits to a byte, then the scale as fp32 little-endian.
A chunk of zeros has scale +0, codes 0 and the indices 0..k-1. One update has exactly one encoding.

The scale is +0 or lies in [MIN_SCALE, MAX_SCALE]: no ratio of two norms is subnormal, no sum overflows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from protocol.ids import Hash32
from protocol.spec import CodecSpec, ModelSpec
from training.errors import PayloadError, TrainingDiverged
from training.layout import CODE_BITS, INDEX_BITS, ChunkGroup, ChunkLayout, chunk_layout
from training.parameters import Parameters
from training.roots import leaf_hashes, tree_root

# Least error over what was measured: the tail of a Gaussian wants about 0.8, of a Laplacian 0.7, AdamW rounds of a small Llama 0.9.
# Three binary digits keep it and its square exact.
LOW_LEVEL = 0.75
LEVELS = np.array(
    [LOW_LEVEL, -LOW_LEVEL, 1.0, -1.0], np.float32
)  # by code: bit 0 = negative, bit 1 = high
MIN_SCALE = np.float32(2.0**-40)
MAX_SCALE = np.float32(2.0**40)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Payload:
    """A decoded update. Arrays are read-only; entries run chunk by chunk, ascending inside a chunk."""

    layout: ChunkLayout
    indices: NDArray[np.uint16]  # (E,) position inside the chunk
    codes: NDArray[np.uint8]  # (E,)
    scales: NDArray[np.float32]  # (C,)

    def __post_init__(self) -> None:
        for array in (self.indices, self.codes, self.scales):
            array.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Payload)
            and self.layout is other.layout
            and self.to_bytes() == other.to_bytes()
        )

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def positions(self) -> NDArray[np.int64]:
        """(E,) where each entry lies in the flat vector; no position twice."""
        return self.layout.starts[self.layout.chunk_of_entry] + self.indices

    @property
    def values(self) -> NDArray[np.float32]:
        """(E,) the decoded values: one fp32 product each."""
        values: NDArray[np.float32] = self.scales[self.layout.chunk_of_entry] * LEVELS[self.codes]
        return values

    def dense(self) -> Parameters:
        """The decoded update, zeros where nothing was sent."""
        return self.layout.flat.split(self.dense_flat())

    def dense_flat(self) -> NDArray[np.float32]:
        """The same as one flat vector."""
        flat = np.zeros(self.layout.flat.size, np.float32)
        flat[self.positions] = self.values
        return flat

    def to_bytes(self) -> bytes:
        """The canonical bytes: what is hashed, and what travels."""
        out = np.zeros(self.layout.payload_bytes, np.uint8)
        for group in self.layout.groups:
            entries = self.layout.entry_starts[group.chunks][:, None] + np.arange(group.k)
            columns = [
                _pack(self.indices[entries], INDEX_BITS),
                _pack(self.codes[entries].astype(np.uint16), CODE_BITS),
                self.scales[group.chunks].astype("<f4").view(np.uint8).reshape(-1, 4),
            ]
            out[_byte_positions(self.layout, group)] = np.concatenate(columns, axis=1)
        return out.tobytes()

    def leaves(self) -> list[bytes]:
        """The data of every Merkle leaf: one chunk's canonical bytes each."""
        data, starts = self.to_bytes(), self.layout.byte_starts.tolist()
        return [data[start:end] for start, end in itertools.pairwise(starts)]

    def leaf(self, chunk: int) -> bytes:
        """The data of one Merkle leaf."""
        starts = self.layout.byte_starts
        return self.to_bytes()[starts[chunk] : starts[chunk + 1]]

    def root(self) -> Hash32:
        """The payload root that a submission names."""
        return tree_root(leaf_hashes(self.leaves()))


def encode(accumulated: Parameters, model: ModelSpec, codec: CodecSpec) -> Payload:
    """Compresses `accumulated` (feedback plus pseudo-gradient). Equal magnitudes: the lowest index is kept.

    Raises TrainingDiverged if a value is NaN or infinite.
    """
    layout = chunk_layout(model, codec)
    return encode_flat(layout.flat.flatten(accumulated), layout)


def encode_flat(flat: NDArray[np.float32], layout: ChunkLayout) -> Payload:
    """`encode` for values that already lie in one flat vector."""
    if not np.isfinite(flat).all():
        raise TrainingDiverged(
            "the update holds NaN or infinity",
            "lower the run's learning rate or start from a zero local state",
        )
    indices = np.zeros(layout.entries, np.uint16)
    codes = np.zeros(layout.entries, np.uint8)
    scales = np.zeros(layout.chunks, np.float32)
    for group in layout.groups:
        values = flat[layout.starts[group.chunks][:, None] + np.arange(group.size)]  # (C, size)
        kept = select_top(values, group.k)
        entries = layout.entry_starts[group.chunks][:, None] + np.arange(group.k)
        chosen, scale = _quantise(np.take_along_axis(values, kept, axis=1))
        empty = scale == 0
        kept[empty] = np.arange(group.k)
        chosen[empty] = 0
        indices[entries], codes[entries], scales[group.chunks] = kept, chosen, scale
    return Payload(layout=layout, indices=indices, codes=codes, scales=scales)


def select_top(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """(C, k) ascending indices of the k largest magnitudes of each row; ties go to the lowest index."""
    magnitude = np.abs(values)
    threshold = np.partition(magnitude, -k, axis=1)[:, -k, None]  # (C, 1) the k-th largest
    above = magnitude > threshold
    at = magnitude == threshold
    room = k - np.count_nonzero(above, axis=1)[:, None]
    mask = above | (at & (np.cumsum(at, axis=1) <= room))
    return np.nonzero(mask)[1].reshape(len(values), k)


def _quantise(
    kept: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Codes (C, k) and scales (C,) with the least squared error for the two fixed levels.

    With the magnitudes sorted, the best assignment gives the high level to the j largest. For each j the best scale is
    s = <a, l> / <l, l>, and the error falls by <a, l>^2 / <l, l>: take the best of the k + 1 values of j. fp64 in a fixed order.
    """
    rows, k = kept.shape
    magnitude = np.abs(kept.astype(np.float64))
    order = np.argsort(-magnitude, axis=1, kind="stable")
    sums = np.zeros((rows, k + 1))
    np.cumsum(np.take_along_axis(magnitude, order, axis=1), axis=1, out=sums[:, 1:])
    dot = LOW_LEVEL * sums[:, -1:] + (1.0 - LOW_LEVEL) * sums  # (C, k+1) <a, l>
    square = LOW_LEVEL**2 * k + (1.0 - LOW_LEVEL**2) * np.arange(k + 1)  # (k+1,) <l, l>
    high = np.argmax(dot * dot / square, axis=1)  # (C,) the first of equals
    exact = np.take_along_axis(dot, high[:, None], axis=1)[:, 0] / square[high]
    scale = np.minimum(exact, float(MAX_SCALE)).astype(np.float32)
    scale[scale < MIN_SCALE] = 0.0
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(k), order.shape), axis=1)
    codes = (rank < high[:, None]).astype(np.uint8) * 2 + np.signbit(kept).astype(np.uint8)
    return codes.astype(np.uint8), scale


def decode_payload(data: bytes, model: ModelSpec, codec: CodecSpec) -> Payload:
    """The update in `data`, which comes from an adversary. Raises PayloadError unless it is canonical to the bit.

    The length is checked before anything is allocated; what is allocated then depends on the model alone.
    """
    layout = chunk_layout(model, codec)
    if len(data) != layout.payload_bytes:
        raise PayloadError(f"{len(data)} bytes, expected {layout.payload_bytes}")
    raw = np.frombuffer(data, np.uint8)
    indices = np.zeros(layout.entries, np.uint16)
    codes = np.zeros(layout.entries, np.uint8)
    scales = np.zeros(layout.chunks, np.float32)
    for group in layout.groups:
        leaf = raw[_byte_positions(layout, group)]  # (C, leaf_bytes)
        code_start, scale_start = (
            group.index_bytes,
            group.index_bytes + group.code_bytes,
        )
        entries = layout.entry_starts[group.chunks][:, None] + np.arange(group.k)
        index = _unpack(leaf[:, :code_start], INDEX_BITS, group.k)
        code = _unpack(leaf[:, code_start:scale_start], CODE_BITS, group.k).astype(np.uint8)
        scale = np.ascontiguousarray(leaf[:, scale_start:]).view("<f4")[:, 0].astype(np.float32)
        _check_group(group, index, code, scale)
        indices[entries], codes[entries], scales[group.chunks] = index, code, scale
    return Payload(layout=layout, indices=indices, codes=codes, scales=scales)


def _check_group(
    group: ChunkGroup,
    index: NDArray[np.uint16],
    code: NDArray[np.uint8],
    scale: NDArray[np.float32],
) -> None:
    if (index >= group.size).any():
        raise PayloadError("an index lies outside its chunk")
    if (index[:, 1:] <= index[:, :-1]).any():
        raise PayloadError("indices are not strictly ascending")
    empty = scale.view(np.uint32) == 0  # +0 only: -0 would be a second encoding
    with np.errstate(invalid="ignore"):
        if not (empty | ((scale >= MIN_SCALE) & (scale <= MAX_SCALE))).all():
            raise PayloadError("a scale is out of range")
    if code[empty].any() or (index[empty] != np.arange(group.k)).any():
        raise PayloadError("an empty chunk is not in canonical form")


def index_overlap(a: Payload, b: Payload) -> float:
    """Mean share of kept indices that two payloads have in common, chunks weighted by size. Empty chunks share nothing."""
    if a.layout is not b.layout:
        raise ValueError("payloads of different layouts")
    layout = a.layout
    both = layout.chunk_of_entry[np.isin(a.positions, b.positions, assume_unique=True)]
    shared = np.bincount(both, minlength=layout.chunks).astype(np.float64)
    shared[(a.scales == 0) | (b.scales == 0)] = 0.0
    return float(
        np.cumsum(layout.sizes * shared / np.diff(layout.entry_starts))[-1] / layout.flat.size
    )


def _byte_positions(layout: ChunkLayout, group: ChunkGroup) -> NDArray[np.int64]:
    positions: NDArray[np.int64] = layout.byte_starts[group.chunks][:, None] + np.arange(
        group.leaf_bytes
    )
    return positions


def _pack(numbers: NDArray[np.uint16], bits: int) -> NDArray[np.uint8]:
    """(C, k) numbers to (C, ceil(k*bits/8)) bytes, low bit first."""
    spread = (numbers[:, :, None] >> np.arange(bits, dtype=np.uint16)) & 1
    return np.packbits(spread.astype(np.uint8).reshape(len(numbers), -1), axis=1, bitorder="little")


def _unpack(packed: NDArray[np.uint8], bits: int, k: int) -> NDArray[np.uint16]:
    """The inverse of _pack. Raises PayloadError if a padding bit is set."""
    spread = np.unpackbits(packed, axis=1, bitorder="little")
    if spread[:, k * bits :].any():
        raise PayloadError("a padding bit is set")
    weights = np.uint16(1) << np.arange(bits, dtype=np.uint16)
    spread = spread[:, : k * bits].reshape(len(packed), k, bits)
    numbers: NDArray[np.uint16] = (spread * weights).sum(axis=2, dtype=np.uint16)
    return numbers
