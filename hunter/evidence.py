"""From signed submissions and opened leaves to evidence that a contract can check alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ledger.contracts.evidence import (
    BadEncodingEvidence,
    EquivocationEvidence,
    WrongDataEvidence,
    WrongSpecEvidence,
)
from protocol.assignment import assigned_sample
from protocol.ids import Hash32
from protocol.merkle import MerkleTree, leaf_hash, verify_proof
from protocol.spec import CodecSpec
from protocol.submission import Domain, SignedSubmission
from training.chunk import is_canonical_chunk
from training.dataset import TokenDataset

MOST_SIBLINGS = 40
"""The deepest payload tree that the contract looks at."""


def equivocations(
    submissions: Iterable[SignedSubmission], *, domain: Domain, beacon: Hash32
) -> list[EquivocationEvidence]:
    """One piece of evidence per miner that signed two submissions for the canonical beacon.

    A submission for another beacon is no equivocation: a reorganised chain had another one.

    Args:
        submissions: of one round, each with a valid signature of the miner's operator.
        domain: the run's.
        beacon: the round's canonical assignment beacon.
    """
    ordered = sorted(
        (signed for signed in submissions if signed.submission.beacon == beacon),
        key=lambda signed: (signed.submission.miner, signed.submission.digest(domain)),
    )
    found = []
    for _, group in groupby(ordered, key=lambda signed: signed.submission.miner):
        versions = {signed.submission.digest(domain): signed for signed in group}
        if len(versions) > 1:
            first, second, *_ = versions.values()
            found.append(EquivocationEvidence(first=first, second=second))
    return found


def wrong_spec(signed: SignedSubmission, registered: Hash32) -> WrongSpecEvidence | None:
    """A committed submission for the canonical beacon, held against the hash of the spec of its round."""
    if signed.submission.spec_hash == registered:
        return None
    return WrongSpecEvidence(signed=signed)


def wrong_data(
    signed: SignedSubmission, leaves: Sequence[Hash32], dataset: TokenDataset
) -> WrongDataEvidence | None:
    """The first sample that is not the assigned one, with its two openings; None if all are right.

    Args:
        signed: a submission for the canonical beacon.
        leaves: the leaf hashes under its data root.
        dataset: the run's data set.
    """
    for index, claimed in enumerate(leaves):
        if claimed != dataset.leaf_hash(_assigned(signed, index, dataset)):
            proof = MerkleTree(leaves).proof(index)
            return wrong_leaf(signed, index, claimed=claimed, proof=proof, dataset=dataset)
    return None


def wrong_leaf(
    signed: SignedSubmission,
    index: int,
    *,
    claimed: Hash32,
    proof: Sequence[Hash32],
    dataset: TokenDataset,
) -> WrongDataEvidence | None:
    """The evidence in one leaf under the data root; None if it is the assigned sample's.

    Args:
        signed: a submission for the canonical beacon.
        index: which of its samples.
        claimed: the leaf's hash, with its siblings in `proof`.
        dataset: the run's data set.
    """
    sample = _assigned(signed, index, dataset)
    true_leaf = dataset.leaf_hash(sample)
    if claimed == true_leaf:
        return None
    return WrongDataEvidence(
        signed=signed,
        index=index,
        claimed_leaf=claimed,
        claimed_proof=tuple(proof),
        true_leaf=true_leaf,
        true_proof=dataset.proof(sample),
    )


def bad_encoding(
    signed: SignedSubmission, leaves: Sequence[bytes], codec: CodecSpec
) -> BadEncodingEvidence | None:
    """The first chunk of an opened payload that no encoder writes; None if there is none.

    Args:
        signed: a committed submission for the canonical beacon.
        leaves: all chunks, in order; None is returned where they are not what was signed.
        codec: of the submission's round.
    """
    size, bits = codec.chunk, codec.bits
    for number, leaf in enumerate(leaves):
        if not is_canonical_chunk(leaf, size=size, bits=bits):
            proof = MerkleTree([leaf_hash(each) for each in leaves]).proof(number)
            return bad_chunk(signed, number, leaf=leaf, proof=proof, codec=codec)
    return None


def bad_chunk(
    signed: SignedSubmission,
    number: int,
    *,
    leaf: bytes,
    proof: Sequence[Hash32],
    codec: CodecSpec,
) -> BadEncodingEvidence | None:
    """One opened chunk that no encoder writes; None if one may have, or if it is not what was signed.

    Args:
        signed: a committed submission for the canonical beacon.
        number: the chunk's, the index of its leaf.
        leaf: its bytes.
        proof: its siblings under the payload root, bottom-up.
        codec: of the submission's round.
    """
    stands = len(proof) <= MOST_SIBLINGS and verify_proof(
        root=signed.submission.payload_root,
        leaf=leaf_hash(leaf),
        index=number,
        proof=proof,
        depth=len(proof),
    )
    if not stands or is_canonical_chunk(leaf, size=codec.chunk, bits=codec.bits):
        return None
    return BadEncodingEvidence(signed=signed, chunk=number, leaf=leaf, proof=tuple(proof))


def _assigned(signed: SignedSubmission, index: int, dataset: TokenDataset) -> int:
    submission = signed.submission
    return assigned_sample(
        run=submission.run,
        round_=submission.round,
        beacon=submission.beacon,
        miner=submission.miner,
        index=index,
        train_samples=dataset.spec.train_samples,
    )
