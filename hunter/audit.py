"""Recomputing a miner's round from public data: the only way to find work that was not done.

In native mode a mismatch is no proof for a contract: it is reported, with what differs. The same
machine and thread settings give the same bits; another machine may not, and the report says so.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from node.accepted import AcceptedWork
from node.contents import read_local
from node.follower import Step
from node.node import Node
from protocol import canonical, record
from protocol.assignment import assigned_samples
from protocol.beacon import Draw, seed_from
from protocol.errors import Rejected
from protocol.ids import Address, Round
from protocol.submission import Publication, Submission
from training.errors import TrainingDiverged
from training.inner import train_round
from training.local_state import LocalState
from training.parameters import Parameters

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an audit found. `matches` is False if the payload is not what the work gives."""

    round: Round
    miner: Address
    matches: bool
    what: str


class Auditor:
    """Recomputes one accepted miner per round, drawn from the evaluation beacon and our key."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._accepted = AcceptedWork(
            chain=node.chain, exchange=node.exchange, spec=node.run_file.spec, me=node.me
        )

    async def audit(self, step: Step) -> Finding | None:
        """Audits a concluded round; None if nobody was accepted.

        Raises:
            Retryable: the miner's data can't be had just now.
        """
        facts, node = step.facts, self._node
        if facts.evaluation is None or not step.outcome.accepted:
            return None
        draw = Draw(seed_from(facts.evaluation, "audit", node.me))
        slots = sorted(step.outcome.accepted)
        submission = step.outcome.accepted[slots[draw.below(len(slots))]]
        local = await self._local_in(submission)
        finding = await asyncio.to_thread(self._recompute, submission, step.before, local)
        node.board.put(f"audits/{finding.round}", node.me, canonical.dumps(record.to_json(finding)))
        level = logging.INFO if finding.matches else logging.WARNING
        logger.log(level, "round %d: audit of %s: %s", finding.round, finding.miner, finding.what)
        return finding

    async def _local_in(self, submission: Submission) -> LocalState:
        """The local state that the miner says it started from."""
        spec = self._node.run_file.spec
        if submission.local_from_round == 0:
            return LocalState.zeros(spec.model)
        before = (await self._accepted.of(submission.local_from_round)).get(submission.miner)
        if before is None or before.local_out != submission.local_in:
            raise Rejected(f"local state of {submission.miner} is out of line")
        publication = await self._publication(before)
        mirrors = await self._node.chain.validator_endpoints()
        read = partial(read_local, submission=before, spec=spec)
        _, local = await self._node.exchange.content(publication, "local", mirrors, read)
        return local

    async def _publication(self, submission: Submission) -> Publication:
        versions = self._node.exchange.versions(submission.round)[submission.miner]
        return versions[submission.digest(self._node.run_file.domain)]

    def _recompute(self, submission: Submission, params: Parameters, local: LocalState) -> Finding:
        node, spec = self._node, self._node.run_file.spec
        samples = assigned_samples(
            run=node.run_file.run,
            round_=submission.round,
            beacon=submission.beacon,
            miner=submission.miner,
            count=spec.chain.samples_per_round,
            train_samples=spec.data.train_samples,
        )
        inner = spec.inner
        try:
            done = train_round(
                params=params,
                local=local,
                samples=node.dataset.samples(samples).reshape(inner.steps, inner.batch, -1),
                model=spec.model,
                inner=inner,
                codec=spec.codec,
                initial_root=submission.initial_root,
            )
        except TrainingDiverged as error:
            return self._finding(submission, matches=False, what=f"diverges: {error}")
        if done.payload_root != submission.payload_root:
            return self._finding(submission, matches=False, what="another payload than handed in")
        if done.trace_root != submission.trace_root:
            return self._finding(submission, matches=False, what="another trace than handed in")
        return self._finding(submission, matches=True, what="recomputed to the bit")

    def _finding(self, submission: Submission, *, matches: bool, what: str) -> Finding:
        return Finding(round=submission.round, miner=submission.miner, matches=matches, what=what)
