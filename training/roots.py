"""State roots: one sha-256 tree over all tensors of a model or of a miner's local state.

A tensor's root is the tree over its fp32 little-endian bytes in leaves of 1024 bytes (the last one short). The state's tree has
one leaf per tensor, sorted by name, whose data holds name, shape and tensor root. Any single number can so be proven against a
root with two short proofs. The trees are `protocol.merkle`'s; here they are computed in tight loops over one buffer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from protocol.ids import ZERO32, Hash32
from protocol.model_spec import ModelSpec
from training.local_state import LocalState
from training.parameters import Parameters, Shape

LEAF_BYTES = 1024
STEP_TENSOR = "step"


def state_root(params: Parameters) -> Hash32:
    """Root of a model's parameters."""
    return named_root(tensor_roots(params))


def local_root(local: LocalState) -> Hash32:
    """Root of a local state: the tensors `m.*`, `v.*`, `e.*` and the one-element `step`."""
    return combine_local(
        tensor_roots(local.m), tensor_roots(local.v), tensor_roots(local.e), local.step
    )


@lru_cache(maxsize=16)
def zero_local_root(model: ModelSpec) -> Hash32:
    """Root of the local state that a miner starts or resets with: all zero, step 0. A constant of the spec."""
    return local_root(LocalState.zeros(model))


NamedRoots = Mapping[str, tuple[Shape, Hash32]]


def tensor_roots(params: Parameters) -> NamedRoots:
    """Shape and root of each tensor, for `combine_local`, so that an unchanged part is hashed once."""
    return {name: (array.shape, tensor_root(array)) for name, array in params.items()}


def combine_local(m: NamedRoots, v: NamedRoots, e: NamedRoots, step: int) -> Hash32:
    """The local root from the roots of its parts."""
    step_root = tensor_root(np.array([step], np.float32))
    named: dict[str, tuple[Shape, Hash32]] = {STEP_TENSOR: ((1,), step_root)}
    for prefix, roots in (("m", m), ("v", v), ("e", e)):
        named |= {f"{prefix}.{name}": entry for name, entry in roots.items()}
    return named_root(named)


def named_root(tensors: NamedRoots) -> Hash32:
    """The tree over tensors sorted by name (as UTF-8)."""
    ordered = sorted(tensors.items(), key=lambda item: item[0].encode())
    return tree_root(leaf_hashes(tensor_leaf(name, shape, root) for name, (shape, root) in ordered))


def tensor_leaf(name: str, shape: Shape, root: Hash32) -> bytes:
    """Leaf data: name length (u16) and name, number of dimensions (u8), dimensions (u32 each), root; little-endian."""
    encoded = name.encode()
    return b"".join(
        [
            len(encoded).to_bytes(2, "little"),
            encoded,
            len(shape).to_bytes(1, "little"),
            *(extent.to_bytes(4, "little") for extent in shape),
            root,
        ]
    )


def tensor_root(array: NDArray[np.float32]) -> Hash32:
    """Root of one tensor's bytes."""
    if array.dtype != np.float32:
        raise TypeError(f"state roots are over float32, not {array.dtype}")
    data = np.ascontiguousarray(array).astype("<f4", copy=False).tobytes()
    return tree_root(leaf_hashes(data[i : i + LEAF_BYTES] for i in range(0, len(data), LEAF_BYTES)))


def leaf_hashes(leaves: Iterable[bytes]) -> list[bytes]:
    """sha256(0x00 || data) of each."""
    sha256 = hashlib.sha256
    return [sha256(b"\0" + leaf).digest() for leaf in leaves]


def tree_root(hashes: Sequence[bytes], *, depth: int = 0) -> Hash32:
    """Root of the tree over leaf hashes; equals `protocol.merkle.merkle_root`, in about a third of its time.

    `depth`: of a tree that is padded further than so many leaves need.
    """
    if not hashes:
        raise ValueError("a tree has at least one leaf")
    sha256 = hashlib.sha256
    level, absent, height = list(hashes), bytes(ZERO32), 0
    while len(level) > 1 or height < depth:
        if len(level) % 2:
            level.append(absent)
        pairs = iter(level)
        level = [
            sha256(b"\1" + left + right).digest() for left, right in zip(pairs, pairs, strict=True)
        ]
        absent = sha256(b"\1" + absent + absent).digest()
        height += 1
    return Hash32(level[0])
