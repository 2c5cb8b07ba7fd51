"""What a contract would object to, asked before a bond is at stake.

Once committed, evidence must be proven in time or its bond burns; so evidence that came from elsewhere, or that a reorganisation of
the chain has overtaken, is held against the contracts' views first. The contract has the last word.
"""

from __future__ import annotations

from ledger.contracts import Contracts
from ledger.contracts.evidence import (
    BadEncodingEvidence,
    EquivocationEvidence,
    Evidence,
    LocalStateEvidence,
    WrongDataEvidence,
    WrongSpecEvidence,
)
from ledger.contracts.registry import Role
from ledger.errors import BadSignature, Reverted
from ledger.recover import recover
from protocol.assignment import assigned_sample
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Hash32
from protocol.merkle import depth_of, leaf_hash, verify_proof
from protocol.runfile import RunFile
from protocol.submission import SignedSubmission, Submission
from protocol.terms import Terms
from training.chunk import is_canonical_chunk

_MOST_LEAF_BYTES = 128 * 1024
"""Above, the bytes alone could cost more gas than a transaction may have; nodes refuse such a transaction anyway."""


async def objection_to(evidence: Evidence, contracts: Contracts, run_file: RunFile) -> str | None:
    """Why the contract would refuse the evidence now; None if it is sound."""
    submission = evidence.accused.submission
    if submission.run != run_file.run:
        return f"it is about the run 0x{submission.run.hex()}, not about this one"
    clock = RoundClock(run_file.spec.chain)
    epoch = clock.epoch_of(submission.round)
    last = epoch + run_file.spec.chain.fraud_window_epochs
    now = await contracts.epochs.now()
    if now.epoch > last:
        return f"faults of round {submission.round} could be proven until epoch {last}, now is {now.epoch}"
    beacon = await contracts.epochs.beacon(submission.round, Purpose.ASSIGNMENT)
    if beacon != submission.beacon:
        return f"the submission is not for the beacon of round {submission.round}"
    if isinstance(evidence, EquivocationEvidence):
        return await _of_pair(evidence, contracts, run_file)
    objection = await _of_commitment(evidence.signed, contracts, run_file)
    if objection is not None:
        return objection
    terms = await contracts.epochs.terms_at(epoch)
    if isinstance(evidence, WrongSpecEvidence):
        matches = submission.spec_hash == terms.spec_hash
        return "the signed spec is the registered one" if matches else None
    if submission.spec_hash != terms.spec_hash:
        return "the submission is under another spec than the registered one, and is judged for that alone"
    match evidence:
        case WrongDataEvidence():
            return _of_data(evidence, terms)
        case LocalStateEvidence():
            return await _of_local_state(evidence, contracts, run_file)
        case BadEncodingEvidence():
            return _of_chunk(evidence, terms)


async def _of_pair(
    evidence: EquivocationEvidence, contracts: Contracts, run_file: RunFile
) -> str | None:
    first, second = evidence.first.submission, evidence.second.submission
    if first == second:
        return "both submissions are the same"
    if _whose(first) != _whose(second):
        return "the two submissions differ in run, round, beacon or miner"
    for signed in (evidence.first, evidence.second):
        objection = await _of_signature(signed, contracts, run_file)
        if objection is not None:
            return objection
    return None


def _whose(submission: Submission) -> tuple[object, ...]:
    return (submission.run, submission.round, submission.beacon, submission.miner)


async def _of_signature(
    signed: SignedSubmission, contracts: Contracts, run_file: RunFile
) -> str | None:
    submission = signed.submission
    operator = await contracts.registry.operator_at(submission.miner, submission.round)
    try:
        signer = recover(submission.digest(run_file.domain), signed.signature)
    except BadSignature:
        signer = None
    if signer is None or signer != operator:
        return f"not signed by the operator of {submission.miner} in round {submission.round}"
    return None


async def _of_commitment(
    signed: SignedSubmission, contracts: Contracts, run_file: RunFile
) -> str | None:
    objection = await _of_signature(signed, contracts, run_file)
    if objection is not None:
        return objection
    submission = signed.submission
    operator = await contracts.registry.operator_at(submission.miner, submission.round)
    assert operator is not None
    digest = submission.digest(run_file.domain)
    if not await contracts.epochs.is_committed(submission.round, operator=operator, digest=digest):
        return f"{submission.miner} did not commit it in round {submission.round}"
    return None


def _of_data(evidence: WrongDataEvidence, terms: Terms) -> str | None:
    submission, index = evidence.signed.submission, evidence.index
    if index >= terms.samples_per_round:
        return f"a round has no sample {index}"
    if evidence.claimed_leaf == evidence.true_leaf:
        return f"sample {index} is the assigned one"
    sample = assigned_sample(
        run=submission.run,
        round_=submission.round,
        beacon=submission.beacon,
        miner=submission.miner,
        index=index,
        train_samples=terms.train_samples,
    )
    claimed = verify_proof(
        root=submission.data_root,
        leaf=evidence.claimed_leaf,
        index=index,
        proof=evidence.claimed_proof,
        depth=depth_of(terms.samples_per_round),
    )
    true = verify_proof(
        root=terms.dataset_root,
        leaf=evidence.true_leaf,
        index=sample,
        proof=evidence.true_proof,
        depth=terms.dataset_depth,
    )
    return None if claimed and true else "an opening does not lead to its root"


async def _of_local_state(
    evidence: LocalStateEvidence, contracts: Contracts, run_file: RunFile
) -> str | None:
    submission, other = evidence.signed.submission, evidence.other
    first = submission.local_from_round
    if not 0 < first < submission.round:
        return "the submission carries nothing over"
    if other is None:
        return await _of_ballots(evidence, None, contracts, run_file)
    shown = other.submission
    if (shown.run, shown.miner) != (submission.run, submission.miner):
        return "the two submissions differ in run or miner"
    if not first <= shown.round < submission.round:
        return f"round {shown.round} has nothing to do with what was carried from round {first}"
    objection = await _of_commitment(other, contracts, run_file)
    if objection is not None:
        return objection
    if shown.round == first and shown.local_out != submission.local_in:
        return None
    beacon = await contracts.epochs.beacon(shown.round, Purpose.ASSIGNMENT)
    if beacon != shown.beacon:
        return (
            None if shown.round == first else "the later submission is not for its round's beacon"
        )
    return await _of_ballots(evidence, shown, contracts, run_file)


async def _of_ballots(
    evidence: LocalStateEvidence, shown: Submission | None, contracts: Contracts, run_file: RunFile
) -> str | None:
    """Whether the ballots settle what the evidence says of the other round."""
    submission, round_ = evidence.signed.submission, evidence.other_round
    params = run_file.spec.chain
    ring = (params.fraud_window_epochs + 2) * params.rounds_per_epoch
    if (await contracts.epochs.now()).round >= round_ + ring:
        return f"the attestations of round {round_} have been written over"
    epoch = RoundClock(params).epoch_of(round_)
    held = await contracts.registry.slot_of(submission.miner, epoch)
    later = shown is not None and shown.round != submission.local_from_round
    if held is None or held[0] is not Role.MINER:
        return f"{submission.miner} held no slot in round {round_}" if later else None
    root = shown.initial_root if shown else Hash32(bytes(32))
    try:
        tally = await contracts.epochs.tally(
            round_, miner=held[1], root=root, ballots=list(evidence.ballots)
        )
    except Reverted as error:
        return f"the ballots don't fit: {error}"
    if later:
        accepted = 2 * min(tally.bit_set, tally.for_root) > tally.total
        return None if accepted else f"the ballots leave open whether round {round_} was accepted"
    most = [tally.bit_set, *([tally.for_root] if shown else [])]
    if 2 * (min(most) + tally.unopened) <= tally.total:
        return None
    return f"the ballots leave open whether round {round_} was rejected"


def _of_chunk(evidence: BadEncodingEvidence, terms: Terms) -> str | None:
    if len(evidence.leaf) > _MOST_LEAF_BYTES:
        return f"a leaf of {len(evidence.leaf):,} bytes fits into no transaction"
    if is_canonical_chunk(evidence.leaf, size=terms.codec_chunk, bits=terms.codec_bits):
        return f"chunk {evidence.chunk} is in canonical form"
    stands = verify_proof(
        root=evidence.signed.submission.payload_root,
        leaf=leaf_hash(evidence.leaf),
        index=evidence.chunk,
        proof=evidence.proof,
        depth=len(evidence.proof),
    )
    return None if stands else "the opening does not lead to the payload root"
