"""Holds the agreed model and moves it on, round by round, exactly as everybody else does.

The follower holds the model at the start of `head`. Once that round's attest deadline is over and
its evaluation beacon is known (or too late), its outcome is concluded from the chain, the selected
payloads are fetched, and the same aggregate is applied. A root that differs from the majority's is
noticed in that round, and the model is fetched again under the finalised root.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from node.chain import RunChain
from node.checkpoints import Checkpoints
from node.contents import read_payload
from node.errors import Diverged, MissingPayload, WrongStart
from node.exchange import Exchange, Roster
from node.outcome import Outcome, RoundFacts, conclude, needed
from protocol.beacon import Purpose
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32, Round, Slot
from protocol.model_spec import LlamaSpec
from protocol.runfile import RunFile
from protocol.submission import Publication, Submission
from training.aggregate import aggregate
from training.codec import Payload
from training.model_folder import read_model
from training.outer import OuterStep
from training.parameters import Parameters, initial_parameters
from training.roots import state_root

logger = logging.getLogger(__name__)

_ROOTS_KEPT = 64
_CATCH_UP_BY_CHECKPOINT = 3
"""More rounds behind than this, a checkpoint is fetched instead of replaying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One round that was concluded.

    Attributes:
        before, after: the model at the start of the round and of the next one.
        payloads: of every accepted miner.
    """

    outcome: Outcome
    facts: RoundFacts
    before: Parameters
    after: Parameters
    payloads: Mapping[Address, Payload]


class Follower:
    """The model at the start of `head`. Start it with `start`, move it with `advance`.

    Args:
        start: a folder with the model of round 1, where the run starts from a checkpoint and we have it.
    """

    def __init__(
        self,
        *,
        run_file: RunFile,
        chain: RunChain,
        exchange: Exchange,
        checkpoints: Checkpoints,
        me: Address,
        start: Path | None = None,
    ) -> None:
        self._spec = run_file.spec
        self._chain = chain
        self._exchange = exchange
        self._checkpoints = checkpoints
        self._me = me
        self._start = start
        self.head = Round(0)
        self.params: Parameters = {}
        self.root = Hash32(b"")
        self.roots: dict[Round, Hash32] = {}

    async def start(self) -> None:
        """Takes up the model: from disk, from a finalised checkpoint, or from the very start.

        Raises:
            NoCheckpoint: the run is under way and nobody offers a checkpoint just now.
            WrongStart: the first model does not have the genesis root.
        """
        kept = self._checkpoints.newest()
        finalised = self._chain.final_roots()
        newest = max(finalised, default=Round(1))
        if kept is not None and newest - kept[0] <= _CATCH_UP_BY_CHECKPOINT:
            self._take(*kept)
        elif newest > _CATCH_UP_BY_CHECKPOINT:
            await self._fetch(newest, finalised[newest])
        else:
            await self._begin()
        logger.info("model at the start of round %d, root %s", self.head, self.root.hex()[:16])

    async def advance(self) -> Step | None:
        """Concludes the round `head` if its time has come, and moves the model on.

        Raises:
            MissingPayload: an accepted payload can't be had just now; call again.
            NoCheckpoint: the model diverged and nobody offers the right one just now.
        """
        if not self._is_over(self.head):
            return None
        facts = await self._chain.round_facts(self.head)
        try:
            self._compare(facts)
        except Diverged as error:
            logger.error("%s; fetching the finalised model", error)
            await self._fetch(self.head, error.majority)
        publications = await self._publications(facts)
        submissions = {slot: found.signed.submission for slot, found in publications.items()}
        outcome = conclude(facts, submissions, self._spec.outer)
        accepted = {facts.miners[slot]: publications[slot] for slot in outcome.accepted}
        payloads = await self._payloads(accepted)
        chosen = [payloads[facts.miners[slot]] for slot in outcome.selected]
        before = params = self.params
        if chosen:
            step = OuterStep.of(self._spec.outer, outcome.round)
            params = await asyncio.to_thread(aggregate, before, chosen, step)
        root = await asyncio.to_thread(state_root, params)
        self._take(Round(self.head + 1), root, params)
        await asyncio.to_thread(self._checkpoints.save, self.head, root, params)
        logger.info(
            "round %d: %s, %d accepted, %d selected, root %s",
            outcome.round,
            outcome.void or "applied",
            len(outcome.accepted),
            len(outcome.selected),
            root.hex()[:16],
        )
        return Step(outcome=outcome, facts=facts, before=before, after=params, payloads=payloads)

    async def model_at(self, round_: Round, root: Hash32) -> Parameters:
        """The model at the start of a round, from memory, from disk or from whoever has it.

        Args:
            round_: the round, not later than `head`.
            root: its agreed state root.

        Raises:
            NoCheckpoint: nobody delivers it just now.
        """
        if (round_, root) == (self.head, self.root):
            return self.params
        kept = await asyncio.to_thread(self._checkpoints.at, round_, root)
        if kept is not None:
            return kept
        endpoints = await self._chain.validator_endpoints(without=self._me)
        return await self._checkpoints.fetch(round_, root, endpoints)

    async def rewind(self, first: Round) -> None:
        """Goes back to before the outcome of a round, which a reorganisation took back."""
        if first < self.head:
            logger.warning("the chain took back events of round %d; going back to it", first)
            self._checkpoints.drop_after(first)
            await self.start()

    async def go_back(self, first: Round) -> None:
        """Concludes rounds from ``first`` on once more, if its model is still here and not too old."""
        if first < self.head <= first + _CATCH_UP_BY_CHECKPOINT and self._checkpoints.has(first):
            self._checkpoints.drop_after(first)
            await self.start()

    def _is_over(self, round_: Round) -> bool:
        """Whether everything that the outcome depends on is fixed."""
        clock, time = self._chain.clock, self._chain.time
        if time <= clock.attest_deadline(round_):
            return False
        evaluation = self._chain.beacon(round_, Purpose.EVALUATION)
        cut_off = clock.beacon_cut_off(round_, Purpose.EVALUATION)
        return evaluation is not None or time > cut_off

    def _compare(self, facts: RoundFacts) -> None:
        majority = facts.tally().root
        if majority is not None and majority != self.root:
            raise Diverged(self.head, mine=self.root, majority=majority)

    async def _publications(self, facts: RoundFacts) -> dict[Slot, Publication]:
        """The publication behind every bit with a majority; asks those who set it."""
        wanted = needed(facts)
        roster = await self._chain.roster(facts.round)
        if not wanted or roster is None:
            return {}
        found = self._found(roster, wanted, facts)
        if len(found) < len(wanted):
            self._exchange.reload(roster)
            await self._exchange.pull(
                roster, await self._chain.validator_endpoints(without=self._me)
            )
            found = self._found(roster, wanted, facts)
        if len(found) < len(wanted):
            missing = sorted(wanted.keys() - found.keys())
            raise MissingPayload(f"round {facts.round}: no submission of slots {missing} yet")
        return found

    def _found(
        self, roster: Roster, wanted: Mapping[Slot, Hash32], facts: RoundFacts
    ) -> dict[Slot, Publication]:
        committed = self._exchange.committed(roster)
        return {
            slot: committed[facts.miners[slot]]
            for slot in wanted
            if facts.miners[slot] in committed
        }

    async def _payloads(self, accepted: Mapping[Address, Publication]) -> dict[Address, Payload]:
        endpoints = self._chain.endpoints()
        validators = await self._chain.validator_endpoints(without=self._me)
        found = await asyncio.gather(
            *(
                self._payload(publication, [*validators, endpoints.get(miner, "")])
                for miner, publication in accepted.items()
            )
        )
        return dict(zip(accepted, found, strict=True))

    async def _payload(self, publication: Publication, mirrors: list[str]) -> Payload:
        submission: Submission = publication.signed.submission
        read = partial(read_payload, submission=submission, spec=self._spec)
        try:
            _, payload = await self._exchange.content(
                publication, "payload", [mirror for mirror in mirrors if mirror], read
            )
        except (Retryable, Rejected) as error:
            raise MissingPayload(f"payload of {submission.miner}: {error}") from error
        return payload

    async def _begin(self) -> None:
        """The model of round 1: from the spec's seed, from the operator's folder, or from whoever has it."""
        model, genesis = self._spec.model, self._spec.chain.genesis_root
        if self._spec.start == "seed" and isinstance(model, LlamaSpec):
            params = await asyncio.to_thread(initial_parameters, model)
        elif self._start is not None:
            params = (await asyncio.to_thread(read_model, self._start)).params
        else:
            await self._fetch(Round(1), genesis)
            return
        root = await asyncio.to_thread(state_root, params)
        if root != genesis:
            raise WrongStart(root, genesis=genesis, folder=self._start)
        self._take(Round(1), root, params)
        self._checkpoints.save(self.head, self.root, self.params)

    async def _fetch(self, round_: Round, root: Hash32) -> None:
        endpoints = await self._chain.validator_endpoints(without=self._me)
        params = await self._checkpoints.fetch(round_, root, endpoints)
        self._take(round_, root, params)
        self._checkpoints.save(round_, root, params)

    def _take(self, round_: Round, root: Hash32, params: Parameters) -> None:
        self.head, self.root, self.params = round_, root, params
        self.roots[round_] = root
        self.roots.pop(Round(round_ - _ROOTS_KEPT), None)
