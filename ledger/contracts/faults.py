"""Objective faults: a hunter commits to its evidence, then proves the fault in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ledger.abi import AbiValue, encode
from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Units
from protocol.submission import SignedSubmission, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class EquivocationEvidence:
    """Two different submissions of one miner, signed for one run, round and canonical beacon."""

    first: SignedSubmission
    second: SignedSubmission


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongDataEvidence:
    """A committed submission whose sample `index` is not the assigned one: two openings with unequal leaf hashes.

    Attributes:
        claimed_leaf: leaf hash at `index` under the submission's data root, `claimed_proof` its siblings bottom-up.
        true_leaf: leaf hash of the assigned sample under the data set's root, `true_proof` its siblings bottom-up.
    """

    signed: SignedSubmission
    index: int
    claimed_leaf: Hash32
    claimed_proof: tuple[Hash32, ...]
    true_leaf: Hash32
    true_proof: tuple[Hash32, ...]


Evidence = EquivocationEvidence | WrongDataEvidence


class ObjectiveFaults(Contract):
    """The judge of faults that one transaction proves."""

    ABI = "ObjectiveFaults"

    async def challenge_block(self, hunter: Address, commitment: Hash32) -> int | None:
        """Block of a hunter's commit; None if there is none (any more)."""
        return (await self._read("challengeBlock", hunter, commitment)).integer(0) or None

    async def free_bond(self, hunter: Address, *, block: BlockId = "latest") -> Units:
        """What a hunter can withdraw, or commit its next challenges with."""
        return Units((await self._read("freeBond", hunter, block=block)).integer(0))

    async def bonds_held(self, *, block: BlockId = "latest") -> Units:
        return Units((await self._read("bondsHeld", block=block)).integer(0))

    async def assigned_sample(
        self, round_: Round, *, beacon: Hash32, miner: Address, index: int
    ) -> int:
        """The contract's answer to `protocol.assignment.assigned_sample`."""
        return (await self._read("assignedSample", round_, beacon, miner, index)).integer(0)

    async def submission_digest(self, submission: Submission) -> Hash32:
        """The contract's answer to `Submission.digest`."""
        return (await self._read("submissionDigest", _submission(submission))).hash(0)

    def commitment(self, hunter: Address, evidence: Evidence, salt: Hash32) -> Hash32:
        """What a hunter commits, with the challenge bond, at least one block before it proves."""
        return Hash32(keccak256(abi_words(hunter, self._evidence_hash(evidence), salt)))

    def commit_challenge_call(self, commitment: Hash32) -> Call:
        """Needs an allowance of the challenge bond."""
        return self._call("commitChallenge", commitment)

    def expire_challenge_call(self, hunter: Address, commitment: Hash32) -> Call:
        return self._call("expireChallenge", hunter, commitment)

    def prove_call(self, evidence: Evidence, salt: Hash32) -> Call:
        """Sent by the hunter that committed to this evidence and salt."""
        return self._call(_function(evidence), salt, *_arguments(evidence))

    def _evidence_hash(self, evidence: Evidence) -> bytes:
        types = [item.type for item in self.abi.function(_function(evidence)).inputs[1:]]
        return keccak256(encode(types, _arguments(evidence)))


def _function(evidence: Evidence) -> str:
    return "proveEquivocation" if isinstance(evidence, EquivocationEvidence) else "proveWrongData"


def _arguments(evidence: Evidence) -> tuple[AbiValue, ...]:
    """The proving function's arguments after the salt."""
    if isinstance(evidence, EquivocationEvidence):
        first, second = evidence.first, evidence.second
        return (
            _submission(first.submission),
            first.signature,
            _submission(second.submission),
            second.signature,
        )
    return (
        _submission(evidence.signed.submission),
        evidence.signed.signature,
        evidence.index,
        evidence.claimed_leaf,
        evidence.claimed_proof,
        evidence.true_leaf,
        evidence.true_proof,
    )


def _submission(submission: Submission) -> tuple[AbiValue, ...]:
    """The fields of `Submission` are in the order of the contract's struct."""
    return tuple(getattr(submission, item.name) for item in fields(submission))
