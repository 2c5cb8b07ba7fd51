"""From signed submissions to evidence that a contract can check alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ledger.contracts.faults import EquivocationEvidence, WrongDataEvidence
from protocol.assignment import assigned_sample
from protocol.ids import Hash32
from protocol.merkle import MerkleTree
from protocol.submission import Domain, SignedSubmission
from training.dataset import TokenDataset


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
