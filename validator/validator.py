"""The validator's process: some loops over one node.

*Following* keeps chain and model up to date and hands every concluded round on to *scoring*, which
takes its time in a thread of its own. *Duties* gather, attest, commit, reveal and settle; *chores*
are what anyone may do for all; the *jury* votes on what games come down to. Each loop can fail for a
while without stopping the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ledger.errors import Reverted
from node.answers import Answerer
from node.caretaker import Caretaker
from node.claims import claim_rewards
from node.dataset import offer_dataset
from node.follower import Step
from node.node import Node
from protocol.errors import Rejected, Retryable
from protocol.ids import Epoch, Round
from validator.attest import Attester
from validator.behaviour import Behaviour
from validator.chronicle import Chronicle
from validator.jury import Juror
from validator.scores import Scorer
from validator.settlement import Settler
from validator.weights import WeightKeeper

logger = logging.getLogger(__name__)


class Validator:
    """One validator of one run.

    Args:
        node: its open node.
        behaviour: how it posts and votes; the honest way unless this is an experiment.
        last_epoch: it stops when this epoch is settled and paid; None never.
    """

    def __init__(
        self, node: Node, behaviour: Behaviour | None = None, *, last_epoch: Epoch | None = None
    ) -> None:
        self._node = node
        self._last_epoch = last_epoch
        self._attester = Attester(node)
        self._scorer = Scorer(node, self._attester)
        self._weights = WeightKeeper(node)
        self._settler = Settler(node, behaviour)
        self._juror = Juror(node, behaviour)
        self._caretaker = Caretaker(
            chain=node.chain,
            outbox=node.outbox,
            settlements=node.settlements,
            run=node.run_file.run,
            me=node.me,
        )
        self._answerer = Answerer(node)
        self._chronicle = Chronicle(node)
        self._concluded: asyncio.Queue[Step] = asyncio.Queue()
        self._done = asyncio.Event()

    async def run(self) -> None:
        """Works until cancelled, or until everything up to `last_epoch` is settled and paid."""
        await self.prepare()
        try:
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(self._follow()),
                    group.create_task(self._score()),
                    group.create_task(self._repeat(self._duties)),
                    group.create_task(self._repeat(self._caretaker.work)),
                    group.create_task(self._repeat(self._settle)),
                    group.create_task(self._repeat(self._juror.work)),
                    group.create_task(self._repeat(self._answerer.work)),
                ]
                await self._done.wait()
                for loop in loops:
                    loop.cancel()
        finally:
            self.close()

    async def prepare(self) -> None:
        """Goes back to the round that a kill kept from the book, publishes what it kept back, and offers the data set to joiners."""
        self._scorer.resume()
        await self._node.follower.go_back(Round(self._scorer.book.round + 1))
        await asyncio.to_thread(
            offer_dataset, self._node.dataset, board=self._node.board, store=self._node.store
        )

    async def step(self) -> None:
        """All loops' work once, one after the other, as far as there is something to do now."""
        steps = await self._node.tick()
        for concluded in steps:
            await self._enter(concluded)
        await self._chronicle.keep(steps)
        for work in (
            self._duties,
            self._answerer.work,
            self._caretaker.work,
            self._settle,
            self._juror.work,
        ):
            await self._attempt(work)

    def close(self) -> None:
        """Stops what `step` leaves running."""
        self._scorer.close()
        self._juror.close()

    async def _follow(self) -> None:
        while True:
            steps = await self._node.tick()
            for concluded in steps:
                self._concluded.put_nowait(concluded)
            await self._chronicle.keep(steps)
            await self._node.wait()

    async def _score(self) -> None:
        while True:
            await self._enter(await self._concluded.get())

    async def _enter(self, concluded: Step) -> None:
        """Enters a round into the book; the weights of the epoch before are fixed first."""
        epoch = self._node.chain.clock.epoch_of(concluded.outcome.round)
        if epoch > self._scorer.book.epoch:
            await self._weights.fix(Epoch(epoch - 1), self._scorer.book)
        await self._scorer.observe(concluded)

    async def _duties(self) -> None:
        if self._node.chain.paused:
            return
        await self._attester.work()
        await self._weights.work(self._scorer.book)

    async def _settle(self) -> None:
        if self._node.chain.paused:
            return
        await self._settler.work()
        owed = await claim_rewards(self._node)
        settled = self._node.chain.settled()
        over = self._last_epoch is not None and self._last_epoch in settled
        if over and not owed and self._juror.is_idle:
            self._done.set()

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._attempt(work)
            await self._node.wait()

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (Retryable, Rejected) as error:
            logger.warning("%s", error)
        except Reverted as error:
            logger.warning("refused by the contract: %s", error)
