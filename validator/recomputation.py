"""Whether a disputed step of a miner's work is what the training gives.

Native work repeats bit for bit on one kind of processor, so the same leaf as the claimed one acquits at
once. Where it differs the defendant's claimed state decides: within the run's tolerance of our own
recomputation it is honest rounding; further away, or not served, it is not the training.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from node.contents import read_local, read_payload, read_trace
from node.errors import MissingPayload
from node.games import Disputed, Game, Part, disputed, intervals, listed_leaf
from node.node import Node
from node.replayer import Replayer
from node.states import fetch_state
from protocol.errors import Rejected, Retryable
from protocol.ids import Hash32
from protocol.merkle import depth_of, leaf_hash
from protocol.submission import Publication
from training.closeness import encode_distance, step_distance
from training.errors import TrainingDiverged
from training.inner import InnerState, RoundStart
from training.replay import Encoded, encode_from, step_from

logger = logging.getLogger(__name__)

_Read = TypeVar("_Read")


class NotServed(Retryable):
    """The defendant does not serve a state that it claims, so far."""


class Recomputation:
    """One validator's own answer to what games come down to."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._replayer = Replayer(node)
        self._tolerance = float(node.run_file.spec.compute.tolerance)

    def close(self) -> None:
        """Stops the thread."""
        self._replayer.close()

    async def is_guilty(self, game: Game) -> bool:
        """Whether the disputed step is wrong.

        Raises:
            NotServed: only the defendant could show that it is close; in the end that counts as guilt.
            Retryable: something that others serve can't be had just now.
        """
        publication = await self._replayer.publication(game.round, game.position.claim)
        if publication is None:
            raise MissingPayload(f"nobody serves the disputed submission of round {game.round}")
        submission, claimed = publication.signed.submission, game.position.node
        accepted = await self._replayer.accepted.of(game.round)
        if accepted.get(game.defendant) != submission:
            return False  # it earned nothing and moved nothing
        what = disputed(game.position, self._node.run_file.spec.inner)
        if what.part is Part.START:
            return claimed != leaf_hash(submission.initial_root + submission.local_in)
        try:
            start = await self._replayer.start_of(submission)
            if what.part is Part.ENCODE:
                return await self._is_wrong_encode(game, publication, start)
            return await self._is_wrong_step(game, publication, start, what)
        except TrainingDiverged as error:
            logger.warning("round %d of %s diverges: %s", game.round, game.defendant, error)
            return True

    async def _is_wrong_step(
        self, game: Game, publication: Publication, start: RoundStart, what: Disputed
    ) -> bool:
        run = self._replayer.run
        before, agreed = await self._before(game, publication, start, what.step - 1)
        batch = start.samples[what.step - 1]
        arithmetic = self._replayer.arithmetic
        taken = arithmetic.inner.taken_before(game.round) + what.step - 1
        mine = await run(partial(step_from, before, batch, arithmetic, taken=taken))
        if leaf_hash(await run(mine.leaf)) == game.position.node:
            return False
        theirs = await self._state(game, game.position.node)
        distance = await run(partial(step_distance, theirs, mine, before))
        self._tell(game, f"inner step {what.step}", distance, agreed=agreed)
        return distance > self._tolerance

    async def _is_wrong_encode(
        self, game: Game, publication: Publication, start: RoundStart
    ) -> bool:
        run, submission = self._replayer.run, publication.signed.submission
        if game.position.node != leaf_hash(submission.payload_root + submission.local_out):
            return True
        steps = self._node.run_file.spec.inner.steps
        final, agreed = await self._before(game, publication, start, steps)
        mine = await run(partial(encode_from, final, start.state.params, self._replayer.arithmetic))
        if leaf_hash(await run(mine.leaf)) == game.position.node:
            return False
        spec = self._node.run_file.spec
        theirs = Encoded(
            payload=await self._content(
                publication, "payload", lambda data: read_payload(data, submission, spec)
            ),
            local_out=await self._content(
                publication, "local", lambda data: read_local(data, submission, spec)
            ),
        )
        distance = await run(partial(encode_distance, theirs, mine))
        self._tell(game, "the encode", distance, agreed=agreed)
        return distance > self._tolerance

    async def _before(
        self, game: Game, publication: Publication, start: RoundStart, step: int
    ) -> tuple[InnerState, bool]:
        """The state that both sides agree on, and whether our own recomputation has it too."""
        done = await self._replayer.replay(start, keep=[step])
        mine, leaf = done.states[step], leaf_hash(done.leaves[step])
        agreed = await self._agreed(game, publication)
        if agreed is None or agreed == leaf:
            return mine, True
        return await self._state(game, agreed), False

    async def _agreed(self, game: Game, publication: Publication) -> Hash32 | None:
        """Hash of the leaf before the disputed one; None if the game did not have to show it."""
        (interval, inside, *_), spec = game.position.picks, self._node.run_file.spec
        if inside > 0:
            return listed_leaf(
                self._node.chain.events,
                game.position.roots[1],
                depth=depth_of(len(intervals(spec.inner)[interval - 1])),
                index=inside - 1,
            )
        submission = publication.signed.submission
        trace = await self._content(
            publication, "trace", lambda data: read_trace(data, submission, spec)
        )
        return leaf_hash(trace[interval - 1])

    async def _state(self, game: Game, leaf: Hash32) -> InnerState:
        endpoint = self._node.chain.endpoints().get(game.defendant)
        state, why = None, "it lists none"
        try:
            if endpoint is not None:
                state = await fetch_state(self._node, game.round, leaf, endpoint)
        except (Retryable, Rejected) as error:
            why = str(error)
        if state is None:
            raise NotServed(
                f"{game.defendant} does not serve its state of round {game.round}: {why}"
            )
        return state

    async def _content(
        self, publication: Publication, kind: str, read: Callable[[bytes], _Read]
    ) -> _Read:
        endpoints = self._node.chain.endpoints()
        mirrors = [
            *await self._node.chain.validator_endpoints(without=self._node.me),
            endpoints.get(publication.signed.submission.miner, ""),
        ]
        _, content = await self._node.exchange.content(
            publication, kind, [mirror for mirror in mirrors if mirror], read
        )
        return content

    def _tell(self, game: Game, what: str, distance: float, *, agreed: bool) -> None:
        logger.info(
            "round %d of %s: %s lies %.3g of its change from ours%s",
            game.round,
            game.defendant,
            what,
            distance,
            "" if agreed else ", from a state that we don't have",
        )
