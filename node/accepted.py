"""The accepted submissions of past rounds, for whoever has to know what a miner may build on."""

from __future__ import annotations

from collections.abc import Mapping

from node.chain import RunChain
from node.errors import MissingPayload
from node.exchange import Exchange
from node.outcome import conclude, needed
from protocol.ids import Address, Round
from protocol.spec import RunSpec
from protocol.submission import Submission
from scoring.checks import LocalOrigin

_ROUNDS_KEPT = 1024


class AcceptedWork:
    """Looks up each round once; the publications come from the board or from other validators."""

    def __init__(self, *, chain: RunChain, exchange: Exchange, spec: RunSpec, me: Address) -> None:
        self._chain = chain
        self._exchange = exchange
        self._spec = spec
        self._me = me
        self._rounds: dict[Round, Mapping[Address, Submission]] = {}

    async def of(self, round_: Round) -> Mapping[Address, Submission]:
        """The accepted submissions of a round that is over, by miner.

        Raises:
            MissingPayload: a submission that a majority holds can't be had just now.
        """
        known = self._rounds.get(round_)
        if known is not None:
            return known
        facts = await self._chain.round_facts(round_)
        wanted, roster = needed(facts), await self._chain.roster(round_)
        found: dict[Address, Submission] = {}
        if wanted and roster is not None:
            if len(self._exchange.committed(roster).keys() & set(facts.miners.values())) < len(
                wanted
            ):
                self._exchange.reload(roster)
                await self._exchange.pull(
                    roster, await self._chain.validator_endpoints(without=self._me)
                )
            committed = self._exchange.committed(roster)
            missing = [slot for slot in wanted if facts.miners[slot] not in committed]
            if missing:
                raise MissingPayload(f"round {round_}: no submission of slots {missing}")
            submissions = {slot: committed[facts.miners[slot]].signed.submission for slot in wanted}
            outcome = conclude(facts, submissions, self._spec.outer)
            found = {facts.miners[slot]: each for slot, each in outcome.accepted.items()}
        self._rounds[round_] = found
        self._rounds.pop(Round(round_ - _ROUNDS_KEPT), None)
        return found

    async def origins(self, round_: Round) -> dict[Address, LocalOrigin]:
        """What each miner may continue from in a round: its last accepted work in the window."""
        clock = self._chain.clock
        first_epoch = clock.epoch_of(round_) - self._spec.chain.fraud_window_epochs
        origins: dict[Address, LocalOrigin] = {}
        for number in range(max(1, (first_epoch - 1) * clock.params.rounds_per_epoch + 1), round_):
            for miner, submission in (await self.of(Round(number))).items():
                origins[miner] = LocalOrigin(round=Round(number), local_out=submission.local_out)
        return origins
