"""The defendant's side of games about computations.

The miner shows what it committed to: lists of its own trace, and, where an interval of it has several
inner steps, the states between, which it recomputes once and keeps in the journal before it says their
root. When a game came down to one step it serves the tensors on both sides of it, so that a committee
on other processors can see how close it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ledger.contracts.disputes import Turn
from ledger.errors import Reverted
from node.contents import read_trace
from node.games import (
    Disputed,
    Game,
    Part,
    disputed,
    games_of,
    intervals,
    nodes_below,
    posted_list,
    tree_over,
)
from node.node import Node
from node.replayer import Replayer
from node.states import offer_state
from protocol.errors import Rejected, Retryable
from protocol.ids import Hash32
from protocol.merkle import MerkleTree
from protocol.submission import Publication
from training.inner import InnerLoop, Loops

logger = logging.getLogger(__name__)

_INNER = "inner states"
_LEAF = 64


class Defender:
    """One miner's defence in all games against it. `loops`: what it trains with."""

    def __init__(self, node: Node, loops: Loops = InnerLoop) -> None:
        self._node = node
        self._replayer = Replayer(node, loops)
        self._served: set[Hash32] = set()

    async def work(self) -> None:
        """Answers in every open game, as far as it is our turn. Not in a pause."""
        if self._node.chain.paused:
            return
        for game in games_of(self._node.chain.events):
            if game.defendant != self._node.me or game.over is not None:
                continue
            try:
                await self._answer(game)
            except (Retryable, Rejected) as error:
                logger.warning("game %s: %s", _name(game), error)
            except Reverted as error:
                logger.warning("game %s: refused by the contract: %s", _name(game), error)

    @property
    def is_idle(self) -> bool:
        """Whether no game against us is open."""
        games = games_of(self._node.chain.events)
        return all(game.over for game in games if game.defendant == self._node.me)

    def close(self) -> None:
        """Stops the thread."""
        self._replayer.close()

    async def _answer(self, game: Game) -> None:
        match game.turn:
            case Turn.DEFENDANT_POSTS:
                await self._post(game)
            case Turn.DEFENDANT_ENTERS:
                await self._enter(game)
            case Turn.CHALLENGER_PROVES | Turn.JUDGE_DECIDES:
                await self._serve(game)

    async def _post(self, game: Game) -> None:
        node, position = self._node, game.position
        known = posted_list(node.chain.events, position)
        children = known or nodes_below(await self._tree(game), position)
        call = node.chain.contracts.disputes.post_list_call(game.id, position, children)
        key = f"post-list/{game.id.hex()}/{position.level}/{position.depth}"
        await node.outbox.send(call, key)
        logger.info("game %s: posted a list of level %d", _name(game), position.level)

    async def _enter(self, game: Game) -> None:
        node, disputes = self._node, self._node.chain.contracts.disputes
        key, position = f"enter/{game.id.hex()}/{game.position.level}", game.position
        if node.outbox.known(key):
            return
        tree = await self._tree(game)
        call = disputes.enter_fresh_call(
            game.id, position, tree.root, tree.proof(position.count - 1)
        )
        await node.outbox.send(call, key)
        logger.info("game %s: said the root of level %d", _name(game), position.level)

    async def _tree(self, game: Game) -> MerkleTree:
        """Our tree of the level that the game is descending."""
        publication = await self._publication(game)
        trace = await self._trace(publication)
        if game.position.level == 0:
            return tree_over(trace)
        return tree_over(await self._inner(game, publication, trace))

    async def _inner(
        self, game: Game, publication: Publication, trace: Sequence[bytes]
    ) -> list[bytes]:
        """The states after each inner step of the disputed interval; the last is the trace's own."""
        journal, interval = self._node.journal, game.position.picks[0]
        key = f"{game.position.claim.hex()}/{interval}"
        body = journal.signed(_INNER, key)
        if body is None:
            start = await self._replayer.start_of(publication.signed.submission)
            done = await self._replayer.replay(start)
            span = intervals(self._node.run_file.spec.inner)[interval - 1]
            leaves = [*(done.leaves[step] for step in span[:-1]), trace[interval]]
            body = b"".join(leaves)
            journal.sign_once(_INNER, key, tree_over(leaves).root, body)
        return [body[i : i + _LEAF] for i in range(0, len(body), _LEAF)]

    async def _serve(self, game: Game) -> None:
        """Serves the states on both sides of the disputed step, once."""
        if game.id in self._served:
            return
        node = self._node
        what = disputed(game.position, node.run_file.spec.inner)
        steps = _around(what, node.run_file.spec.inner.steps)
        publication = await self._publication(game)
        start = await self._replayer.start_of(publication.signed.submission)
        done = await self._replayer.replay(start, keep=steps)
        for step in steps:
            offer_state(node, game.round, done.states[step])
        self._served.add(game.id)
        logger.info("game %s: serving the states after steps %s", _name(game), steps)

    async def _publication(self, game: Game) -> Publication:
        found = await self._replayer.publication(game.round, game.position.claim)
        if found is None:
            raise Rejected("we signed no such submission")
        return found

    async def _trace(self, publication: Publication) -> tuple[bytes, ...]:
        node, spec = self._node, self._node.run_file.spec
        submission = publication.signed.submission
        _, trace = await node.exchange.content(
            publication,
            "trace",
            await node.chain.validator_endpoints(),
            lambda data: read_trace(data, submission, spec),
        )
        return trace


def _around(what: Disputed, steps: int) -> list[int]:
    """The numbers of inner steps before and after what is disputed."""
    match what.part:
        case Part.START:
            return []
        case Part.STEP:
            return [what.step - 1, what.step]
        case Part.ENCODE:
            return [steps]


def _name(game: Game) -> str:
    return game.id.hex()[:8]
