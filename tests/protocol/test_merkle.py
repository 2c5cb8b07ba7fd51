"""Merkle trees against a slow recursive reference, and what a proof must refuse."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import ZERO32
from protocol.merkle import MerkleTree, depth_of, leaf_hash, node_hash, verify_proof

leaves_of = st.lists(st.binary(max_size=40), min_size=1, max_size=40)


def slow_root(hashes: list[bytes]) -> bytes:
    """The definition, recursively, on an explicitly padded list."""
    if len(hashes) == 1:
        return hashes[0]
    half = len(hashes) // 2
    return sha256(b"\1" + slow_root(hashes[:half]) + slow_root(hashes[half:])).digest()


@given(leaves_of)
def test_root__any_leaves__equals_padded_reference(datas: list[bytes]) -> None:
    hashes = [sha256(b"\0" + data).digest() for data in datas]
    padded = hashes + [bytes(ZERO32)] * ((1 << depth_of(len(hashes))) - len(hashes))
    assert MerkleTree(hashes).root == slow_root(padded)


@given(leaves_of, st.integers(0, 4))
def test_tree__in_two_storeys__equals_the_whole(datas: list[bytes], height: int) -> None:
    """Subtrees padded to one depth, and a tree over their roots that knows how high it begins."""
    whole = MerkleTree([leaf_hash(data) for data in datas])
    height, size = min(height, whole.depth), 1 << min(height, whole.depth)
    lower = [
        MerkleTree(whole.leaves[first : first + size], depth=height)
        for first in range(0, len(datas), size)
    ]
    upper = MerkleTree([tree.root for tree in lower], height=height)
    assert upper.root == whole.root
    for index in range(len(datas)):
        part, place = divmod(index, size)
        assert (*lower[part].proof(place), *upper.proof(part)) == whole.proof(index)
    assert upper.nodes(0, 0, len(lower)) == whole.nodes(height, 0, len(lower))


def test_tree__more_leaves_than_its_depth_holds__raises() -> None:
    with pytest.raises(ValueError, match="don't fit"):
        MerkleTree([ZERO32] * 3, depth=1)


@given(leaves_of, st.data())
def test_proof__any_leaf__verifies_only_in_its_place(
    datas: list[bytes], data: st.DataObject
) -> None:
    tree = MerkleTree([leaf_hash(item) for item in datas])
    index = data.draw(st.integers(0, len(datas) - 1))
    other = data.draw(st.integers(0, (1 << tree.depth) - 1))
    leaf, proof = tree.leaves[index], tree.proof(index)

    def verifies(**changed: object) -> bool:
        args = {
            "root": tree.root,
            "leaf": leaf,
            "index": index,
            "proof": proof,
            "depth": tree.depth,
        }
        return verify_proof(**{**args, **changed})  # type: ignore[arg-type]

    assert verifies()
    at_other = tree.leaves[other] if other < len(datas) else ZERO32
    assert verifies(index=other) == (
        other == index or (at_other == leaf and tree.proof(other) == proof)
    )
    assert not verifies(leaf=leaf_hash(b"another leaf than any drawn, " + b"x" * 40))
    assert not verifies(proof=(*proof, ZERO32))
    assert not verifies(depth=tree.depth + 1)
    assert not verifies(index=-1)


def test_proof__inner_node_as_leaf__is_refused() -> None:
    tree = MerkleTree([leaf_hash(bytes([i])) for i in range(4)])
    inner = node_hash(tree.leaves[0], tree.leaves[1])
    shortened = tree.proof(0)[1:]
    assert not verify_proof(root=tree.root, leaf=inner, index=0, proof=shortened, depth=2)
    assert leaf_hash(tree.leaves[0] + tree.leaves[1]) != inner


@pytest.mark.parametrize(("count", "depth"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1025, 11)])
def test_depth_of__count__is_ceil_log2(count: int, depth: int) -> None:
    assert depth_of(count) == depth


def test_proof__index_outside__raises() -> None:
    with pytest.raises(IndexError):
        MerkleTree([ZERO32]).proof(1)
    with pytest.raises(ValueError, match="at least one leaf"):
        MerkleTree([])


def test_verify_proof__path_longer_than_contracts_follow__is_refused() -> None:
    node, siblings = leaf_hash(b"deep"), [leaf_hash(bytes([level])) for level in range(65)]
    roots = []
    for sibling in siblings:
        node = node_hash(node, sibling)
        roots.append(node)
    for depth, holds in ((64, True), (65, False)):
        proof = siblings[:depth]
        found = verify_proof(
            root=roots[depth - 1], leaf=leaf_hash(b"deep"), index=0, proof=proof, depth=depth
        )
        assert found is holds
