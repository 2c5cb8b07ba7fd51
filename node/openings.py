"""Leaves of a submission with their Merkle paths, out of the blobs behind it. Pure.

Which leaf is meant and what has to be shown is the data requests' affair (`ledger.contracts.requests`): the content of a leaf
with its siblings, of a data leaf its hash, of a local state the tensor's own leaf too. A leaf that does not exist is
answered with the last one that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ledger.contracts.requests import ItemKind, Opening
from node.contents import read_data_leaves, read_local, read_payload, read_trace
from protocol.errors import Bug, OperatorError, Rejected
from protocol.ids import Hash32
from protocol.merkle import MerkleTree
from protocol.spec import ModelSpec, RunSpec
from protocol.submission import Submission
from training.local_state import PARTS, LocalState
from training.roots import (
    LEAF_BYTES,
    STEP_TENSOR,
    leaf_hashes,
    tensor_leaf,
    tensor_root,
)

BLOB_OF = {
    ItemKind.DATA: "data",
    ItemKind.TRACE: "trace",
    ItemKind.PAYLOAD: "payload",
    ItemKind.LOCAL: "local",
}
"""The blob that holds the leaves of a kind; a submission is itself the leaf."""
_LEAF_BITS = 32


def open_leaf(
    kind: ItemKind, index: int, submission: Submission, spec: RunSpec, blob: bytes
) -> Opening:
    """What answers a request for a leaf of a submission.

    Args:
        blob: the bytes behind the root of this kind.

    Raises:
        Rejected: the blob is not what was signed, or has no such data or trace leaf.
    """
    match kind:
        case ItemKind.DATA:
            leaves = read_data_leaves(blob, submission, spec)
            if index >= len(leaves):
                raise Rejected(f"there are {len(leaves)} data leaves, and no {index}")
            return Opening(
                position=index, content=leaves[index], proof=MerkleTree(leaves).proof(index)
            )
        case ItemKind.TRACE:
            trace = read_trace(blob, submission, spec)
            if index >= len(trace):
                raise Rejected(f"there are {len(trace)} trace leaves, and no {index}")
            return _shown(trace, index)
        case ItemKind.PAYLOAD:
            return _shown(read_payload(blob, submission, spec).leaves(), index)
        case ItemKind.LOCAL:
            return _local(read_local(blob, submission, spec), index)
        case _:
            raise Bug(f"a {kind.name} has no leaves")


def local_tensors(local: LocalState) -> list[tuple[str, NDArray[np.float32]]]:
    """The tensors of a local state in the order of its tree."""
    tensors = {
        f"{part}.{name}": array for part in PARTS for name, array in getattr(local, part).items()
    }
    tensors[STEP_TENSOR] = np.array([local.step], np.float32)
    return sorted(tensors.items(), key=lambda item: item[0].encode())


def local_index(model: ModelSpec, name: str, leaf: int) -> int:
    """The index of a leaf of a local state's tensor, as a request names it.

    Raises:
        OperatorError: there is no such tensor.
    """
    names = [each for each, _ in local_tensors(LocalState.zeros(model))]
    if name not in names:
        raise OperatorError(
            f"a local state has no tensor {name}", f"choose one of {', '.join(names)}"
        )
    return names.index(name) << _LEAF_BITS | leaf


def local_leaf_counts(model: ModelSpec) -> list[int]:
    """How many leaves each tensor of a local state has, in the order of its tree."""
    tensors = local_tensors(LocalState.zeros(model))
    return [-(-array.nbytes // LEAF_BYTES) for _, array in tensors]


def _local(local: LocalState, index: int) -> Opening:
    tensors = local_tensors(local)
    own = [tensor_leaf(name, array.shape, tensor_root(array)) for name, array in tensors]
    wanted, leaf = index >> _LEAF_BITS, index & ((1 << _LEAF_BITS) - 1)
    outer = _shown(own, wanted)
    opening = Opening(
        position=0,
        content=b"",
        tensor_position=outer.position,
        tensor=outer.content,
        tensor_proof=outer.proof,
    )
    if outer.position != wanted:
        return opening
    data = np.ascontiguousarray(tensors[wanted][1]).astype("<f4", copy=False).tobytes()
    inner = _shown([data[i : i + LEAF_BYTES] for i in range(0, len(data), LEAF_BYTES)], leaf)
    return replace(opening, position=inner.position, content=inner.content, proof=inner.proof)


def _shown(leaves: Sequence[bytes], index: int) -> Opening:
    position = min(index, len(leaves) - 1)
    tree = MerkleTree([Hash32(each) for each in leaf_hashes(leaves)])
    return Opening(position=position, content=leaves[position], proof=tree.proof(position))
