"""Roots against a slow reading of the definition on `protocol.merkle`."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from protocol.merkle import MerkleTree, leaf_hash, merkle_root, verify_proof
from tests.specs import MODEL
from tests.training.samples import random_tensors
from training.local_state import LocalState
from training.parameters import initial_parameters, zeros
from training.roots import (
    leaf_hashes,
    local_root,
    state_root,
    tensor_leaf,
    tensor_root,
    tree_root,
    zero_local_root,
)


def slow_tensor_root(array: NDArray[np.float32]) -> bytes:
    data = b"".join(struct.pack("<f", value) for value in array.ravel().tolist())
    return merkle_root([leaf_hash(data[i : i + 1024]) for i in range(0, len(data), 1024)])


def slow_named_root(tensors: dict[str, NDArray[np.float32]]) -> bytes:
    leaves = []
    for name in sorted(tensors):
        array = tensors[name]
        head = struct.pack("<H", len(name)) + name.encode() + struct.pack("<B", array.ndim)
        dims = b"".join(struct.pack("<I", extent) for extent in array.shape)
        leaves.append(leaf_hash(head + dims + slow_tensor_root(array)))
    return merkle_root(leaves)


def some_local(seed: int) -> LocalState:
    return LocalState(
        m=random_tensors(seed), v=random_tensors(seed + 1), e=random_tensors(seed + 2), step=17
    )


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=70))
def test_tree_root__any_leaves__equals_protocol_merkle(leaves: list[bytes]) -> None:
    assert leaf_hashes(leaves) == [leaf_hash(leaf) for leaf in leaves]
    assert tree_root(leaf_hashes(leaves)) == merkle_root(leaf_hashes(leaves))
    deeper = MerkleTree(leaf_hashes(leaves), depth=9)
    assert tree_root(leaf_hashes(leaves), depth=9) == deeper.root


def test_tree_root__its_argument__is_left_alone() -> None:
    hashes = leaf_hashes([b"a", b"b", b"c"])
    before = list(hashes)
    tree_root(hashes)
    assert hashes == before


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(max_dims=3, max_side=30),
        elements=st.floats(width=32, allow_nan=False),
    )
)
def test_tensor_root__any_tensor__equals_slow_reference(array: NDArray[np.float32]) -> None:
    assert tensor_root(array) == slow_tensor_root(array)


def test_tensor_root__view_with_strides__is_that_of_its_values() -> None:
    array = np.arange(600, dtype=np.float32).reshape(20, 30)
    assert tensor_root(array.T) == tensor_root(array.T.copy())


def test_tensor_root__not_fp32__raises_type_error() -> None:
    with pytest.raises(TypeError):
        tensor_root(np.zeros(3))  # type: ignore[arg-type]


def test_state_root__model__equals_slow_reference() -> None:
    params = random_tensors(1)
    assert state_root(params) == slow_named_root(params)
    assert state_root(dict(reversed(params.items()))) == state_root(params)


def test_local_root__local_state__equals_slow_reference() -> None:
    local = some_local(1)
    tensors = {"step": np.array([17], np.float32)}
    for part, params in (("m", local.m), ("v", local.v), ("e", local.e)):
        tensors |= {f"{part}.{name}": array for name, array in params.items()}
    assert local_root(local) == slow_named_root(tensors)


def test_zero_local_root__model__is_that_of_zeros() -> None:
    assert zero_local_root(MODEL) == local_root(LocalState.zeros(MODEL))
    assert zero_local_root(MODEL) != local_root(
        LocalState(m=zeros(MODEL), v=zeros(MODEL), e=zeros(MODEL), step=1)
    )


def test_state_root__known_answer__never_changes() -> None:
    """The genesis root of the test model: a change of the first values or of the tree's bytes shows here."""
    assert state_root(initial_parameters(MODEL)).hex() == GENESIS
    assert zero_local_root(MODEL).hex() == ZERO_LOCAL


def test_state_root__one_number__can_be_proven() -> None:
    params = random_tensors(2)
    name = "model.embed_tokens.weight"
    data = params[name].tobytes()
    chunks = leaf_hashes(data[i : i + 1024] for i in range(0, len(data), 1024))
    inner = MerkleTree(chunks)
    names = sorted(params)
    outer = MerkleTree(
        leaf_hashes(tensor_leaf(n, params[n].shape, tensor_root(params[n])) for n in names)
    )
    assert verify_proof(
        root=tensor_root(params[name]),
        leaf=chunks[2],
        index=2,
        proof=inner.proof(2),
        depth=inner.depth,
    )
    index = names.index(name)
    leaf = leaf_hash(tensor_leaf(name, params[name].shape, inner.root))
    assert verify_proof(
        root=state_root(params), leaf=leaf, index=index, proof=outer.proof(index), depth=outer.depth
    )


def test_tensor_root__a_million_values__is_fast() -> None:
    array = np.zeros(1 << 20, np.float32)
    start = time.perf_counter()
    tensor_root(array)
    assert time.perf_counter() - start < 1.0


GENESIS = "b12930b799d6f1ce358e306e94fba0644e49a33bc64fe2d0d3dcbdf98445ebd7"
ZERO_LOCAL = "0fc1a22c50ac2a90a979d6415f1f3593a2637134d5e305952c5a72a782838476"
