"""Publications survive the wire exactly, and nothing else is taken for one."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Rejected
from protocol.ids import ZERO32, Hash32
from protocol.submission import BLOB_KINDS, BlobRef, Publication, SignedSubmission
from tests.protocol.vectors import DOMAIN, SUBMISSION, hash_of

PUBLICATION = Publication(
    signed=SignedSubmission(submission=SUBMISSION, signature=bytes(range(65))),
    blobs={kind: BlobRef(digest=hash_of(kind), size=i) for i, kind in enumerate(BLOB_KINDS)},
)


def test_publication__to_bytes_and_back__is_equal() -> None:
    assert Publication.from_bytes(PUBLICATION.to_bytes()) == PUBLICATION


@given(st.binary(max_size=3), st.integers(0, 2000), st.integers(0, 3))
def test_publication__mutated_bytes__are_rejected_or_another_valid_one(
    junk: bytes, at: int, drop: int
) -> None:
    good = PUBLICATION.to_bytes()
    at %= len(good)
    mutated = good[:at] + junk + good[at + drop :]
    try:
        decoded = Publication.from_bytes(mutated)
    except Rejected:
        return
    assert decoded.to_bytes() == mutated


@pytest.mark.parametrize("key", ["blobs", "signature", "submission"])
def test_publication__missing_key__is_rejected(key: str) -> None:
    obj = json.loads(PUBLICATION.to_bytes())
    del obj[key]
    raw = json.dumps(obj, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(Rejected):
        Publication.from_bytes(raw)


def test_publication__another_spelling_of_the_same_hex__is_rejected() -> None:
    good = PUBLICATION.to_bytes()
    digest = SUBMISSION.initial_root.hex().encode()
    assert good.count(digest) == 1
    for other in (digest.upper(), b"0x" + digest, digest[:32] + b" " + digest[32:]):
        with pytest.raises(Rejected):
            Publication.from_bytes(good.replace(digest, other))


def test_digest__any_field_changed__changes() -> None:
    before = SUBMISSION.digest(DOMAIN)
    for field in fields(SUBMISSION):
        value = getattr(SUBMISSION, field.name)
        changed: object = value + 1 if isinstance(value, int) else ZERO32
        if field.name == "miner":
            changed = DOMAIN.registry
        other = replace(SUBMISSION, **{field.name: changed})  # type: ignore[arg-type]  # each by name
        assert other.digest(DOMAIN) != before, field.name


def test_submission__number_out_of_range__is_rejected() -> None:
    with pytest.raises(Rejected, match="payload_bytes"):
        replace(SUBMISSION, payload_bytes=1 << 64)
    with pytest.raises(Rejected, match="steps"):
        replace(SUBMISSION, steps=-1)
    with pytest.raises(Rejected, match="65 bytes"):
        SignedSubmission(submission=SUBMISSION, signature=bytes(64))
    with pytest.raises(Rejected, match="out of range"):
        BlobRef(digest=Hash32(ZERO32), size=-1)
