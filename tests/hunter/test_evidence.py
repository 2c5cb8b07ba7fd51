"""Evidence holds exactly what a contract needs, and there is none against the honest."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hunter.evidence import (
    MOST_SIBLINGS,
    bad_chunk,
    bad_encoding,
    equivocations,
    wrong_data,
    wrong_leaf,
    wrong_spec,
)
from miner.work import Work
from protocol.ids import Hash32
from protocol.merkle import MerkleTree, depth_of, leaf_hash, merkle_root, verify_proof
from protocol.submission import SignedSubmission
from tests.bench import BEACON, Desk, desk_over
from tests.specs import some_hash
from tests.subnet.stepped import key_named
from tests.training.samples import SMALL
from tests.training.vectors import cases_of
from training.dataset import TokenDataset

MINERS = [key_named(f"miner {number}").address for number in range(4)]
KEY = key_named("operator")


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture(scope="module")
def work(desk: Desk) -> Work:
    return desk.work("zero", MINERS[0])[0]


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_equivocations__any_signed_set__names_each_miner_with_two_for_the_canonical_beacon_once(
    desk: Desk, work: Work, data: st.DataObject
) -> None:
    shown: list[SignedSubmission] = []
    guilty = set()
    for miner in MINERS:
        steps = data.draw(st.lists(st.integers(1, 3), max_size=4))
        stray = data.draw(st.lists(st.integers(1, 3), max_size=2))
        for beacon, versions in ((BEACON, steps), (some_hash("reorganised"), stray)):
            shown += [
                desk.publish(work, KEY, miner=miner, beacon=beacon, steps=count).signed
                for count in versions
            ]
        if len(set(steps)) > 1:
            guilty.add(miner)
    random.Random(data.draw(st.integers(0, 9))).shuffle(shown)
    found = equivocations(shown, domain=desk.run_file.domain, beacon=BEACON)
    assert sorted(each.first.submission.miner for each in found) == sorted(guilty)
    for each in found:
        first, second = each.first.submission, each.second.submission
        assert first != second
        assert (first.miner, first.round, first.beacon, first.run) == (
            second.miner,
            second.round,
            second.beacon,
            second.run,
        )
        assert first.beacon == BEACON
        assert {each.first, each.second} <= set(shown)
    again = equivocations(shown[::-1], domain=desk.run_file.domain, beacon=BEACON)
    assert again == found, "the order of discovery plays no part"


def test_wrong_data__honest_leaves__is_none(desk: Desk) -> None:
    (work,) = desk.work("honest", MINERS[0])
    leaves = [desk.dataset.leaf_hash(index) for index in desk.assigned(MINERS[0])]
    assert wrong_data(desk.publish(work, KEY).signed, leaves, desk.dataset) is None


@settings(deadline=None, max_examples=30)
@given(
    places=st.sets(st.integers(0, 47), min_size=1, max_size=5),
    invented=st.booleans(),
)
def test_wrong_data__any_wrong_samples__opens_the_first_of_them_against_both_roots(
    desk: Desk, work: Work, places: set[int], invented: bool
) -> None:
    miner = MINERS[0]
    assigned = desk.assigned(miner)
    leaves = [desk.dataset.leaf_hash(index) for index in assigned]
    for place in places:
        other = (assigned[place] + 1) % desk.dataset.train_samples
        leaves[place] = some_hash(f"{place}") if invented else desk.dataset.leaf_hash(other)
    root = merkle_root(leaves)
    signed = desk.publish(work, KEY, data_root=root).signed
    found = wrong_data(signed, leaves, desk.dataset)
    assert found is not None
    assert found.index == min(places)
    assert found.signed == signed
    assert found.claimed_leaf != found.true_leaf
    assert verify_proof(
        root=root,
        leaf=found.claimed_leaf,
        index=found.index,
        proof=found.claimed_proof,
        depth=depth_of(desk.spec.chain.samples_per_round),
    )
    assert verify_proof(
        root=desk.spec.chain.dataset_root,
        leaf=found.true_leaf,
        index=assigned[found.index],
        proof=found.true_proof,
        depth=desk.spec.chain.dataset_depth,
    )


def test_equivocations__one_submission_shown_twice__is_none(desk: Desk, work: Work) -> None:
    signed = desk.publish(work, KEY).signed
    again = replace(signed)
    assert equivocations([signed, again], domain=desk.run_file.domain, beacon=BEACON) == []
    other_beacon = Hash32(some_hash("another"))
    assert equivocations([signed], domain=desk.run_file.domain, beacon=other_beacon) == []


def test_wrong_spec__registered_or_not__tells_them_apart(desk: Desk, work: Work) -> None:
    registered = desk.spec.hash()
    assert wrong_spec(desk.publish(work, KEY).signed, registered) is None
    signed = desk.publish(work, KEY, spec_hash=some_hash("another spec")).signed
    found = wrong_spec(signed, registered)
    assert found is not None
    assert found.signed == signed


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_bad_encoding__any_bad_chunks__opens_the_first_of_them(
    desk: Desk, work: Work, data: st.DataObject
) -> None:
    chunks = data.draw(st.lists(st.sampled_from(cases_of(2, 4)), min_size=1, max_size=9))
    leaves = [leaf for _, leaf, _ in chunks]
    root = merkle_root([leaf_hash(leaf) for leaf in leaves])
    signed = desk.publish(work, KEY, payload_root=root).signed
    found = bad_encoding(signed, leaves, SMALL)
    bad = [place for place, (_, _, canonical) in enumerate(chunks) if not canonical]
    if not bad:
        assert found is None
        return
    assert found is not None
    assert (found.chunk, found.leaf, found.signed) == (bad[0], leaves[bad[0]], signed)
    assert verify_proof(
        root=root,
        leaf=leaf_hash(found.leaf),
        index=found.chunk,
        proof=found.proof,
        depth=depth_of(len(leaves)),
    )
    other = desk.publish(work, KEY, payload_root=some_hash("other leaves")).signed
    assert bad_encoding(other, leaves, SMALL) is None, "they are not what was signed"


def test_bad_chunk__opened_alone__must_stand_under_the_signed_root(desk: Desk, work: Work) -> None:
    leaves = [next(leaf for name, leaf, _ in cases_of(2, 4) if name == "unsorted"), b"\0" * 11]
    tree = MerkleTree([leaf_hash(leaf) for leaf in leaves])
    signed = desk.publish(work, KEY, payload_root=tree.root).signed
    proof = tree.proof(0)
    found = bad_chunk(signed, 0, leaf=leaves[0], proof=proof, codec=SMALL)
    assert found is not None
    assert bad_chunk(signed, 1, leaf=leaves[0], proof=proof, codec=SMALL) is None
    assert bad_chunk(signed, 0, leaf=leaves[1], proof=proof, codec=SMALL) is None
    deep = [some_hash(f"{level}") for level in range(MOST_SIBLINGS + 1)]
    assert bad_chunk(signed, 0, leaf=leaves[0], proof=deep, codec=SMALL) is None


def test_wrong_leaf__one_leaf_shown__is_the_same_evidence_as_all_of_them(
    desk: Desk, work: Work
) -> None:
    leaves = [desk.dataset.leaf_hash(sample) for sample in desk.assigned(MINERS[0])]
    leaves[3] = some_hash("a nicer sample")
    tree = MerkleTree(leaves)
    signed = desk.publish(work, KEY, data_root=tree.root).signed

    def shown(index: int) -> object:
        proof = tree.proof(index)
        return wrong_leaf(signed, index, claimed=leaves[index], proof=proof, dataset=desk.dataset)

    assert shown(3) == wrong_data(signed, leaves, desk.dataset)
    assert shown(2) is None
