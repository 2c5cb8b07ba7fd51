"""Leaves opened for the data requests, checked as the contract checks them."""

from __future__ import annotations

import dataclasses
import random

import pytest

from ledger.contracts.requests import ItemKind, Opening
from miner.work import Work
from node.contents import trace_leaf_count
from node.openings import BLOB_OF, local_index, local_leaf_counts, local_tensors, opener
from protocol.errors import Bug, OperatorError, Rejected
from protocol.ids import ZERO32, Hash32
from protocol.merkle import leaf_hash, node_hash, verify_proof
from protocol.submission import Submission
from tests.bench import Desk, desk_over
from tests.subnet.stepped import key_named
from training.dataset import TokenDataset
from training.layout import chunk_layout
from training.local_state import LocalState
from training.roots import LEAF_BYTES

MINER = key_named("miner").address


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("honest", MINER)[0]


def opened(desk: Desk, work: Work, kind: ItemKind, index: int) -> Opening:
    return opener(kind, work.submission, desk.spec, work.blobs[BLOB_OF[kind]])(index)


def stands(
    root: Hash32, content: bytes, index: int, position: int, proof: tuple[Hash32, ...]
) -> bool:
    """The contract's rule: the leaf itself, or the last one before it."""
    if position > index or (position < index and not _ends(position, proof)):
        return False
    return verify_proof(
        root=root, leaf=leaf_hash(content), index=position, proof=proof, depth=len(proof)
    )


def _ends(position: int, proof: tuple[Hash32, ...]) -> bool:
    absent = ZERO32
    for level, sibling in enumerate(proof):
        if not position >> level & 1 and sibling != absent:
            return False
        absent = node_hash(absent, absent)
    return True


def shows(submission: Submission, kind: ItemKind, index: int, opening: Opening) -> bool:
    """What `LeafLib` computes."""
    match kind:
        case ItemKind.DATA:
            return verify_proof(
                root=submission.data_root,
                leaf=opening.content,
                index=index,
                proof=opening.proof,
                depth=len(opening.proof),
            )
        case ItemKind.TRACE:
            root = submission.trace_root
        case ItemKind.PAYLOAD:
            root = submission.payload_root
        case _:
            tensor, leaf = index >> 32, index & 0xFFFFFFFF
            outer = stands(
                submission.local_out,
                opening.tensor,
                tensor,
                opening.tensor_position,
                opening.tensor_proof,
            )
            if not outer or opening.tensor_position != tensor:
                return outer and not opening.content and not opening.proof
            root, index = Hash32(opening.tensor[-32:]), leaf
    return stands(root, opening.content, index, opening.position, opening.proof)


def counts(desk: Desk) -> dict[ItemKind, int]:
    return {
        ItemKind.DATA: desk.spec.chain.samples_per_round,
        ItemKind.TRACE: trace_leaf_count(desk.spec),
        ItemKind.PAYLOAD: chunk_layout(desk.spec.model, desk.spec.codec).chunks,
    }


@pytest.mark.parametrize("kind", [ItemKind.DATA, ItemKind.TRACE, ItemKind.PAYLOAD])
def test_opener__every_leaf__stands_under_the_signed_root(
    desk: Desk, work: Work, kind: ItemKind
) -> None:
    count = counts(desk)[kind]
    for index in {0, 1, count // 2, count - 2, count - 1}:
        opening = opened(desk, work, kind, index)
        assert opening.position == index
        assert shows(work.submission, kind, index, opening)
        assert not shows(work.submission, kind, index - 1 if index else 1, opening)


def test_opener__local_state__shows_tensor_and_leaf(desk: Desk, work: Work) -> None:
    leaves = local_leaf_counts(desk.spec.model)
    names = [name for name, _ in local_tensors(LocalState.zeros(desk.spec.model))]
    assert names == sorted(names)
    assert leaves[names.index("step")] == 1
    rng = random.Random(1)
    for tensor in {0, len(leaves) - 1, *rng.sample(range(len(leaves)), 5)}:
        for leaf in {0, leaves[tensor] - 1}:
            index = local_index(desk.spec.model, names[tensor], leaf)
            opening = opened(desk, work, ItemKind.LOCAL, index)
            assert shows(work.submission, ItemKind.LOCAL, index, opening)
            assert len(opening.content) <= LEAF_BYTES
            assert names[tensor].encode() in opening.tensor


def test_opener__no_such_leaf__shows_the_last_one(desk: Desk, work: Work) -> None:
    leaves = local_leaf_counts(desk.spec.model)
    chunks = counts(desk)[ItemKind.PAYLOAD]
    beyond = [
        (ItemKind.PAYLOAD, chunks),
        (ItemKind.PAYLOAD, (1 << 64) - 1),
        (ItemKind.LOCAL, len(leaves) << 32),
        (ItemKind.LOCAL, 3 << 32 | leaves[3]),
    ]
    for kind, index in beyond:
        opening = opened(desk, work, kind, index)
        assert shows(work.submission, kind, index, opening)
        assert not shows(work.submission, kind, 2, opening), "a leaf that exists can't be denied"


def test_opener__beyond_a_known_count_or_of_a_submission__is_refused(
    desk: Desk, work: Work
) -> None:
    for kind in (ItemKind.DATA, ItemKind.TRACE):
        with pytest.raises(Rejected):
            opened(desk, work, kind, counts(desk)[kind])
    with pytest.raises(Bug):
        opener(ItemKind.SUBMISSION, work.submission, desk.spec, b"")


@pytest.mark.parametrize("kind", list(BLOB_OF))
def test_opener__blob_of_another_submission__is_rejected(
    desk: Desk, work: Work, kind: ItemKind
) -> None:
    other = Hash32(bytes(32))
    submission = dataclasses.replace(
        work.submission, data_root=other, trace_root=other, payload_root=other, local_out=other
    )
    with pytest.raises(Rejected):
        opener(kind, submission, desk.spec, work.blobs[BLOB_OF[kind]])


def test_local_index__unknown_tensor__names_those_there_are(desk: Desk) -> None:
    with pytest.raises(OperatorError, match="step"):
        local_index(desk.spec.model, "nothing", 0)
