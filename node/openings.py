"""Leaves of a submission with their Merkle paths, out of the blobs behind it. Pure.

Which leaf is meant and what has to be shown is the data requests' affair (`ledger.contracts.requests`): the content of a leaf
with its siblings, of a data leaf its hash, of a local state the tensor's own leaf too. A leaf that does not exist is
answered with the last one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ledger.contracts.requests import ItemKind, Opening
from node.contents import read_data_leaves, read_local, read_payload, read_trace
from protocol.errors import Bug, OperatorError, Rejected
from protocol.ids import Hash32
from protocol.merkle import MerkleTree
from protocol.model_spec import ModelSpec
from protocol.spec import RunSpec
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


Opener = Callable[[int], Opening]
"""Opens the leaf with an index. Its trees are built once, because whoever asks for one leaf may ask for a thousand."""


def opener(kind: ItemKind, submission: Submission, spec: RunSpec, blob: bytes) -> Opener:
    """What answers requests for the leaves of one kind of a submission.

    The opener raises `Rejected` for a data or trace leaf that does not exist, which nobody can be asked for.

    Args:
        blob: the bytes behind the root of this kind.

    Raises:
        Rejected: the blob is not what was signed.
    """
    match kind:
        case ItemKind.DATA:
            return _hashes_only(read_data_leaves(blob, submission, spec))
        case ItemKind.TRACE:
            trace = read_trace(blob, submission, spec)
            return _bounded(_shown(trace), len(trace))
        case ItemKind.PAYLOAD:
            return _shown(read_payload(blob, submission, spec).leaves())
        case ItemKind.LOCAL:
            return _local(read_local(blob, submission, spec))
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


def _local(local: LocalState) -> Opener:
    tensors = local_tensors(local)
    own = _shown([tensor_leaf(name, array.shape, tensor_root(array)) for name, array in tensors])

    def open_(index: int) -> Opening:
        wanted, leaf = index >> _LEAF_BITS, index & ((1 << _LEAF_BITS) - 1)
        outer = own(wanted)
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
        inner = _shown([data[i : i + LEAF_BYTES] for i in range(0, len(data), LEAF_BYTES)])(leaf)
        return replace(opening, position=inner.position, content=inner.content, proof=inner.proof)

    return open_


def _shown(leaves: Sequence[bytes]) -> Opener:
    tree = MerkleTree([Hash32(each) for each in leaf_hashes(leaves)])

    def open_(index: int) -> Opening:
        position = min(index, len(leaves) - 1)
        return Opening(position=position, content=leaves[position], proof=tree.proof(position))

    return open_


def _hashes_only(leaves: Sequence[Hash32]) -> Opener:
    tree = MerkleTree(leaves)
    return _bounded(
        lambda index: Opening(position=index, content=leaves[index], proof=tree.proof(index)),
        len(leaves),
    )


def _bounded(open_: Opener, count: int) -> Opener:
    def bounded(index: int) -> Opening:
        if index >= count:
            raise Rejected(f"there are {count} such leaves, and no {index}")
        return open_(index)

    return bounded
