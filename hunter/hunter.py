"""The hunter's process: collects what was signed, looks for frauds, proves them.

Evidence is journaled before its commitment is sent, so that a hunter killed between commit and
proof still proves, and its bond is never lost. Bonds come from the hunter's own key.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from hunter.audit import Auditor
from hunter.cases import Case, CaseBook
from hunter.evidence import equivocations, wrong_data
from hunter.withheld import Seeker
from ledger.contracts.faults import Evidence
from ledger.errors import PAUSED, Reverted
from ledger.event_types import FaultProven
from node.contents import read_data_leaves
from node.exchange import Roster
from node.follower import Step
from node.node import Node
from protocol.errors import Rejected, Retryable
from protocol.hashing import abi_words, keccak256
from protocol.ids import Epoch, Hash32, Round, Units
from protocol.submission import Publication

logger = logging.getLogger(__name__)

_ALLOWANCE = Units(2**255)
_ROUNDS_BACK = 6


class Hunter:
    """One hunter of one run.

    Args:
        node: its open node; its signer holds the bonds and gets the bounties.
        last_epoch: it stops when this epoch is settled; None never.
    """

    def __init__(self, node: Node, *, last_epoch: Epoch | None = None) -> None:
        self._node = node
        self._last_epoch = last_epoch
        self._cases = CaseBook(node.journal)
        self._auditor = Auditor(node)
        self._seeker = Seeker(node)
        self._cleared: dict[Round, set[Hash32]] = {}

    async def run(self) -> None:
        """Hunts until cancelled, or until `last_epoch` is settled and no case is open."""
        while not self._is_done():
            await self.step()
            await self._node.wait()

    async def step(self) -> None:
        """Catches up with the chain and does what there is to do now; what failed is tried again."""
        concluded = await self._node.tick()
        for work in (self._hunt, self._seek, self._prosecute):
            try:
                await work()
            except (Retryable, Rejected) as error:
                logger.warning("%s", error)
            except Reverted as error:
                logger.warning("refused by the contract: %s", error)
        await self._audit(concluded)

    async def _hunt(self) -> None:
        """Looks at the submissions of this round and the last few."""
        chain = self._node.chain
        first = Round(max(1, chain.round - _ROUNDS_BACK))
        self._cleared = {kept: self._cleared[kept] for kept in self._cleared if kept >= first}
        for number in range(first, chain.round + 1):
            round_ = Round(number)
            if chain.time <= chain.clock.put_deadline(round_):
                continue
            roster = await chain.roster(round_)
            if roster is None:
                continue
            if chain.time <= chain.clock.start(Round(round_ + 2)):
                await self._collect(roster)
            await self._find_equivocations(roster)
            await self._find_wrong_data(roster)

    async def _seek(self) -> None:
        """Asks on chain for what is withheld, and reads what was answered."""
        await self._seeker.work()
        for evidence in self._seeker.evidence():
            submission = evidence.signed.submission
            self._open(evidence, submission.round, submission.miner)

    async def _collect(self, roster: Roster) -> None:
        chain = self._node.chain
        endpoints = [*await chain.miner_endpoints(), *await chain.validator_endpoints()]
        await self._node.exchange.pull(roster, endpoints)

    async def _find_equivocations(self, roster: Roster) -> None:
        versions = self._node.exchange.versions(roster.round)
        signed = [each.signed for found in versions.values() for each in found.values()]
        for evidence in equivocations(
            signed, domain=self._node.run_file.domain, beacon=roster.beacon
        ):
            self._open(evidence, roster.round, evidence.first.submission.miner)

    async def _find_wrong_data(self, roster: Roster) -> None:
        """All miners at once: one whose data come slowly must not keep us from proving the others' frauds in time."""
        cleared = self._cleared.setdefault(roster.round, set())
        await asyncio.gather(
            *(
                self._check_data(publication, roster, cleared)
                for miner, publication in self._node.exchange.committed(roster).items()
                if roster.commits[miner] not in cleared
            )
        )

    async def _check_data(
        self, publication: Publication, roster: Roster, cleared: set[Hash32]
    ) -> None:
        node = self._node
        submission, spec = publication.signed.submission, node.run_file.spec
        miner = submission.miner
        endpoints = node.chain.endpoints()
        mirrors = [*await node.chain.validator_endpoints(), endpoints.get(miner, "")]
        read = partial(read_data_leaves, submission=submission, spec=spec)
        try:
            _, leaves = await node.exchange.content(
                publication, "data", [mirror for mirror in mirrors if mirror], read
            )
        except (Retryable, Rejected) as error:
            logger.debug("data leaves of %s: %s", miner, error)
            return
        found = await asyncio.to_thread(wrong_data, publication.signed, leaves, node.dataset)
        cleared.add(roster.commits[miner])
        if found is not None:
            self._open(found, roster.round, miner)

    def _open(self, evidence: Evidence, round_: Round, miner: str) -> None:
        if self._cases.add(evidence):
            logger.warning(
                "round %d: evidence against %s: %s", round_, miner, type(evidence).__name__
            )

    async def _prosecute(self) -> None:
        """Takes every open case one step further: bond and commitment, then the proof. Not in a pause."""
        if self._node.chain.paused:
            return
        for case in self._cases.open_cases():
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
        if self._is_judged(case) and not outbox.known(f"accuse/{case.key}"):
            self._cases.close(case)
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

    async def _approve(self) -> None:
        node = self._node
        if not node.outbox.known("approve/faults"):
            await node.outbox.submit(
                node.chain.contracts.token.approve_call(node.run_file.contracts.faults, _ALLOWANCE),
                "approve/faults",
            )

    def _is_judged(self, case: Case) -> bool:
        events = self._node.chain.events
        proven = events.events(FaultProven, round_=case.round)
        return any(event.miner == case.miner for event in proven)

    def _salt(self, case: Case) -> Hash32:
        """Secret and repeatable, so that a restarted hunter proves what it committed."""
        message = keccak256(
            b"syntience.challenge.salt.v1" + abi_words(keccak256(case.key.encode()))
        )
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))

    async def _audit(self, steps: list[Step]) -> None:
        for step in steps:
            try:
                await self._auditor.audit(step)
            except (Retryable, Rejected) as error:
                logger.info("round %d: not audited: %s", step.outcome.round, error)

    def _is_done(self) -> bool:
        settled = self._last_epoch is not None and self._last_epoch in self._node.chain.settled()
        return settled and not self._cases.open_cases() and not self._seeker.is_waiting()
