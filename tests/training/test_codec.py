"""The codec: canonical round trips, selection against a slow reference, and a decoder that trusts nobody."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from protocol.merkle import leaf_hash, merkle_root
from protocol.spec import CodecSpec
from tests.specs import MODEL
from tests.training.samples import CODECS, FULL, SMALL, random_payload, random_tensors
from training.codec import (
    LEVELS,
    MAX_SCALE,
    Payload,
    decode_payload,
    encode,
    encode_flat,
    index_overlap,
    select_top,
)
from training.errors import PayloadError, TrainingDiverged
from training.layout import chunk_layout, flat_layout
from training.parameters import parameter_count, zeros

FLAT = flat_layout(MODEL)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
codecs = st.sampled_from(CODECS)


@st.composite
def flat_vectors(draw: st.DrawFn) -> NDArray[np.float32]:
    """Values with many ties, zeros, huge and subnormal ones, repeated to the model's size."""
    few = draw(hnp.arrays(np.float32, st.integers(1, 200), elements=finite))
    sparse = draw(st.booleans())
    vector = np.resize(few, FLAT.size).astype(np.float32)
    if sparse:
        vector[draw(st.integers(0, FLAT.size)) :] = 0.0
    return vector


def slow_top(row: list[float], k: int) -> list[int]:
    """The definition: largest magnitudes first, the lowest index among equals; reported ascending."""
    return sorted(sorted(range(len(row)), key=lambda i: (-abs(row[i]), i))[:k])


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.integers(1, 40)),
        elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1e-40, 3.5]) | finite,
    ),
    st.data(),
)
def test_select_top__any_rows__equals_slow_reference(
    rows: NDArray[np.float32], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, rows.shape[1]))
    expected = [slow_top(row, k) for row in rows.tolist()]
    assert select_top(rows, k).tolist() == expected


@given(flat_vectors(), codecs)
def test_payload__encoded_and_decoded__is_the_same_and_canonical(
    vector: NDArray[np.float32], codec: CodecSpec
) -> None:
    payload = encode_flat(vector, chunk_layout(MODEL, codec))
    data = payload.to_bytes()
    again = decode_payload(data, MODEL, codec)
    assert again == payload
    assert again.to_bytes() == data
    assert again.dense_flat().tobytes() == payload.dense_flat().tobytes()
    assert len(data) == chunk_layout(MODEL, codec).payload_bytes


@given(flat_vectors(), codecs)
def test_encode__any_values__signs_and_places_are_those_of_the_largest(
    vector: NDArray[np.float32], codec: CodecSpec
) -> None:
    layout = chunk_layout(MODEL, codec)
    payload = encode_flat(vector, layout)
    for chunk in range(layout.chunks):
        if payload.scales[chunk] == 0:
            continue
        start, size = int(layout.starts[chunk]), int(layout.sizes[chunk])
        entries = slice(int(layout.entry_starts[chunk]), int(layout.entry_starts[chunk + 1]))
        row = vector[start : start + size]
        k = -(-size * codec.k // codec.chunk)
        assert payload.indices[entries].tolist() == slow_top(row.tolist(), k)
        decoded = payload.values[entries]
        assert np.array_equal(np.signbit(decoded), np.signbit(row[payload.indices[entries]]))


def test_encode__one_chunk__has_the_least_squared_error_of_all_assignments() -> None:
    codec = replace(FULL, chunk=8, k=4)
    layout = chunk_layout(MODEL, codec)
    rng = np.random.default_rng(5)
    payload = encode_flat(rng.standard_t(3, FLAT.size).astype(np.float32), layout)
    exact = np.random.default_rng(5).standard_t(3, FLAT.size).astype(np.float32)
    for chunk in range(50):
        entries = slice(int(layout.entry_starts[chunk]), int(layout.entry_starts[chunk + 1]))
        kept = np.abs(exact[payload.positions[entries]].astype(np.float64))
        best = min(_least_error(kept, assignment) for assignment in range(16))
        found = float(np.sum((kept - np.abs(payload.values[entries].astype(np.float64))) ** 2))
        assert found == pytest.approx(best, rel=1e-5, abs=1e-12)


def _least_error(kept: NDArray[np.float64], assignment: int) -> float:
    levels = np.array([1.0 if assignment >> i & 1 else float(LEVELS[0]) for i in range(4)])
    scale = kept @ levels / (levels @ levels)
    return float(np.sum((kept - scale * levels) ** 2))


def test_encode__real_compression__is_at_least_a_hundredfold() -> None:
    model = replace(
        MODEL, vocab_size=1024, hidden_size=96, intermediate_size=256, layers=3, kv_heads=4
    )
    assert 430_000 < parameter_count(model) < 432_000
    assert parameter_count(model) * 4 / chunk_layout(model, FULL).payload_bytes > 140


def test_encode__all_zero__gives_scale_zero_and_decodes_to_zero() -> None:
    payload = encode(zeros(MODEL), MODEL, SMALL)
    assert not payload.scales.any()
    assert not payload.dense_flat().any()
    assert decode_payload(payload.to_bytes(), MODEL, SMALL) == payload


def test_encode__values_beyond_the_scale_limits__are_clamped() -> None:
    huge = encode_flat(np.full(FLAT.size, 3e38, np.float32), chunk_layout(MODEL, SMALL))
    tiny = encode_flat(np.full(FLAT.size, 1e-30, np.float32), chunk_layout(MODEL, SMALL))
    assert (huge.scales == MAX_SCALE).all()
    assert (tiny.scales == 0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_encode__not_finite__raises_training_diverged(bad: float) -> None:
    tensors = random_tensors(1)
    tensors["model.norm.weight"][3] = bad
    with pytest.raises(TrainingDiverged):
        encode(tensors, MODEL, SMALL)


@given(
    st.integers(0, 50),
    codecs,
    st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=6
    ),
)
@settings(max_examples=300)
def test_decode__mutated_bytes__raises_payload_error_or_gives_a_canonical_payload(
    seed: int, codec: CodecSpec, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(random_payload(seed, codec=codec).to_bytes())
    for place, flip in flips:
        data[int(place * len(data))] ^= flip
    _assert_rejected_or_canonical(bytes(data), codec)


@given(st.binary(max_size=3000), codecs)
def test_decode__arbitrary_bytes__raises_payload_error_or_gives_a_canonical_payload(
    data: bytes, codec: CodecSpec
) -> None:
    _assert_rejected_or_canonical(data, codec)
    size = chunk_layout(MODEL, codec).payload_bytes
    _assert_rejected_or_canonical((data * (size // max(1, len(data)) + 1))[:size], codec)


def _assert_rejected_or_canonical(data: bytes, codec: CodecSpec) -> None:
    try:
        payload = decode_payload(data, MODEL, codec)
    except PayloadError:
        return
    assert payload.to_bytes() == data
    assert np.isfinite(payload.values).all()
    assert len(set(payload.positions.tolist())) == payload.layout.entries
    assert payload.positions.max() < FLAT.size


def _leaf_with(index: list[int], codes: int, scale: float) -> bytes:
    """The first chunk of SMALL (k = 3) from its parts: 36 bits of indices, 6 bits of codes."""
    packed = sum(value << 12 * place for place, value in enumerate(index))
    return packed.to_bytes(5, "little") + bytes([codes]) + struct.pack("<f", scale)


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [
        (_leaf_with([1, 1, 2], 0, 1.0), "ascending"),
        (_leaf_with([2, 1, 3], 0, 1.0), "ascending"),
        (_leaf_with([1, 2, 64], 0, 1.0), "outside"),
        (_leaf_with([1, 2, 4095], 0, 1.0), "outside"),
        (_leaf_with([1, 2, 3 | 1 << 12], 0, 1.0), "padding"),
        (_leaf_with([1, 2, 3], 1 << 6, 1.0), "padding"),
        (_leaf_with([1, 2, 3], 0, float("nan")), "scale"),
        (_leaf_with([1, 2, 3], 0, float("inf")), "scale"),
        (_leaf_with([1, 2, 3], 0, -1.0), "scale"),
        (_leaf_with([0, 1, 2], 0, -0.0), "scale"),
        (_leaf_with([1, 2, 3], 0, 1e-40), "scale"),
        (_leaf_with([1, 2, 3], 0, 1e30), "scale"),
        (_leaf_with([1, 2, 3], 0, 0.0), "empty"),
        (_leaf_with([0, 1, 2], 1, 0.0), "empty"),
    ],
)
def test_decode__one_wrong_field__names_it(leaf: bytes, reason: str) -> None:
    data = random_payload(1).to_bytes()
    good = _leaf_with([1, 2, 3], 0b101101, 1.5)
    decode_payload(good + data[len(good) :], MODEL, SMALL)
    with pytest.raises(PayloadError, match=reason):
        decode_payload(leaf + data[len(leaf) :], MODEL, SMALL)


@pytest.mark.parametrize("length", [0, 1, -1])
def test_decode__wrong_length__raises_payload_error(length: int) -> None:
    data = random_payload(1).to_bytes()
    wrong = data[:length] if length <= 0 else data + b"\0"
    with pytest.raises(PayloadError, match="bytes"):
        decode_payload(wrong, MODEL, SMALL)


@given(st.integers(0, 20), codecs)
def test_root__any_payload__equals_protocol_merkle_over_leaves(seed: int, codec: CodecSpec) -> None:
    payload = random_payload(seed, codec=codec)
    assert payload.root() == merkle_root([leaf_hash(leaf) for leaf in payload.leaves()])
    assert b"".join(payload.leaves()) == payload.to_bytes()
    last = payload.layout.chunks - 1
    assert payload.leaf(last) == payload.leaves()[last]


@given(st.integers(0, 100), st.integers(0, 100))
def test_index_overlap__any_pair__is_symmetric_and_one_with_itself(a: int, b: int) -> None:
    first, second = random_payload(a), random_payload(b)
    assert index_overlap(first, first) == pytest.approx(1.0)
    assert index_overlap(first, second) == index_overlap(second, first)
    assert 0.0 <= index_overlap(first, second) <= 1.0


def test_index_overlap__empty_payloads__share_nothing() -> None:
    empty = encode(zeros(MODEL), MODEL, SMALL)
    assert index_overlap(empty, empty) == 0.0


def test_index_overlap__hand_made__weights_chunks_by_size() -> None:
    layout = chunk_layout(MODEL, SMALL)
    first = random_payload(1)
    second = random_payload(2)
    expected = 0.0
    for chunk in range(layout.chunks):
        entries = slice(int(layout.entry_starts[chunk]), int(layout.entry_starts[chunk + 1]))
        a, b = set(first.indices[entries].tolist()), set(second.indices[entries].tolist())
        expected += int(layout.sizes[chunk]) * len(a & b) / len(a)
    assert index_overlap(first, second) == pytest.approx(expected / FLAT.size)


def test_payload__arrays__are_read_only() -> None:
    payload = random_payload(1)
    with pytest.raises(ValueError, match="read-only"):
        payload.scales[0] = 2.0
    assert isinstance(payload, Payload)


@pytest.mark.parametrize(
    "codec",
    [
        replace(FULL, chunk=5000),
        replace(FULL, bits=1),
        replace(FULL, version=2),
        replace(FULL, k=0),
    ],
)
def test_chunk_layout__codec_of_another_version__raises_value_error(codec: CodecSpec) -> None:
    with pytest.raises(ValueError, match=r"codec|chunk"):
        chunk_layout(MODEL, codec)
