"""Blobs from strangers: read as what was signed, or rejected; never anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from miner.work import Work
from node.contents import (
    read_data_leaves,
    read_local,
    read_payload,
    read_trace,
    size_limits,
    trace_leaf_count,
)
from protocol.errors import Rejected
from protocol.spec import RunSpec
from protocol.submission import BLOB_KINDS, Submission
from tests.bench import Desk, desk_over
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from training.roots import local_root

MINER = key_named("miner").address
READERS: Mapping[str, Callable[[bytes, Submission, RunSpec], object]] = {
    "data": read_data_leaves,
    "local": read_local,
    "payload": read_payload,
    "trace": read_trace,
}


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("honest", MINER)[0]


@pytest.fixture(scope="module")
def stranger(desk: Desk) -> Work:
    """Another miner's honest work."""
    return desk.work("honest", key_named("stranger").address)[0]


def test_readers__honest_work__is_read_whole(desk: Desk, work: Work) -> None:
    submission, spec = work.submission, desk.spec
    assert set(READERS) == set(BLOB_KINDS)
    assert read_payload(work.blobs["payload"], submission, spec).root() == submission.payload_root
    assert local_root(read_local(work.blobs["local"], submission, spec)) == submission.local_out
    leaves = read_data_leaves(work.blobs["data"], submission, spec)
    assert leaves == tuple(desk.dataset.leaf_hash(i) for i in desk.assigned(MINER))
    trace = read_trace(work.blobs["trace"], submission, spec)
    assert len(trace) == trace_leaf_count(spec) == 2 + spec.inner.steps
    assert trace[0] == submission.initial_root + submission.local_in
    assert trace[-1] == submission.payload_root + submission.local_out


def test_size_limits__honest_work__fits(desk: Desk, work: Work) -> None:
    limits = size_limits(desk.spec)
    for kind, data in work.blobs.items():
        assert len(data) <= limits[kind]


@pytest.mark.parametrize("kind", BLOB_KINDS)
def test_readers__blob_of_another_miner_or_kind__is_rejected(
    desk: Desk, work: Work, stranger: Work, kind: str
) -> None:
    wrong = [data for other, data in work.blobs.items() if other != kind]
    for data in [stranger.blobs[kind], *wrong, b""]:
        with pytest.raises(Rejected):
            READERS[kind](data, work.submission, desk.spec)


@pytest.mark.parametrize("kind", BLOB_KINDS)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_readers__mutated_blob__is_rejected(
    desk: Desk, work: Work, kind: str, data: st.DataObject
) -> None:
    blob = bytearray(work.blobs[kind])
    near = data.draw(st.booleans())
    place = data.draw(st.integers(0, min(len(blob), 256 if near else len(blob)) - 1))
    match data.draw(st.sampled_from(("flip", "overwrite", "cut", "insert", "shorten", "extend"))):
        case "flip":
            blob[place] ^= 1 << data.draw(st.integers(0, 7))
        case "overwrite":
            piece = data.draw(st.sampled_from((b"\xff" * 8, b"\x00" * 8, b"\x00\x00\xc0\x7f" * 2)))
            blob[place : place + 8] = piece[: len(blob) - place]
        case "cut":
            del blob[place : place + data.draw(st.integers(1, 64))]
        case "insert":
            blob[place:place] = data.draw(st.binary(min_size=1, max_size=64))
        case "shorten":
            del blob[place:]
        case "extend":
            blob += data.draw(st.binary(min_size=1, max_size=64))
    if bytes(blob) == work.blobs[kind]:
        return
    with pytest.raises(Rejected):
        READERS[kind](bytes(blob), work.submission, desk.spec)


@pytest.mark.parametrize("kind", BLOB_KINDS)
@settings(max_examples=60, deadline=None)
@given(junk=st.binary(max_size=400))
def test_readers__junk__is_rejected(desk: Desk, work: Work, kind: str, junk: bytes) -> None:
    with pytest.raises(Rejected):
        READERS[kind](junk, work.submission, desk.spec)
