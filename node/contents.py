"""The four blobs behind a submission, each checked against the root that the miner signed.

Every reader takes bytes that came from a stranger and returns a value that provably is what was
signed, or raises `Rejected`. Size limits follow from the spec alone and are applied before any
bytes are fetched.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.errors import Rejected
from protocol.ids import Hash32, to_hash32
from protocol.merkle import leaf_hash, merkle_root
from protocol.spec import RunSpec
from protocol.submission import Submission
from training.codec import Payload, decode_payload
from training.layout import chunk_layout
from training.local_state import LocalState
from training.parameters import MAX_HEADER_BYTES_PER_TENSOR, parameter_count, shapes
from training.roots import local_root

_HASH = 32
_TRACE_LEAF = 64


def size_limits(spec: RunSpec) -> Mapping[str, int]:
    """The most bytes that a blob of each kind can have in this run."""
    tensors = 4 * parameter_count(spec.model)
    header = MAX_HEADER_BYTES_PER_TENSOR * (len(shapes(spec.model)) + 1)
    return {
        "payload": chunk_layout(spec.model, spec.codec).transport_bytes,
        "local": 3 * (tensors + header),
        "data": _HASH * spec.chain.samples_per_round,
        "trace": _TRACE_LEAF * trace_leaf_count(spec),
        "checkpoint": tensors + header,
    }


def trace_leaf_count(spec: RunSpec) -> int:
    """Leaves of a trace: the start, one per interval of inner steps, and the encode."""
    return 2 + -(-spec.inner.steps // spec.inner.trace_every)


def read_payload(data: bytes, submission: Submission, spec: RunSpec) -> Payload:
    """The decoded update; its canonical form has the signed root."""
    if len(data) != submission.payload_bytes:
        raise Rejected("payload: another size than signed")
    payload = decode_payload(data, spec.model, spec.codec)
    if payload.root() != submission.payload_root:
        raise Rejected("payload: does not have the signed root")
    return payload


def read_data_leaves(data: bytes, submission: Submission, spec: RunSpec) -> tuple[Hash32, ...]:
    """The leaf hashes of the samples that the miner says it trained on, in order."""
    if len(data) != _HASH * spec.chain.samples_per_round:
        raise Rejected("data leaves: wrong number")
    leaves = tuple(to_hash32(data[i : i + _HASH]) for i in range(0, len(data), _HASH))
    if merkle_root(leaves) != submission.data_root:
        raise Rejected("data leaves: do not have the signed root")
    return leaves


def read_trace(data: bytes, submission: Submission, spec: RunSpec) -> tuple[bytes, ...]:
    """The contents of the trace's leaves, which start and end where the submission says."""
    if len(data) != _TRACE_LEAF * trace_leaf_count(spec):
        raise Rejected("trace: wrong number of leaves")
    leaves = tuple(data[i : i + _TRACE_LEAF] for i in range(0, len(data), _TRACE_LEAF))
    if merkle_root([leaf_hash(leaf) for leaf in leaves]) != submission.trace_root:
        raise Rejected("trace: does not have the signed root")
    if leaves[0] != submission.initial_root + submission.local_in:
        raise Rejected("trace: starts elsewhere than the submission")
    if leaves[-1] != submission.payload_root + submission.local_out:
        raise Rejected("trace: ends elsewhere than the submission")
    return leaves


def read_local(data: bytes, submission: Submission, spec: RunSpec) -> LocalState:
    """The local state that the miner carries into its next round."""
    local = LocalState.from_blob(data, spec.model)
    if local_root(local) != submission.local_out:
        raise Rejected("local state: does not have the signed root")
    return local
