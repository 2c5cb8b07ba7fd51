"""The compressed pseudo-gradient: chunked top-k, few-bit values, one scale per chunk (after SparseLoCo, arXiv 2508.15706).

A value is sign * level * scale of its chunk. The levels lie evenly between `ratio / 16` and 1; the encoder chooses one ratio per
tensor, and for each chunk the scale and the assignment of least squared error. There is no level at zero: top-k leaves nothing
there, so a level spent on it would carry no information. Error feedback subtracts what the receivers will decode, never the
exact values.

All of this is about what is sent: a tensor's own values, or coefficients of them (`training.transform`). `encode` and `dense` speak
of the tensor's values.

One update has two forms. Its *canonical* bytes are what is hashed, chunk after chunk (one Merkle leaf each): k ascending 12-bit
indices, then k codes (bit 0 sign, the others level), each field packed from the low bit up and padded with zero bits to a byte,
then the scale as fp32 little-endian and the ratio in a byte. A chunk of zeros has scale +0, ratio 0, codes 0 and the indices
0..k-1. The *transport* bytes (`to_bytes`) are the same update entropy-coded; receivers decode and hash again.

The scale is +0 or lies in [MIN_SCALE, MAX_SCALE] with six bits of mantissa: no ratio of two norms is subnormal, no sum
overflows, and its square is exact.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.ids import Hash32
from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec
from training import kernels, transform
from training.errors import PayloadError
from training.kernels import Update
from training.layout import (
    CODEC_VERSION,
    HEADER_BYTES,
    MAX_SCALE,
    MIN_SCALE,
    RATIOS,
    SCALE_SHIFT,
    ChunkLayout,
    chunk_layout,
)
from training.parameters import Parameters
from training.roots import leaf_hashes, tree_root

MAGIC = b"SYNU"
LEVEL_UNIT = 1024


def level_units(levels: int) -> NDArray[np.int64]:
    """(RATIOS, levels) the levels in units of 1 / LEVEL_UNIT, by ratio."""
    if levels == 1:
        return np.full((RATIOS, 1), LEVEL_UNIT, np.int64)
    low = np.arange(RATIOS, dtype=np.int64)[:, None] * (LEVEL_UNIT // RATIOS)
    steps = levels - 1
    return low + ((LEVEL_UNIT - low) * np.arange(levels) + steps // 2) // steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Payload:
    """A decoded update. Arrays are read-only; entries run chunk by chunk, ascending inside a chunk."""

    layout: ChunkLayout
    fingerprint: bytes  # of model and codec, 8 bytes
    indices: NDArray[np.uint16]  # (E,) position inside the chunk, row by row
    codes: NDArray[np.uint8]  # (E,)
    scales: NDArray[np.float32]  # (C,)
    ratios: NDArray[np.uint8]  # (C,)

    def __post_init__(self) -> None:
        for array in self.update:
            array.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Payload)
            and self.layout is other.layout
            and self.canonical() == other.canonical()
        )

    def __hash__(self) -> int:
        return hash(self.canonical())

    @property
    def update(self) -> Update:
        """The four arrays, as the kernels take them."""
        return self.indices, self.codes, self.scales, self.ratios

    @property
    def positions(self) -> NDArray[np.int64]:
        """(E,) where what was sent lies in the flat vector; no position twice."""
        return self.layout.positions(self.indices)

    @property
    def units(self) -> NDArray[np.int64]:
        """(E,) the level of each entry in units of 1 / LEVEL_UNIT."""
        table = level_units(self.layout.levels)
        units: NDArray[np.int64] = table[self.ratios[self.layout.chunk_of_entry], self.codes >> 1]
        return units

    @property
    def values(self) -> NDArray[np.float32]:
        """(E,) what was sent, decoded: one fp32 product each."""
        level = self.units.astype(np.float32) / np.float32(LEVEL_UNIT)
        signed = np.where(self.codes & 1, -level, level)
        values: NDArray[np.float32] = self.scales[self.layout.chunk_of_entry] * signed
        return values

    def dense(self) -> Parameters:
        """The decoded update of every tensor."""
        return self.layout.flat.split(self.dense_flat())

    def dense_flat(self) -> NDArray[np.float32]:
        """The same as one flat vector."""
        flat = np.zeros(self.layout.flat.size, np.float32)
        ones = np.ones(self.layout.chunks, np.float32)
        kernels.add(flat, self.layout, self.update, ones, np.float32(0.0))
        return transform.from_coefficients(flat, self.layout)

    def add_to(self, flat: NDArray[np.float32]) -> None:
        """Adds the decoded update, in place."""
        if self.layout.transform == "none":
            flat[self.positions] += self.values
        else:
            flat += self.dense_flat()

    def subtract_from(self, flat: NDArray[np.float32]) -> None:
        """Subtracts the decoded update, in place; what is left of what was encoded is error feedback."""
        if self.layout.transform == "none":
            flat[self.positions] -= self.values
        else:
            flat -= self.dense_flat()

    def to_bytes(self) -> bytes:
        """The transport bytes: header, then the coded stream."""
        head = MAGIC + bytes([CODEC_VERSION, self.layout.bits, 0, 0]) + self.fingerprint
        return head + kernels.pack(self.layout, self.update)

    def canonical(self) -> bytes:
        """The fixed-width bytes that are hashed."""
        return kernels.canonical(self.layout, self.update)

    def leaves(self) -> list[bytes]:
        """The data of every Merkle leaf: one chunk's canonical bytes each."""
        data, starts = self.canonical(), self.layout.byte_starts.tolist()
        return [data[start:end] for start, end in itertools.pairwise(starts)]

    def leaf(self, chunk: int) -> bytes:
        """The data of one Merkle leaf."""
        starts = self.layout.byte_starts
        return self.canonical()[starts[chunk] : starts[chunk + 1]]

    def root(self) -> Hash32:
        """The payload root that a submission names."""
        return tree_root(leaf_hashes(self.leaves()))


@lru_cache(maxsize=16)
def fingerprint(model: ModelSpec, codec: CodecSpec) -> bytes:
    """8 bytes that tell payloads of different models and codecs apart."""
    text = canonical.dumps([record.to_json(model), record.to_json(codec)])
    return hashlib.sha256(b"syntience.payload.v2" + text).digest()[:8]


def encode(accumulated: Parameters, model: ModelSpec, codec: CodecSpec) -> Payload:
    """Compresses `accumulated` (feedback plus pseudo-gradient). Equal magnitudes: the lowest index is kept.

    Raises TrainingDiverged if a value is NaN or infinite.
    """
    layout = chunk_layout(model, codec)
    return encode_flat(layout.flat.flatten(accumulated), model, codec)


def encode_flat(flat: NDArray[np.float32], model: ModelSpec, codec: CodecSpec) -> Payload:
    """`encode` for values that already lie in one flat vector."""
    layout = chunk_layout(model, codec)
    sent = transform.to_coefficients(flat, layout)
    return payload_of(kernels.encode(sent, layout), model, codec)


def payload_of(update: Update, model: ModelSpec, codec: CodecSpec) -> Payload:
    """A payload of arrays that are known to be an update of this model."""
    indices, codes, scales, ratios = update
    return Payload(
        layout=chunk_layout(model, codec),
        fingerprint=fingerprint(model, codec),
        indices=indices,
        codes=codes,
        scales=scales,
        ratios=ratios,
    )


def scaled(payload: Payload, factor: float) -> Payload:
    """The payload with every scale times `factor`, rounded to the nearest scale that the codec knows."""
    exact = np.clip(payload.scales.astype(np.float64) * factor, 0.0, float(MAX_SCALE))
    bits = exact.astype(np.float32).view(np.uint32)
    nearest = (bits + np.uint32(1 << SCALE_SHIFT - 1)) >> SCALE_SHIFT << SCALE_SHIFT
    scales = np.minimum(nearest.astype(np.uint32).view(np.float32), MAX_SCALE)
    scales[scales < MIN_SCALE] = 0.0
    gone = scales == 0
    entries = gone[payload.layout.chunk_of_entry]
    starts = payload.layout.entry_starts[payload.layout.chunk_of_entry]
    first = (np.arange(payload.layout.entries) - starts).astype(np.uint16)
    return replace(
        payload,
        scales=scales,
        ratios=np.where(gone, 0, payload.ratios).astype(np.uint8),
        indices=np.where(entries, first, payload.indices),
        codes=np.where(entries, 0, payload.codes).astype(np.uint8),
    )


def decode_payload(data: bytes, model: ModelSpec, codec: CodecSpec) -> Payload:
    """The update in transport bytes, which come from an adversary. Raises PayloadError for anything else.

    What is allocated depends on the model alone; nothing in `data` is believed before it is checked.
    """
    layout = chunk_layout(model, codec)
    if not HEADER_BYTES <= len(data) <= layout.transport_bytes:
        raise PayloadError(f"{len(data)} bytes, expected at most {layout.transport_bytes}")
    if data[:4] != MAGIC:
        raise PayloadError("no payload: other leading bytes")
    if data[4:8] != bytes([CODEC_VERSION, layout.bits, 0, 0]):
        raise PayloadError("a payload of another codec version, or of another number of bits")
    if data[8:HEADER_BYTES] != fingerprint(model, codec):
        raise PayloadError("a payload of another model or codec")
    return payload_of(kernels.unpack(data[HEADER_BYTES:], layout), model, codec)


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
