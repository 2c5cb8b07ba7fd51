"""The judge of chunks says of every vector what the contract says, and takes all that encoders write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.spec import CodecSpec
from tests.training import vectors
from tests.training.codec_reference import slow_is_canonical
from tests.training.samples import CODECS, random_payload
from training.chunk import is_canonical_chunk, kept_of
from training.layout import BITS


@pytest.mark.parametrize(("bits", "k"), vectors.SHAPES)
def test_is_canonical_chunk__vectors__agree(bits: int, k: int) -> None:
    for name, leaf, canonical in vectors.cases_of(bits, k):
        assert is_canonical_chunk(leaf, size=vectors.CHUNK, bits=bits) == canonical, name
        assert kept_of(len(leaf), bits) == k


@given(st.integers(0, 20), st.sampled_from(CODECS), st.data())
def test_is_canonical_chunk__what_encoders_write_and_one_bit_off__is_as_the_slow_reference_says(
    seed: int, codec: CodecSpec, data: st.DataObject
) -> None:
    leaf = data.draw(st.sampled_from(random_payload(seed, codec=codec).leaves()))
    assert is_canonical_chunk(leaf, size=codec.chunk, bits=codec.bits)
    bit = data.draw(st.integers(0, 8 * len(leaf) - 1))
    flipped = bytearray(leaf)
    flipped[bit // 8] ^= 1 << bit % 8
    expected = slow_is_canonical(bytes(flipped), codec.chunk, codec.bits)
    assert is_canonical_chunk(bytes(flipped), size=codec.chunk, bits=codec.bits) == expected


@pytest.mark.parametrize("bits", BITS)
def test_kept_of__any_length__is_the_one_k_that_fits(bits: int) -> None:
    lengths = {(12 * k + 7) // 8 + (bits * k + 7) // 8 + 5: k for k in range(1, 200)}
    for length in range(300):
        assert kept_of(length, bits) == lengths.get(length, 0)
    assert not is_canonical_chunk(b"\0" * 5, size=4096, bits=bits)
    assert not is_canonical_chunk(b"", size=4096, bits=bits)
