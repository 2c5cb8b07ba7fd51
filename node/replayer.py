"""Recomputing a miner's round from public data: model, local state and samples, each checked by its root.

The arithmetic runs off the event loop, in one thread for each role, so that it never takes the
machine from those who train on it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from node.accepted import AcceptedWork
from node.contents import read_local
from node.exchange import Exchange
from node.games import Claim
from node.node import Node
from protocol.assignment import assigned_samples
from protocol.errors import Rejected
from protocol.ids import Hash32, Round
from protocol.submission import Publication, Submission
from training.arithmetic import Arithmetic
from training.inner import InnerLoop, InnerState, Loops, RoundStart
from training.local_state import LocalState
from training.parameters import Parameters
from training.replay import Replay, replay

_NICENESS = 10
_Result = TypeVar("_Result")


class Replayer:
    """Recomputes rounds for one role.

    Args:
        node: its node.
        loops: what computes. Whoever has to reach the same bits again must give what computed them first.
    """

    def __init__(self, node: Node, loops: Loops = InnerLoop) -> None:
        self._node, self._loops = node, loops
        self.arithmetic = Arithmetic.of(node.run_file.spec)
        self.accepted = AcceptedWork(
            chain=node.chain, exchange=node.exchange, spec=node.run_file.spec, me=node.me
        )
        self._pool = ThreadPoolExecutor(max_workers=1, initializer=_lower_priority)

    async def start_of(
        self, submission: Submission, params: Parameters | None = None
    ) -> RoundStart:
        """Where an accepted submission's round began.

        Args:
            submission: whose round.
            params: the model at its start, if the caller has it.

        Raises:
            Retryable: something can't be had just now.
            Rejected: the local state is out of line.
        """
        local = await self._local_in(submission)
        if params is None:
            follower = self._node.follower
            params = await follower.model_at(submission.round, submission.initial_root)
        samples = await self.run(partial(self._samples, submission))
        return RoundStart(
            round=submission.round,
            state=InnerState(params=params, local=local),
            root=submission.initial_root,
            samples=samples,
        )

    async def replay(self, start: RoundStart, *, keep: Collection[int] = ()) -> Replay:
        """The round once more; see `training.replay.replay`."""
        return await self.run(partial(replay, start, self.arithmetic, keep=keep, loops=self._loops))

    async def run(self, work: Callable[[], _Result]) -> _Result:
        """Does some arithmetic in the role's own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def publication(self, round_: Round, digest: Hash32) -> Publication | None:
        """The submission of a round with this digest, asked for where it is not known."""
        exchange, chain = self._node.exchange, self._node.chain
        roster = await chain.roster(round_)
        if roster is None:
            return None
        if _known(exchange, round_, digest) is None:
            exchange.reload(roster)
        if _known(exchange, round_, digest) is None:
            peers = await chain.validator_endpoints(without=self._node.me)
            await exchange.pull(roster, [*peers, *await chain.miner_endpoints()])
        return _known(exchange, round_, digest)

    def close(self) -> None:
        """Stops the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _local_in(self, submission: Submission) -> LocalState:
        """The local state that the miner says it started from."""
        node, spec = self._node, self._node.run_file.spec
        if submission.local_from_round == 0:
            return LocalState.zeros(spec.model)
        before = (await self.accepted.of(submission.local_from_round)).get(submission.miner)
        if before is None or before.local_out != submission.local_in:
            raise Rejected(f"local state of {submission.miner} is out of line")
        versions = node.exchange.versions(before.round)[submission.miner]
        publication = versions[before.digest(node.run_file.domain)]
        endpoints = node.chain.endpoints()
        mirrors = [*await node.chain.validator_endpoints(), endpoints.get(submission.miner, "")]
        read = partial(read_local, submission=before, spec=spec)
        _, local = await node.exchange.content(
            publication, "local", [mirror for mirror in mirrors if mirror], read
        )
        return local

    def _samples(self, submission: Submission) -> NDArray[np.int64]:
        spec, inner = self._node.run_file.spec, self._node.run_file.spec.inner
        assigned = assigned_samples(
            run=self._node.run_file.run,
            round_=submission.round,
            beacon=submission.beacon,
            miner=submission.miner,
            count=spec.chain.samples_per_round,
            train_samples=spec.data.train_samples,
        )
        return self._node.dataset.samples(assigned).reshape(inner.steps, inner.batch, -1)


def claim_of(done: Replay) -> Claim:
    """All leaves of a recomputed round."""
    return Claim(steps=done.leaves, encode=done.encoded.leaf())


def _known(exchange: Exchange, round_: Round, digest: Hash32) -> Publication | None:
    return next(
        (versions[digest] for versions in exchange.versions(round_).values() if digest in versions),
        None,
    )


def _lower_priority() -> None:
    """Lets the threads that train, here and in other processes, go first."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
