"""The hunter's search: collects what was signed and opens a case for every fault that a contract can judge.

Nothing is decided here but where to look: what is a fault, the pure finders say.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from hunter.cases import CaseBook
from hunter.evidence import equivocations, wrong_data, wrong_spec
from hunter.local_state import PastRound, local_state
from ledger.contracts.evidence import Evidence, LocalStateEvidence, kind_of
from ledger.errors import Reverted
from node.contents import read_data_leaves
from node.errors import MissingPayload
from node.exchange import Roster
from node.node import Node
from protocol.beacon import Purpose
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round
from protocol.submission import Publication, SignedSubmission
from protocol.terms import terms_at

logger = logging.getLogger(__name__)

_ROUNDS_BACK = 6


class Search:
    """Looks at the submissions of the round under way and the last few."""

    def __init__(self, node: Node, cases: CaseBook) -> None:
        self._node = node
        self._cases = cases
        self._right_data: set[tuple[Round, Hash32]] = set()
        self._in_line: set[tuple[Round, Hash32]] = set()
        self._loaded: set[Round] = set()
        self._asked: set[Round] = set()

    async def look(self) -> None:
        """Opens a case for every fault that is to be seen by now."""
        chain = self._node.chain
        first = Round(max(1, chain.round - _ROUNDS_BACK))
        self._forget_before(first)
        for number in range(first, chain.round + 1):
            round_ = Round(number)
            if chain.time <= chain.clock.put_deadline(round_):
                continue
            roster = await self._roster(round_)
            if roster is None:
                continue
            if chain.time <= chain.clock.start(Round(round_ + 2)):
                await self._collect(roster)
            self._find_equivocations(roster)
            await self._examine(roster)

    async def _roster(self, round_: Round) -> Roster | None:
        """The roster of a round, after taking back what our board kept of it over a restart."""
        roster = await self._node.chain.roster(round_)
        if roster is not None and round_ not in self._loaded:
            self._node.exchange.reload(roster)
            self._loaded.add(round_)
        return roster

    async def _collect(self, roster: Roster) -> None:
        chain = self._node.chain
        endpoints = [*await chain.miner_endpoints(), *await chain.validator_endpoints()]
        await self._node.exchange.pull(roster, endpoints)

    def _find_equivocations(self, roster: Roster) -> None:
        versions = self._node.exchange.versions(roster.round)
        signed = [each.signed for found in versions.values() for each in found.values()]
        for evidence in equivocations(
            signed, domain=self._node.run_file.domain, beacon=roster.beacon
        ):
            self.open_case(evidence)

    async def _examine(self, roster: Roster) -> None:
        """What each miner committed. All miners at once: one whose data come slowly must not keep us from proving the others'
        frauds in time.
        """
        chain = self._node.chain
        terms = terms_at(chain.schedule(), chain.clock.epoch_of(roster.round))
        assert terms is not None, "a run has terms from its first epoch on"
        rest = []
        for publication in self._node.exchange.committed(roster).values():
            evidence = wrong_spec(publication.signed, terms.spec_hash)
            if evidence is not None:
                self.open_case(evidence)
            else:
                rest.append(publication)
        await asyncio.gather(
            *(self._check_data(publication, roster) for publication in rest),
            *(self._check_local(publication.signed, roster) for publication in rest),
        )

    async def _check_data(self, publication: Publication, roster: Roster) -> None:
        node = self._node
        submission, spec = publication.signed.submission, node.run_file.spec
        miner = submission.miner
        name = (roster.round, roster.commits[miner])
        if name in self._right_data:
            return
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
        self._right_data.add(name)
        if found is not None:
            self.open_case(found)

    async def _check_local(self, signed: SignedSubmission, roster: Roster) -> None:
        name = (roster.round, roster.commits[signed.submission.miner])
        if name in self._in_line:
            return
        try:
            found = await self._out_of_line(signed)
        except (Retryable, Rejected, Reverted) as error:
            logger.debug("local state of %s: %s", signed.submission.miner, error)
            return
        self._in_line.add(name)
        if found is not None:
            self.open_case(found)

    async def _out_of_line(self, signed: SignedSubmission) -> LocalStateEvidence | None:
        """Looks at the round carried from, and only then at all between."""
        submission = signed.submission
        first = submission.local_from_round
        if not max(1, self._oldest_ballots()) <= first < submission.round:
            return None
        past = {first: await self._past(first, submission.miner)}
        found = local_state(signed, past)
        if found is not None:
            return found
        for number in range(first + 1, submission.round):
            past[Round(number)] = await self._past(Round(number), submission.miner)
        return local_state(signed, past)

    def _oldest_ballots(self) -> int:
        """The oldest round whose attestations the contract still has when a case that is opened now is proven."""
        params = self._node.run_file.spec.chain
        ring = (params.fraud_window_epochs + 2) * params.rounds_per_epoch
        return self._node.chain.round - ring + 2

    async def _past(self, round_: Round, miner: Address) -> PastRound:
        chain = self._node.chain
        facts = await chain.round_facts(round_)
        slot = next((slot for slot, held in facts.miners.items() if held == miner), None)
        expected = slot is not None and miner in facts.commits and facts.tally().bits[slot]
        return PastRound(
            beacon=chain.beacon(round_, Purpose.ASSIGNMENT),
            slot=slot,
            committed=await self._committed(round_, miner, expected=expected),
            votes=facts.attestations,
            total_stake=facts.total_stake,
        )

    async def _committed(
        self, round_: Round, miner: Address, *, expected: bool
    ) -> SignedSubmission | None:
        """What a miner committed in a round; validators are asked once for what a majority of them holds.

        Raises:
            MissingPayload: none of them shows it (yet).
        """
        roster = await self._roster(round_)
        if roster is None:
            return None
        exchange = self._node.exchange
        if expected and miner not in exchange.committed(roster) and round_ not in self._asked:
            self._asked.add(round_)
            await exchange.pull(roster, await self._node.chain.validator_endpoints())
        publication = exchange.committed(roster).get(miner)
        if publication is None and expected:
            raise MissingPayload(
                f"round {round_}: a majority holds what {miner} handed in, and nobody shows it"
            )
        return None if publication is None else publication.signed

    def open_case(self, evidence: Evidence) -> None:
        """Opens a case, unless there is or was one for this miner, round and kind."""
        if self._cases.add(evidence):
            accused = evidence.accused.submission
            logger.warning(
                "round %d: evidence against %s: %s",
                accused.round,
                accused.miner,
                kind_of(evidence).slug,
            )

    def _forget_before(self, round_: Round) -> None:
        for seen in (self._right_data, self._in_line):
            seen.difference_update([each for each in seen if each[0] < round_])
