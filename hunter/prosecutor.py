"""Pursues the hunter's cases on chain: bond and commitment, then the proof.

Evidence is in the journal before its commitment is sent, and the salt follows from the key, so that a hunter killed between commit
and proof still proves, and its bond is never lost. Bonds come from the hunter's own key and stay with the contract, to be used again.
"""

from __future__ import annotations

import logging

from hunter.cases import Case, CaseBook
from hunter.objections import objection_to
from ledger.contracts.token import UNLIMITED
from ledger.contracts.verdicts import slash_bps_of
from ledger.errors import PAUSED, Reverted
from node.node import Node
from protocol.hashing import abi_words, keccak256
from protocol.ids import Hash32

logger = logging.getLogger(__name__)


class Prosecutor:
    """Takes every open case as far as it goes now."""

    def __init__(self, node: Node, cases: CaseBook) -> None:
        self._node = node
        self._cases = cases

    async def prosecute(self) -> None:
        """Takes every open case one step further, the gravest faults first. Not in a pause."""
        if self._node.chain.paused:
            return
        params = self._node.run_file.spec.chain
        cases = sorted(self._cases.open_cases(), key=lambda case: -slash_bps_of(case.kind, params))
        for case in cases:
            try:
                await self._advance(case)
            except Reverted as error:
                if error.name == PAUSED:
                    return
                logger.warning("case %s is lost: %s", case.key, error)
                self._cases.close(case)

    async def _advance(self, case: Case) -> None:
        node = self._node
        faults, outbox = node.chain.contracts.faults, node.outbox
        if not outbox.known(f"accuse/{case.key}"):
            if self._has_graver(case):
                return
            if await self._is_judged(case):
                self._cases.close(case)
                return
            reason = await objection_to(case.evidence, node.chain.contracts, node.run_file)
            if reason is not None:
                logger.warning("case %s is dropped: %s", case.key, reason)
                self._cases.drop(case)
                return
        await self._approve()
        salt = self._salt(case)
        commitment = faults.commitment(node.signer.address, case.evidence, salt)
        receipt = await outbox.submit(
            faults.commit_challenge_call(commitment), f"accuse/{case.key}"
        )
        if node.chain.block <= receipt.block:
            return
        proof = await outbox.submit(faults.prove_call(case.evidence, salt), f"prove/{case.key}")
        logger.warning("case %s proven in block %d", case.key, proof.block)
        self._cases.close(case)

    def _has_graver(self, case: Case) -> bool:
        """A graver case of ours against the same round goes first: what it takes, this one could not take as well."""
        params = self._node.run_file.spec.chain
        return any(
            (other.miner, other.round) == (case.miner, case.round)
            and slash_bps_of(other.kind, params) > slash_bps_of(case.kind, params)
            for other in self._cases.open_cases()
        )

    async def _is_judged(self, case: Case) -> bool:
        """Whether a fault as grave is proven already, so that there is nothing to be had."""
        node, params = self._node, self._node.run_file.spec.chain
        verdict = await node.chain.contracts.verdicts.verdict_of(case.miner, case.round)
        return verdict is not None and (
            slash_bps_of(verdict.kind, params) >= slash_bps_of(case.kind, params)
        )

    async def _approve(self) -> None:
        node = self._node
        if not node.outbox.known("approve/faults"):
            await node.outbox.submit(
                node.chain.contracts.token.approve_call(node.run_file.contracts.faults, UNLIMITED),
                "approve/faults",
            )

    def _salt(self, case: Case) -> Hash32:
        """Secret and repeatable, so that a restarted hunter proves what it committed."""
        message = keccak256(
            b"syntience.challenge.salt.v1" + abi_words(keccak256(case.key.encode()))
        )
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))
