"""The settlement tree against a slow, dense reference of the same definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import Bug
from protocol.hashing import abi_words, keccak256
from protocol.ids import ZERO32, Epoch, Hash32, Slot, Units, to_address
from protocol.settlement import (
    DEPTH,
    EMPTY_NODE,
    HALF_DEPTH,
    SettlementLeaf,
    SettlementTree,
    SumNode,
    cells_root,
    parent,
    weights_commitment,
    weights_root,
)

amounts = st.integers(0, 2**100)


def leaf_at(index: int, w: int, amount: int) -> SettlementLeaf:
    return SettlementLeaf(
        index=index,
        account=to_address(index.to_bytes(20, "big")),
        w=w,
        amount=Units(amount),
        cumulative=Units(amount + 7),
        prev_epoch=Epoch(2),
        cells=ZERO32,
    )


@settings(max_examples=8, deadline=None)
@given(st.dictionaries(st.integers(0, 2**DEPTH - 1), st.tuples(amounts, amounts), max_size=12))
def test_tree__any_leaves__sums_up_and_every_proof_reaches_the_root(
    rows: dict[int, tuple[int, int]],
) -> None:
    leaves = {index: leaf_at(index, *row) for index, row in rows.items()}
    tree = SettlementTree(Epoch(3), leaves)
    level: list[SumNode] = [
        leaves[i].node(Epoch(3)) if i in leaves else EMPTY_NODE for i in range(2**DEPTH)
    ]
    while len(level) > 1:
        level = [parent(level[i], level[i + 1]) for i in range(0, len(level), 2)]
    assert tree.root == level[0] == parent(tree.miners, tree.validators)
    assert tree.root.amount == sum(amount for _, amount in rows.values())
    for index, leaf in leaves.items():
        node = leaf.node(Epoch(3))
        for height, sibling in enumerate(tree.proof(index)):
            node = parent(sibling, node) if index >> height & 1 else parent(node, sibling)
        assert node == tree.root


def test_tree__same_leaves_in_another_epoch__has_another_root() -> None:
    leaves = {5: leaf_at(5, 1, 1)}
    assert SettlementTree(Epoch(1), leaves).root != SettlementTree(Epoch(2), leaves).root


def test_tree__leaf_at_a_wrong_place__is_a_bug() -> None:
    with pytest.raises(Bug):
        SettlementTree(Epoch(1), {4: leaf_at(5, 1, 1)})
    with pytest.raises(Bug):
        SettlementTree(Epoch(1), {2**DEPTH: leaf_at(2**DEPTH, 1, 1)})


def test_cells_root__against_dense_reference__is_equal() -> None:
    values = {Slot(0): 5, Slot(3): 9, Slot(4095): 1}
    leaf_tag = keccak256(b"syntience.cells.leaf.v1")
    node_tag = keccak256(b"syntience.cells.node.v1")
    level = [
        (keccak256(abi_words(leaf_tag, i, values[Slot(i)])), values[Slot(i)])
        if Slot(i) in values
        else (bytes(32), 0)
        for i in range(2**HALF_DEPTH)
    ]
    while len(level) > 1:
        level = [
            (keccak256(abi_words(node_tag, a[0], a[1], b[0], b[1])), a[1] + b[1])
            for a, b in zip(level[::2], level[1::2], strict=True)
        ]
    assert cells_root(values) == level[0][0]


def test_weights_root__chunks__are_hashed_apart() -> None:
    weights = bytes(range(256)) * 4
    assert weights_root(weights) == keccak256(keccak256(weights[:512]) + keccak256(weights[512:]))
    assert weights_root(b"") == keccak256(b"")
    salted = [
        weights_commitment(
            run=ZERO32,
            validator=to_address(bytes(20)),
            epoch=Epoch(1),
            weights=weights,
            salt=Hash32(bytes([i]) * 32),
        )
        for i in range(2)
    ]
    assert salted[0] != salted[1]
