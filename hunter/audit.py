"""Recomputing a miner's round from public data: the only way to find work that was not done.

In native mode a mismatch is no proof for a contract: it is reported, with what differs, and may go to
a game whose last step validators vote on. The same machine and thread settings give the same bits;
another machine may not, and the report says so.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

from hunter.charges import Charge
from node.follower import Step
from node.node import Node
from node.replayer import Replayer, claim_of
from protocol import canonical, record
from protocol.beacon import Draw, seed_from
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Round
from protocol.submission import Submission
from training.errors import TrainingDiverged
from training.parameters import Parameters
from training.replay import Replay

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What an audit found. `matches` is False if the payload is not what the work gives."""

    round: Round
    miner: Address
    matches: bool
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A finding, and the charge that could be made of it; None if our own work went astray."""

    finding: Finding
    charge: Charge | None


class Auditor:
    """Recomputes some accepted miners of each round, drawn from the evaluation beacon and our key.

    Args:
        count: how many at most.
    """

    def __init__(self, node: Node, *, count: int = 1) -> None:
        self._node = node
        self._count = count
        self._replayer = Replayer(node)

    async def audit(self, step: Step) -> AsyncIterator[Audit]:
        """Audits a concluded round, miner by miner; those whose data can't be had are left out."""
        facts, accepted = step.facts, step.outcome.accepted
        if facts.evaluation is None:
            return
        draw, slots = Draw(seed_from(facts.evaluation, "audit", self._node.me)), sorted(accepted)
        for place in draw.sample(len(slots), min(self._count, len(slots))):
            try:
                yield await self._audit(accepted[slots[place]], step.before)
            except (Retryable, Rejected) as error:
                logger.info("round %d: not audited: %s", step.outcome.round, error)

    async def _audit(self, submission: Submission, params: Parameters) -> Audit:
        node = self._node
        start = await self._replayer.start_of(submission, params=params)
        charge = None
        try:
            done = await self._replayer.replay(start)
        except TrainingDiverged as error:
            finding = _finding(submission, f"diverges: {error}")
        else:
            finding = _compare(submission, done, trace_every=node.run_file.spec.inner.trace_every)
            charge = await self._charge(submission, done)
        node.board.put(f"audits/{finding.round}", node.me, canonical.dumps(record.to_json(finding)))
        level = logging.INFO if finding.matches else logging.WARNING
        logger.log(level, "round %d: audit of %s: %s", finding.round, finding.miner, finding.what)
        return Audit(finding=finding, charge=charge)

    def close(self) -> None:
        """Stops the thread."""
        self._replayer.close()

    async def _charge(self, submission: Submission, done: Replay) -> Charge | None:
        digest = submission.digest(self._node.run_file.domain)
        publication = await self._replayer.publication(submission.round, digest)
        if publication is None:
            return None
        return Charge(signed=publication.signed, mine=claim_of(done))


def _compare(submission: Submission, done: Replay, *, trace_every: int) -> Finding:
    if done.encoded.payload.root() != submission.payload_root:
        return _finding(submission, "another payload than handed in")
    if done.trace_root(trace_every=trace_every) != submission.trace_root:
        return _finding(submission, "another trace than handed in")
    return _finding(submission, "recomputed to the bit", matches=True)


def _finding(submission: Submission, what: str, *, matches: bool = False) -> Finding:
    return Finding(round=submission.round, miner=submission.miner, matches=matches, what=what)
