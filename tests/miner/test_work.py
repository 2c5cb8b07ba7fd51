"""An honest round: what is signed is what was done, and anyone can do it again."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from miner.behaviour import Behaviour
from miner.work import Work
from protocol.hashing import sha256
from protocol.merkle import MerkleTree, leaf_hash, merkle_root, verify_proof
from scoring.checks import Delivery, Expectation, Fault, visible_faults
from tests.bench import BEACON, ROUND, RUN, Desk, desk_over
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from training.roots import zero_local_root
from training.savepoint import Savepoints

MINER, KEY = key_named("miner").address, key_named("operator")


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    (done,) = desk.work("honest", MINER)
    return done


def faults_of(desk: Desk, work: Work, **seen: object) -> tuple[Fault, ...]:
    """What a validator that fetched everything finds wrong."""
    submission = work.submission
    expectation = Expectation(
        run=RUN,
        spec_hash=desk.spec.hash(),
        round=ROUND,
        beacon=BEACON,
        miner=MINER,
        initial_root=desk.start(MINER).initial_root,
        recent_roots={},
        steps=desk.spec.inner.steps,
        data_root=merkle_root([desk.dataset.leaf_hash(i) for i in desk.assigned(MINER)]),
        zero_local_root=zero_local_root(desk.spec.model),
        origin=None,
        max_payload_bytes=1 << 20,
        max_steps_behind=3,
    )
    digest = submission.digest(desk.run_file.domain)
    delivery = Delivery(
        digest=digest,
        committed=digest,
        signature_valid=True,
        payload_root=submission.payload_root,
        local_root=submission.local_out,
    )
    return visible_faults(submission, expectation, delivery)


def test_work__honest__has_no_visible_fault(desk: Desk, work: Work) -> None:
    assert faults_of(desk, work) == ()


def test_work__again__gives_the_same_bytes(desk: Desk, work: Work) -> None:
    (again,) = desk.work("honest", MINER)
    assert again.submission == work.submission
    assert again.blobs == work.blobs


def test_work__another_miner__gets_other_samples_and_other_results(desk: Desk, work: Work) -> None:
    other = key_named("other").address
    (theirs,) = desk.work("honest", other)
    assert desk.assigned(other) != desk.assigned(MINER)
    for name in ("data_root", "payload_root", "local_out", "trace_root"):
        assert getattr(theirs.submission, name) != getattr(work.submission, name)


def test_work__refs__are_the_blobs_own(desk: Desk, work: Work) -> None:
    for kind, ref in work.refs().items():
        assert ref.digest == sha256(work.blobs[kind])
        assert ref.size == len(work.blobs[kind])
    assert work.refs()["payload"].size == work.submission.payload_bytes


def test_work__data_root__proves_each_assigned_sample(desk: Desk, work: Work) -> None:
    leaves = [desk.dataset.leaf_hash(i) for i in desk.assigned(MINER)]
    tree = MerkleTree(leaves)
    assert tree.root == work.submission.data_root
    for index, leaf in enumerate(leaves):
        assert verify_proof(
            root=work.submission.data_root,
            leaf=leaf,
            index=index,
            proof=tree.proof(index),
            depth=tree.depth,
        )


def test_work__trace_root__covers_the_trace_that_is_served(work: Work) -> None:
    data = work.blobs["trace"]
    leaves = [data[i : i + 64] for i in range(0, len(data), 64)]
    assert merkle_root([leaf_hash(leaf) for leaf in leaves]) == work.submission.trace_root
    assert len(set(leaves)) == len(leaves), "every step changed something"


def test_work__cut_off__is_taken_up_from_a_savepoint_to_the_same_submission(
    desk: Desk, work: Work, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    savepoints = Savepoints(tmp_path, every_s=0)
    bench = replace(desk.bench(MINER), savepoints=savepoints)
    start = desk.start(MINER)
    bench.train(start, start.assigned)
    assert any(tmp_path.iterdir()), "a round leaves its savepoints until it is signed"
    with caplog.at_level(logging.INFO):
        (again,) = Behaviour().work(bench, start)
    assert f"going on after {desk.spec.inner.steps - 1} steps" in caplog.text
    assert (again.submission, again.blobs) == (work.submission, work.blobs)


def test_work__checkpointed_activations__give_the_same_submission(desk: Desk, work: Work) -> None:
    bench = replace(desk.bench(MINER), checkpoint_activations=True)
    (again,) = Behaviour().work(bench, desk.start(MINER))
    assert (again.submission, again.blobs) == (work.submission, work.blobs)
