"""Trees over what lies on disk equal those in memory, and hand out nothing that is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from protocol.merkle import MerkleTree, depth_of, leaf_hash, merkle_root, verify_proof
from training.errors import DatasetError
from training.trees import GROUP, GroupedTree, RecordTree, group_nodes

SIZES = [1, 2, 3, 1000, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP, 5 * GROUP + 7]


def hashes_of(size: int) -> list[bytes]:
    return [leaf_hash(number.to_bytes(4, "little")) for number in range(size)]


def grouped(hashes: list[bytes]) -> GroupedTree:
    nodes = group_nodes(hashes, leaves=len(hashes))
    return GroupedTree(
        len(hashes), nodes, read=lambda first, last: hashes[first:last], where="here"
    )


@pytest.mark.parametrize("size", SIZES)
def test_grouped__any_size__equals_the_whole_tree(size: int) -> None:
    hashes = hashes_of(size)
    tree, whole = grouped(hashes), MerkleTree(hashes)
    assert tree.root == whole.root
    for index in {0, size // 2, max(0, size - 2), size - 1}:
        assert tree.leaf(index) == hashes[index]
        assert tree.proof(index) == whole.proof(index)
        assert verify_proof(
            root=tree.root,
            leaf=hashes[index],
            index=index,
            proof=tree.proof(index),
            depth=depth_of(size),
        )


def test_grouped__damaged_leaf__is_found_when_its_group_is_asked_for() -> None:
    hashes = hashes_of(3 * GROUP)
    tree = grouped(hashes)
    hashes[GROUP + 5] = bytes(32)
    assert tree.leaf(0) == hashes[0]
    for ask in (tree.leaf, tree.proof):
        with pytest.raises(DatasetError, match="here is damaged between leaves 1024 and 2048"):
            ask(GROUP)


@pytest.mark.parametrize("index", [-1, 3])
def test_grouped__no_such_leaf__raises_index_error(index: int) -> None:
    tree = grouped(hashes_of(3))
    for ask in (tree.leaf, tree.proof):
        with pytest.raises(IndexError):
            ask(index)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 300])
def test_records__a_file__is_a_tree_over_leaves_of_several(tmp_path: Path, count: int) -> None:
    dtype = np.dtype([("a", "<u8"), ("b", "<u8")])
    content = np.arange(2 * count, dtype="<u8").tobytes()
    (tmp_path / "records").write_bytes(content)
    tree = RecordTree(tmp_path / "records", dtype, per_leaf=64)
    leaves = [content[i : i + 1024] for i in range(0, len(content), 1024)]
    hashes = [leaf_hash(leaf) for leaf in leaves]
    assert tree.root == merkle_root(hashes)
    for record in {0, count // 2, count - 1}:
        assert tree.leaf(record) == leaves[record // 64]
        assert tree.proof(record) == MerkleTree(hashes).proof(record // 64)
        assert int(tree.records[record]["b"]) == 2 * record + 1
