"""Objective faults: a hunter commits to its evidence, then proves the fault in one transaction."""

from __future__ import annotations

from ledger.abi import encode
from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.contracts.evidence import (
    Evidence,
    proving_arguments,
    proving_function,
    submission_to_abi,
)
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Units
from protocol.submission import Submission


class ObjectiveFaults(Contract):
    """The judge of faults that one transaction proves."""

    ABI = "ObjectiveFaults"

    async def challenge_block(self, hunter: Address, commitment: Hash32) -> int | None:
        """Block of a hunter's commit, by the run's clock; None if there is none (any more)."""
        return (await self._read("challengeBlock", hunter, commitment)).integer(0) or None

    async def challenge_bond(self) -> Units:
        """What one challenge costs until it is revealed."""
        return Units((await self._read("challengeBond")).integer(0))

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
        return (await self._read("submissionDigest", submission_to_abi(submission))).hash(0)

    def evidence_hash(self, evidence: Evidence) -> Hash32:
        """keccak-256 over the ABI encoding of the proving function's arguments after the salt."""
        types = [item.type for item in self.abi.function(proving_function(evidence)).inputs[1:]]
        return Hash32(keccak256(encode(types, proving_arguments(evidence))))

    def commitment(self, hunter: Address, evidence: Evidence, salt: Hash32) -> Hash32:
        """What a hunter commits, with the challenge bond, at least one block before it proves."""
        return Hash32(keccak256(abi_words(hunter, self.evidence_hash(evidence), salt)))

    def commit_challenge_call(self, commitment: Hash32) -> Call:
        """Needs an allowance of what the free bond lacks."""
        return self._call("commitChallenge", commitment)

    def expire_challenge_call(self, hunter: Address, commitment: Hash32) -> Call:
        """Burns the bond of a challenge that was not revealed in time, whoever sends this."""
        return self._call("expireChallenge", hunter, commitment)

    def withdraw_bond_call(self, amount: Units) -> Call:
        """Pays the sender this much of its free bond."""
        return self._call("withdrawBond", amount)

    def prove_call(self, evidence: Evidence, salt: Hash32) -> Call:
        """Sent by the hunter that committed to this evidence and salt."""
        return self._call(proving_function(evidence), salt, *proving_arguments(evidence))
