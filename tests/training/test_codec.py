"""The codec: kernels against a slow reference, both forms of an update, and a decoder that trusts nobody."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from math import comb, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from protocol.merkle import leaf_hash, merkle_root
from protocol.spec import CodecSpec
from tests.specs import MODEL
from tests.training.codec_reference import (
    SlowReader,
    chunk_values,
    level_of,
    nearest_scale,
    slow_encode,
    slow_leaf,
    slow_top,
)
from tests.training.samples import CODECS, DCT, FULL, SMALL, random_payload, random_tensors
from training import kernels, transform
from training.codec import (
    MAX_SCALE,
    MIN_SCALE,
    RATIOS,
    Payload,
    decode_payload,
    encode,
    encode_flat,
    index_overlap,
    level_units,
    scaled,
)
from training.errors import PayloadError, TrainingDiverged
from training.layout import HEADER_BYTES, chunk_layout, flat_layout
from training.parameters import zeros

# Small enough for a slow reference, with full tiles of a small codec, edge tiles of the full one, and vectors.
TINY = replace(
    MODEL, vocab_size=70, hidden_size=16, intermediate_size=36, layers=1, heads=2, kv_heads=1
)
FLAT = flat_layout(TINY)
# A coefficient may be 64 times the largest value of its tile, and must be finite too.
finite = st.floats(-(2.0**120), 2.0**120, width=32)
codecs = st.sampled_from(CODECS)


def small_payload(seed: int, codec: CodecSpec = SMALL) -> Payload:
    """The encoding of normal values in TINY's shapes."""
    return random_payload(seed, codec=codec, model=TINY)


@st.composite
def flat_vectors(draw: st.DrawFn) -> NDArray[np.float32]:
    """Values with many ties, zeros, huge and subnormal ones, repeated to the model's size."""
    few = draw(hnp.arrays(np.float32, st.integers(1, 200), elements=finite))
    sparse = draw(st.booleans())
    vector = np.resize(few, FLAT.size).astype(np.float32)
    if sparse:
        vector[draw(st.integers(0, FLAT.size)) :] = 0.0
    return vector


@given(flat_vectors(), codecs)
def test_select__any_values__equals_the_definition(
    vector: NDArray[np.float32], codec: CodecSpec
) -> None:
    layout = chunk_layout(TINY, codec)
    found = kernels.select(vector, layout).tolist()
    for chunk, k in enumerate(layout.table["k"].tolist()):
        row = chunk_values(vector, layout, chunk).tolist()
        start = int(layout.entry_starts[chunk])
        assert found[start : start + k] == slow_top(row, k)


@given(flat_vectors(), codecs)
@settings(max_examples=20)
def test_encode__any_values__equals_the_slow_reference(
    vector: NDArray[np.float32], codec: CodecSpec
) -> None:
    _assert_same_as_reference(vector, codec)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(3))
def test_encode__values_like_gradients__equals_the_slow_reference(
    seed: int, codec: CodecSpec
) -> None:
    rng = np.random.default_rng(seed)
    _assert_same_as_reference(rng.standard_t(3, FLAT.size).astype(np.float32), codec)


def _assert_same_as_reference(vector: NDArray[np.float32], codec: CodecSpec) -> None:
    layout = chunk_layout(TINY, codec)
    payload = encode_flat(vector, TINY, codec)
    slow = slow_encode(vector, layout)
    assert payload.indices.tolist() == slow.indices
    assert payload.codes.tolist() == slow.codes
    assert payload.scales.tolist() == slow.scales
    assert payload.ratios.tolist() == slow.ratios
    bits = codec.bits
    for chunk, leaf in enumerate(payload.leaves()):
        entries = slice(int(layout.entry_starts[chunk]), int(layout.entry_starts[chunk + 1]))
        expected = slow_leaf(
            slow.indices[entries], slow.codes[entries], slow.scales[chunk], slow.ratios[chunk], bits
        )
        assert leaf == expected


@given(flat_vectors(), codecs)
def test_payload__sent_and_decoded__is_the_same(
    vector: NDArray[np.float32], codec: CodecSpec
) -> None:
    payload = encode_flat(vector, TINY, codec)
    data = payload.to_bytes()
    again = decode_payload(data, TINY, codec)
    assert again == payload
    assert again.to_bytes() == data
    assert again.root() == payload.root()
    assert again.dense_flat().tobytes() == payload.dense_flat().tobytes()
    assert len(payload.canonical()) == payload.layout.canonical_bytes
    assert len(data) <= payload.layout.transport_bytes


@given(st.integers(0, 50), codecs)
@settings(max_examples=30)
def test_to_bytes__any_payload__is_read_alike_by_the_slow_reader(
    seed: int, codec: CodecSpec
) -> None:
    payload = small_payload(seed, codec=codec)
    read = SlowReader(payload.to_bytes(), payload.layout).read()
    assert payload.indices.tolist() == read.indices
    assert payload.codes.tolist() == read.codes
    assert payload.scales.tolist() == read.scales
    assert payload.ratios.tolist() == read.ratios


@pytest.mark.parametrize("codec", CODECS)
def test_payload__scales_from_one_limit_to_the_other__is_read_back(codec: CodecSpec) -> None:
    payload = small_payload(1, codec=codec)
    for first, second in ((MIN_SCALE, MAX_SCALE), (MAX_SCALE, MIN_SCALE)):
        scales = np.full(payload.layout.chunks, first, np.float32)
        scales[1::2] = second
        extreme = replace(payload, scales=scales)
        assert decode_payload(extreme.to_bytes(), TINY, codec) == extreme
        assert SlowReader(extreme.to_bytes(), extreme.layout).read().scales == scales.tolist()


@given(st.integers(0, 50), codecs)
def test_values__any_payload__are_sign_level_and_scale(seed: int, codec: CodecSpec) -> None:
    payload = small_payload(seed, codec=codec)
    chunks = payload.layout.chunk_of_entry.tolist()
    for entry, value in enumerate(payload.values.tolist()):
        code, chunk = int(payload.codes[entry]), chunks[entry]
        level = level_of(int(payload.ratios[chunk]), code >> 1, payload.layout.levels)
        sign = -1.0 if code & 1 else 1.0
        assert value == float(np.float32(payload.scales[chunk]) * np.float32(sign * level))
    flat = np.zeros(FLAT.size, np.float32)
    flat[payload.positions] = payload.values
    dense = transform.from_coefficients(flat, payload.layout)
    assert dense.tobytes() == (payload.dense_flat() + np.float32(0.0)).tobytes()


@given(st.integers(0, 50), codecs, st.integers(0, 2**32 - 1))
def test_add__factors_and_floor__is_one_product_and_one_sum_each(
    seed: int, codec: CodecSpec, chance: int
) -> None:
    payload = small_payload(seed, codec=codec)
    rng = np.random.default_rng(chance)
    total = rng.standard_normal(FLAT.size).astype(np.float32)
    factors = rng.random(payload.layout.chunks).astype(np.float32)
    floor = np.float32(0.5)
    expected = total.copy()
    products = payload.values * factors[payload.layout.chunk_of_entry]
    products[np.abs(products) < floor] = 0.0
    expected[payload.positions] += products
    kernels.add(total, payload.layout, payload.update, factors, floor)
    assert total.tobytes() == expected.tobytes()


def test_level_units__every_width__run_from_the_ratio_to_one() -> None:
    for levels in (1, 2, 8, 128):
        units = level_units(levels)
        assert (units[:, -1] == 1024).all()
        assert (np.diff(units, axis=1) >= 0).all()
        for ratio in range(RATIOS):
            expected = [round(1024 * level_of(ratio, level, levels)) for level in range(levels)]
            assert units[ratio].tolist() == expected
    assert level_units(2)[:, 0].tolist() == [64 * ratio for ratio in range(16)]


def test_encode__two_bits__loses_less_than_two_thirds_of_one_level_a_sign() -> None:
    # What a quantiser with a level at zero makes of values of which top-k left the large ones alone.
    vector = np.random.default_rng(5).standard_normal(FLAT.size).astype(np.float32)
    errors = []
    for bits in (1, 2, 4, 8):
        payload = encode_flat(vector, TINY, replace(FULL, bits=bits))
        kept = vector[payload.positions]
        errors.append(float(np.linalg.norm(kept - payload.values) / np.linalg.norm(kept)))
    assert errors == sorted(errors, reverse=True)
    assert errors[1] < 0.65 * errors[0]


def test_to_bytes__a_thousand_chunks__is_over_213_times_smaller() -> None:
    codec, model = FULL, replace(MODEL, vocab_size=4096, hidden_size=1024)
    layout = chunk_layout(model, codec)
    vector = np.random.default_rng(5).standard_normal(layout.flat.size).astype(np.float32)
    size = len(encode_flat(vector, model, codec).to_bytes())
    assert layout.flat.size * 4 / size > 213  # noise: real updates have structure, and get smaller
    ideal = sum(
        log2(comb(int(values), int(k)))
        for values, k in zip(layout.sizes, layout.table["k"], strict=True)
    )
    rest = layout.entries * 2 + layout.chunks * 8
    assert (size * 8 - rest) / ideal < 1.03


def test_encode__all_zero__gives_scale_zero_and_decodes_to_zero() -> None:
    payload = encode(zeros(TINY), TINY, SMALL)
    assert not payload.scales.any()
    assert not payload.dense_flat().any()
    assert decode_payload(payload.to_bytes(), TINY, SMALL) == payload


def test_encode__values_beyond_the_scale_limits__are_clamped() -> None:
    huge = encode_flat(np.full(FLAT.size, 3e38, np.float32), TINY, SMALL)
    tiny = encode_flat(np.full(FLAT.size, 1e-30, np.float32), TINY, SMALL)
    assert (huge.scales == MAX_SCALE).all()
    assert (tiny.scales == 0).all()


@given(st.integers(0, 20), st.sampled_from([0.5, 1.0, 5.0, 1e3, 1e30, 1e-30, 0.0]), codecs)
def test_scaled__any_factor__is_a_payload_with_the_nearest_scales(
    seed: int, factor: float, codec: CodecSpec
) -> None:
    payload = small_payload(seed, codec=codec)
    louder = scaled(payload, factor)
    assert decode_payload(louder.to_bytes(), TINY, codec) == louder
    for own, scale in zip(payload.scales.tolist(), louder.scales.tolist(), strict=True):
        exact = own * factor
        if MIN_SCALE <= exact <= MAX_SCALE:
            assert abs(scale - exact) <= abs(nearest_scale(exact) - exact) * (1 + 1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("codec", [SMALL, DCT])
def test_encode__not_finite__raises_training_diverged(bad: float, codec: CodecSpec) -> None:
    for name in ("model.norm.weight", "model.embed_tokens.weight"):
        tensors = random_tensors(1, model=TINY)
        tensors[name].reshape(-1)[3] = bad
        with pytest.raises(TrainingDiverged):
            encode(tensors, TINY, codec)


@given(st.integers(0, 50), codecs)
def test_subtract_from__what_was_encoded__leaves_the_rest_and_add_to_gives_it_back(
    seed: int, codec: CodecSpec
) -> None:
    flat = np.random.default_rng(seed).standard_normal(FLAT.size).astype(np.float32)
    payload, left = encode_flat(flat, TINY, codec), flat.copy()
    payload.subtract_from(left)
    assert left.tobytes() == (flat - payload.dense_flat()).tobytes()
    assert np.linalg.norm(left) < np.linalg.norm(flat)
    whole = left.copy()
    payload.add_to(whole)
    assert whole.tobytes() == (left + payload.dense_flat()).tobytes()
    assert np.allclose(whole, flat, atol=1e-6)


def test_fingerprint__another_transform__is_another_codec() -> None:
    with pytest.raises(PayloadError, match="another model or codec"):
        decode_payload(small_payload(1).to_bytes(), TINY, DCT)


def test_encode__a_wave_through_a_tile__is_one_coefficient() -> None:
    """What the transform is for: top-k of the values keeps k of them, of the coefficients the whole wave."""
    tensors = zeros(TINY)
    wave = np.cos(np.pi * 3 * (2 * np.arange(16) + 1) / 32).astype(np.float32)
    tensors["model.embed_tokens.weight"] += wave
    kept = {}
    for kind in ("none", "dct"):
        payload = encode(tensors, TINY, replace(FULL, transform=kind, k=1))
        sent = payload.dense()["model.embed_tokens.weight"]
        kept[kind] = float(
            np.linalg.norm(sent) / np.linalg.norm(tensors["model.embed_tokens.weight"])
        )
    assert kept["none"] < 0.1
    assert kept["dct"] == pytest.approx(1.0, abs=0.02)


@given(
    st.integers(0, 50),
    codecs,
    st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=6
    ),
)
@settings(max_examples=300)
def test_decode__mutated_bytes__raises_payload_error_or_gives_a_valid_payload(
    seed: int, codec: CodecSpec, flips: list[tuple[float, int]]
) -> None:
    data = bytearray(small_payload(seed, codec=codec).to_bytes())
    for place, flip in flips:
        data[int(place * len(data))] ^= flip
    _assert_rejected_or_valid(bytes(data), codec)


@given(st.integers(0, 10), codecs, st.data())
def test_decode__cut_or_prolonged__raises_payload_error(
    seed: int, codec: CodecSpec, data: st.DataObject
) -> None:
    good = small_payload(seed, codec=codec).to_bytes()
    cut = data.draw(st.integers(0, len(good) - 1))
    for bad in (good[:cut], good + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(PayloadError):
            decode_payload(bad, TINY, codec)


@given(st.binary(max_size=3000), codecs)
def test_decode__arbitrary_stream__raises_payload_error_or_gives_a_valid_payload(
    data: bytes, codec: CodecSpec
) -> None:
    head = small_payload(1, codec=codec).to_bytes()[:HEADER_BYTES]
    _assert_rejected_or_valid(data, codec)
    _assert_rejected_or_valid(head + data, codec)


def _assert_rejected_or_valid(data: bytes, codec: CodecSpec) -> None:
    try:
        payload = decode_payload(data, TINY, codec)
    except PayloadError:
        return
    layout = payload.layout
    assert np.isfinite(payload.values).all()
    assert len(set(payload.positions.tolist())) == layout.entries
    assert (payload.indices < layout.sizes[layout.chunk_of_entry]).all()
    assert (
        (payload.scales == 0) | ((payload.scales >= MIN_SCALE) & (payload.scales <= MAX_SCALE))
    ).all()
    assert (payload.codes < 1 << codec.bits).all()
    again = decode_payload(payload.to_bytes(), TINY, codec)
    assert again == payload


@pytest.mark.parametrize(
    ("place", "reason"), [(0, "leading"), (4, "version"), (5, "bits"), (6, "version"), (9, "model")]
)
def test_decode__another_header__names_what_is_wrong(place: int, reason: str) -> None:
    data = bytearray(small_payload(1).to_bytes())
    data[place] ^= 1
    with pytest.raises(PayloadError, match=reason):
        decode_payload(bytes(data), TINY, SMALL)


def test_decode__lengths_that_lie__allocate_nothing() -> None:
    data = bytearray(small_payload(1).to_bytes())
    data[HEADER_BYTES : HEADER_BYTES + 12] = b"\xff" * 12
    tracemalloc.start()
    with pytest.raises(PayloadError):
        decode_payload(bytes(data), TINY, SMALL)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    with pytest.raises(PayloadError, match="at most"):
        decode_payload(bytes(1 << 22), TINY, SMALL)


@given(st.integers(0, 20), codecs)
def test_root__any_payload__equals_protocol_merkle_over_leaves(seed: int, codec: CodecSpec) -> None:
    payload = small_payload(seed, codec=codec)
    assert payload.root() == merkle_root([leaf_hash(leaf) for leaf in payload.leaves()])
    assert b"".join(payload.leaves()) == payload.canonical()
    last = payload.layout.chunks - 1
    assert payload.leaf(last) == payload.leaves()[last]


@given(st.integers(0, 100), st.integers(0, 100))
def test_index_overlap__any_pair__is_symmetric_and_one_with_itself(a: int, b: int) -> None:
    first, second = small_payload(a), small_payload(b)
    assert index_overlap(first, first) == pytest.approx(1.0)
    assert index_overlap(first, second) == index_overlap(second, first)
    assert 0.0 <= index_overlap(first, second) <= 1.0


def test_index_overlap__empty_payloads__share_nothing() -> None:
    empty = encode(zeros(TINY), TINY, SMALL)
    assert index_overlap(empty, empty) == 0.0


def test_index_overlap__hand_made__weights_chunks_by_size() -> None:
    layout = chunk_layout(TINY, SMALL)
    first = small_payload(1)
    second = small_payload(2)
    expected = 0.0
    for chunk in range(layout.chunks):
        entries = slice(int(layout.entry_starts[chunk]), int(layout.entry_starts[chunk + 1]))
        a, b = set(first.indices[entries].tolist()), set(second.indices[entries].tolist())
        expected += int(layout.sizes[chunk]) * len(a & b) / len(a)
    assert index_overlap(first, second) == pytest.approx(expected / FLAT.size)


def test_payload__arrays__are_read_only() -> None:
    payload = small_payload(1)
    with pytest.raises(ValueError, match="read-only"):
        payload.scales[0] = 2.0
    assert isinstance(payload, Payload)


@pytest.mark.parametrize(
    "codec",
    [
        replace(FULL, chunk=128 * 128),
        replace(FULL, chunk=50, k=5),
        replace(FULL, bits=3),
        replace(FULL, version=1),
    ],
)
def test_chunk_layout__codec_of_another_version__raises_value_error(codec: CodecSpec) -> None:
    with pytest.raises(ValueError, match=r"codec|chunk"):
        chunk_layout(TINY, codec)
