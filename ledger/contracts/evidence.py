"""Evidence of the faults that one transaction proves, as the contract takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from ledger.abi import AbiValue
from ledger.contracts.epochs import Ballot
from ledger.contracts.verdicts import Fault
from protocol.ids import ZERO32, ZERO_ADDRESS, Hash32, Round
from protocol.submission import SignedSubmission, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivocationEvidence:
    """Two different submissions of one miner, signed for one run, round and canonical beacon."""

    first: SignedSubmission
    second: SignedSubmission

    @property
    def accused(self) -> SignedSubmission:
        """The submission whose miner and round are judged."""
        return self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfOne:
    """Evidence against one submission, which the miner committed."""

    signed: SignedSubmission

    @property
    def accused(self) -> SignedSubmission:
        """The submission whose miner and round are judged."""
        return self.signed


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongSpecEvidence(_OfOne):
    """A committed submission under another spec than the registered one of its round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongDataEvidence(_OfOne):
    """A committed submission whose sample `index` is not the assigned one: two openings with unequal leaf hashes.

    Attributes:
        claimed_leaf: leaf hash at `index` under the submission's data root, `claimed_proof` its siblings bottom-up.
        true_leaf: leaf hash of the assigned sample under the data set's root, `true_proof` its siblings bottom-up.
    """

    index: int
    claimed_leaf: Hash32
    claimed_proof: tuple[Hash32, ...]
    true_leaf: Hash32
    true_proof: tuple[Hash32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStateEvidence(_OfOne):
    """A committed submission that carries over a local state which it may not.

    Attributes:
        other: of the round carried from, with another `local_out` or not accepted; or of a round between, and accepted.
            None: the round carried from is not shown, because the miner's bit alone says that nothing was accepted.
        ballots: attestations of the other round, by ascending slot; empty if the two submissions say it all.
    """

    other: SignedSubmission | None
    ballots: tuple[Ballot, ...]

    @property
    def other_round(self) -> Round:
        """The round that the ballots are of."""
        return (
            self.other.submission.round if self.other else self.signed.submission.local_from_round
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEncodingEvidence(_OfOne):
    """A committed submission with a chunk that no encoder writes.

    Attributes:
        leaf: the chunk's bytes, leaf number `chunk` under the payload root, `proof` its siblings bottom-up.
    """

    chunk: int
    leaf: bytes
    proof: tuple[Hash32, ...]


Evidence: TypeAlias = (
    EquivocationEvidence
    | WrongSpecEvidence
    | WrongDataEvidence
    | LocalStateEvidence
    | BadEncodingEvidence
)

_KINDS: Mapping[type, tuple[Fault, str]] = {
    EquivocationEvidence: (Fault.EQUIVOCATION, "proveEquivocation"),
    WrongSpecEvidence: (Fault.WRONG_SPEC, "proveWrongSpec"),
    WrongDataEvidence: (Fault.WRONG_DATA, "proveWrongData"),
    LocalStateEvidence: (Fault.LOCAL_STATE, "proveLocalState"),
    BadEncodingEvidence: (Fault.BAD_ENCODING, "proveBadEncoding"),
}

_NOTHING = Submission(
    run=ZERO32,
    spec_hash=ZERO32,
    round=Round(0),
    beacon=ZERO32,
    miner=ZERO_ADDRESS,
    initial_root=ZERO32,
    local_from_round=Round(0),
    local_in=ZERO32,
    local_out=ZERO32,
    data_root=ZERO32,
    payload_root=ZERO32,
    payload_bytes=0,
    trace_root=ZERO32,
    steps=0,
)


def kind_of(evidence: Evidence) -> Fault:
    """What the evidence proves."""
    return _KINDS[type(evidence)][0]


def proving_function(evidence: Evidence) -> str:
    """The contract's function that takes the evidence."""
    return _KINDS[type(evidence)][1]


def proving_arguments(evidence: Evidence) -> tuple[AbiValue, ...]:
    """That function's arguments after the salt."""
    match evidence:
        case EquivocationEvidence():
            return (*_signed(evidence.first), *_signed(evidence.second))
        case WrongSpecEvidence():
            return _signed(evidence.signed)
        case WrongDataEvidence():
            return (
                *_signed(evidence.signed),
                evidence.index,
                evidence.claimed_leaf,
                evidence.claimed_proof,
                evidence.true_leaf,
                evidence.true_proof,
            )
        case LocalStateEvidence():
            ballots = tuple((each.slot, each.root, each.bitmap) for each in evidence.ballots)
            other = (
                _signed(evidence.other) if evidence.other else (submission_to_abi(_NOTHING), b"")
            )
            return (*_signed(evidence.signed), *other, ballots)
        case BadEncodingEvidence():
            return (*_signed(evidence.signed), evidence.chunk, evidence.leaf, evidence.proof)


def submission_to_abi(submission: Submission) -> tuple[AbiValue, ...]:
    """The fields of `Submission` are in the order of the contract's struct."""
    return tuple(getattr(submission, item.name) for item in fields(submission))


def _signed(signed: SignedSubmission) -> tuple[AbiValue, ...]:
    return (submission_to_abi(signed.submission), signed.signature)
