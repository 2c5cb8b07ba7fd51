"""A validator's part in committees: recompute the disputed step, commit a vote, reveal it.

A vote stands in the journal before it is committed and its salt follows from the key, so a restarted
validator reveals what it committed.
"""

from __future__ import annotations

import logging

from ledger.contracts.committee import vote_commitment
from ledger.errors import Reverted
from ledger.event_types import VoteOpened
from node.game_chores import ballots_of
from node.games import Game, games_of
from node.node import Node
from protocol.errors import Rejected, Retryable
from protocol.hashing import keccak256
from protocol.ids import Hash32, Slot
from validator.behaviour import Behaviour
from validator.recomputation import NotServed, Recomputation

logger = logging.getLogger(__name__)

_VOTE = "vote"
_GUILTY, _NOT_GUILTY = b"\1", b"\0"


class Juror:
    """One validator's votes."""

    def __init__(self, node: Node, behaviour: Behaviour | None = None) -> None:
        self._node = node
        self._behaviour = behaviour or Behaviour()
        self._recomputation = Recomputation(node)

    @property
    def is_idle(self) -> bool:
        """Whether no game is open, and nobody who was outvoted has still to be fined."""
        events = self._node.chain.events
        outvoted = [
            ballot.to_fine(frozenset(ballot.revealed)) for ballot in ballots_of(events).values()
        ]
        return all(game.over for game in games_of(events)) and not any(outvoted)

    async def work(self) -> None:
        """Commits and reveals what is due, in every vote in which we have a seat. Not in a pause."""
        if self._node.chain.paused:
            return
        for vote, game in self._votes():
            snapshot = await self._node.chain.snapshot(vote.epoch)
            slot = snapshot.validator_slot(self._node.me)
            if slot is None:
                continue
            try:
                await self._act(vote, game, slot)
            except (Retryable, Rejected) as error:
                logger.info("vote %s: %s", _name(game), error)
            except Reverted as error:
                logger.warning("vote %s: refused by the contract: %s", _name(game), error)

    def close(self) -> None:
        """Stops the thread."""
        self._recomputation.close()

    def _votes(self) -> list[tuple[VoteOpened, Game]]:
        events = self._node.chain.events
        opened = events.events(VoteOpened)
        games = {game.id: game for game in games_of(events)} if opened else {}
        return [
            (vote, games[vote.game])
            for vote in opened
            if vote.game in games and games[vote.game].over is None
        ]

    async def _act(self, vote: VoteOpened, game: Game, slot: Slot) -> None:
        # What is sent now lands in a later block than the head.
        block = self._node.chain.run_block
        if block < vote.commit_deadline:
            await self._commit(vote, game)
        elif block < vote.reveal_deadline:
            await self._reveal(game, slot)

    async def _commit(self, vote: VoteOpened, game: Game) -> None:
        node, key = self._node, f"vote-commit/{game.id.hex()}"
        if node.outbox.known(key):
            return
        guilty = self._voted(game)
        if guilty is None:
            guilty = self._behaviour.vote(guilty=await self._find(vote, game))
            body = _GUILTY if guilty else _NOT_GUILTY
            node.journal.sign_once(_VOTE, game.id.hex(), Hash32(keccak256(body)), body)
        commitment = vote_commitment(
            run=node.run_file.run,
            game=game.id,
            account=node.me,
            guilty=guilty,
            salt=self._salt(game),
        )
        await node.outbox.send(
            node.chain.contracts.committee.commit_vote_call(game.id, commitment), key
        )
        logger.info("vote %s: committed", _name(game))

    async def _find(self, vote: VoteOpened, game: Game) -> bool:
        """Guilty or not; a state that is not served for half of the time to commit counts as none."""
        window = self._node.run_file.spec.chain.vote_commit_blocks
        try:
            return await self._recomputation.is_guilty(game)
        except NotServed as error:
            if self._node.chain.run_block < vote.commit_deadline - window // 2:
                raise
            logger.warning("vote %s: guilty: %s", _name(game), error)
            return True

    async def _reveal(self, game: Game, slot: Slot) -> None:
        node, key = self._node, f"vote-reveal/{game.id.hex()}"
        guilty = self._voted(game)
        committed = node.outbox.known(f"vote-commit/{game.id.hex()}")
        if guilty is None or not committed or node.outbox.known(key):
            return
        call = node.chain.contracts.committee.reveal_vote_call(
            game.id, slot, guilty=guilty, salt=self._salt(game)
        )
        await node.outbox.send(call, key)
        logger.info("vote %s: revealed %s", _name(game), "guilty" if guilty else "not guilty")

    def _voted(self, game: Game) -> bool | None:
        body = self._node.journal.signed(_VOTE, game.id.hex())
        return None if body is None else body == _GUILTY

    def _salt(self, game: Game) -> Hash32:
        """Secret and repeatable: the hash of a signature that nobody else can make."""
        message = keccak256(keccak256(b"syntience.vote.salt.v1") + game.id)
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))


def _name(game: Game) -> str:
    return game.id.hex()[:8]
