"""Evidence survives its file to the byte, and nothing else is taken for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunter import evidence_json
from ledger.contracts.epochs import Ballot
from ledger.contracts.evidence import (
    BadEncodingEvidence,
    EquivocationEvidence,
    Evidence,
    LocalStateEvidence,
    WrongDataEvidence,
    WrongSpecEvidence,
    kind_of,
)
from protocol import canonical
from protocol.errors import Rejected
from protocol.ids import Hash32, Round, Slot
from protocol.submission import SignedSubmission, Submission
from tests.specs import some_hash
from tests.subnet.stepped import key_named

MINER = key_named("miner").address
hashes = st.binary(min_size=32, max_size=32).map(Hash32)
proofs = st.lists(hashes, max_size=4).map(tuple)
words = st.integers(0, (1 << 64) - 1)
signed = st.builds(
    SignedSubmission,
    submission=st.builds(
        Submission,
        run=hashes,
        spec_hash=hashes,
        round=words.map(Round),
        beacon=hashes,
        miner=st.just(MINER),
        initial_root=hashes,
        local_from_round=words.map(Round),
        local_in=hashes,
        local_out=hashes,
        data_root=hashes,
        payload_root=hashes,
        payload_bytes=words,
        trace_root=hashes,
        steps=st.integers(0, (1 << 32) - 1),
    ),
    signature=st.binary(min_size=65, max_size=65),
)
slots = st.integers(0, (1 << 32) - 1).map(Slot)
ballots = st.builds(Ballot, slot=slots, root=hashes, bitmap=st.binary(max_size=9))
evidence = st.one_of(
    st.builds(EquivocationEvidence, first=signed, second=signed),
    st.builds(WrongSpecEvidence, signed=signed),
    st.builds(
        WrongDataEvidence,
        signed=signed,
        index=st.integers(0, (1 << 32) - 1),
        claimed_leaf=hashes,
        claimed_proof=proofs,
        true_leaf=hashes,
        true_proof=proofs,
    ),
    st.builds(
        LocalStateEvidence,
        signed=signed,
        other=st.none() | signed,
        ballots=st.lists(ballots, max_size=3).map(tuple),
    ),
    st.builds(
        BadEncodingEvidence,
        signed=signed,
        chunk=st.integers(0, (1 << 256) - 1),
        leaf=st.binary(max_size=40),
        proof=proofs,
    ),
)


@settings(deadline=None)
@given(case=evidence)
def test_evidence__written_and_read__is_the_same(case: Evidence) -> None:
    data = evidence_json.to_bytes(case)
    assert evidence_json.from_bytes(data) == case
    value = canonical.loads(data)
    assert isinstance(value, dict)
    assert value["version"] == evidence_json.VERSION
    assert evidence_json.kind_named(str(value["kind"])) is kind_of(case)


def _submission() -> SignedSubmission:
    zero = some_hash("zero")
    submission = Submission(
        run=zero,
        spec_hash=zero,
        round=Round(1),
        beacon=zero,
        miner=MINER,
        initial_root=zero,
        local_from_round=Round(0),
        local_in=zero,
        local_out=zero,
        data_root=zero,
        payload_root=zero,
        payload_bytes=0,
        trace_root=zero,
        steps=1,
    )
    return SignedSubmission(submission=submission, signature=bytes(65))


Change = Callable[[dict[str, canonical.Json]], object]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda doc: doc.update(version=2), "version 2"),
        (lambda doc: doc.pop("version"), "version None"),
        (lambda doc: doc.update(kind="theft"), "unknown kind"),
        (lambda doc: doc.update(more=1), "expected version, kind"),
        (lambda doc: doc.update(submissions=[]), "1 submissions"),
        (lambda doc: doc.update(submissions={}), "1 submissions"),
        (lambda doc: doc.update(submissions=[{}]), "its signature"),
        (lambda doc: doc.update(details=[]), "expected an object"),
        (lambda doc: doc["details"].update(chunk=-1), "chunk out of range"),
        (lambda doc: doc["details"].update(leaf="zz"), "hex digits"),
        (lambda doc: doc["details"].update(leaf="AB"), "canonical form"),
        (lambda doc: doc["details"].update(proof=["00"]), "32 bytes"),
    ],
)
def test_evidence__anything_else__is_rejected(change: Change, what: str) -> None:
    case = BadEncodingEvidence(signed=_submission(), chunk=1, leaf=b"\1", proof=())
    value = canonical.loads(evidence_json.to_bytes(case))
    assert isinstance(value, dict)
    change(value)
    with pytest.raises(Rejected, match=what):
        evidence_json.from_bytes(canonical.dumps(value))


@pytest.mark.parametrize("data", [b"", b"[]", b'{"version": 1}', b"\xff"])
def test_evidence__no_document__is_rejected(data: bytes) -> None:
    with pytest.raises(Rejected):
        evidence_json.from_bytes(data)
