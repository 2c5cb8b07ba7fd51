"""The chunks that the contract's tests read are what the decoder says."""

from __future__ import annotations

import pytest

from tests.specs import MODEL
from tests.training import vectors
from training.codec import decode_payload
from training.errors import PayloadError


def test_vectors__committed_file__equals_the_code() -> None:
    assert vectors.PATH.read_text() == vectors.render(), "run `python -m tests.training.vectors`"


@pytest.mark.parametrize(
    ("k", "leaf", "canonical"),
    [
        pytest.param(k, leaf, canonical, id=f"k={k} {name}")
        for k in vectors.KS
        for name, leaf, canonical in vectors.cases_of(k)
    ],
)
def test_decode__chunk_of_the_vectors__is_refused_unless_canonical(
    k: int, leaf: bytes, canonical: bool
) -> None:
    data = vectors.with_first_chunk(leaf, k)
    codec = vectors.codec_of(k)
    if canonical:
        assert decode_payload(data, MODEL, codec).leaf(0) == leaf
        return
    with pytest.raises(PayloadError):
        decode_payload(data, MODEL, codec)
