"""The chunks that the contract's tests read, and what honest encoders write, judged by the slow reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.spec import CodecSpec
from tests.training import vectors
from tests.training.codec_reference import slow_is_canonical
from tests.training.samples import CODECS, random_payload


def test_vectors__committed_file__equals_the_code() -> None:
    assert vectors.PATH.read_text() == vectors.render(), "run `python -m tests.training.vectors`"


@pytest.mark.parametrize(
    ("bits", "leaf", "canonical"),
    [
        pytest.param(bits, leaf, canonical, id=f"{bits} bits, k={k} {name}")
        for bits, k in vectors.SHAPES
        for name, leaf, canonical in vectors.cases_of(bits, k)
    ],
)
def test_is_canonical__chunk_of_the_vectors__is_what_they_say(
    bits: int, leaf: bytes, canonical: bool
) -> None:
    assert slow_is_canonical(leaf, vectors.CHUNK, bits) == canonical


@given(st.integers(0, 20), st.sampled_from(CODECS))
def test_leaves__any_payload__are_canonical(seed: int, codec: CodecSpec) -> None:
    for leaf in random_payload(seed, codec=codec).leaves():
        assert slow_is_canonical(leaf, codec.chunk, codec.bits)
