"""The judge of chunks says of every vector what the decoder and the contract say."""

from __future__ import annotations

import pytest

from tests.training import vectors
from tests.training.samples import SMALL, random_payload
from training.chunk import is_canonical_chunk, kept_of


@pytest.mark.parametrize("k", vectors.KS)
def test_is_canonical_chunk__vectors__agree(k: int) -> None:
    for name, leaf, canonical in vectors.cases_of(k):
        assert is_canonical_chunk(leaf) == canonical, name
        assert kept_of(len(leaf)) == k


def test_is_canonical_chunk__what_the_encoder_writes__is() -> None:
    for seed in range(5):
        assert all(is_canonical_chunk(leaf) for leaf in random_payload(seed, codec=SMALL).leaves())


def test_kept_of__any_length__is_the_one_k_that_fits() -> None:
    lengths = {(12 * k + 7) // 8 + (2 * k + 7) // 8 + 4: k for k in range(1, 200)}
    for length in range(300):
        assert kept_of(length) == lengths.get(length, 0)
    assert not is_canonical_chunk(b"\0" * 4)
    assert not is_canonical_chunk(b"")
