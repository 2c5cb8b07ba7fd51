"""The challenger's side of games about computations.

A charge goes from the bonded commitment over the opening and the picks to the judge. What is sent
follows from the journal and the chain alone, so a hunter killed anywhere goes on where it was, and a
reorganisation that takes a move back changes nothing but the block in which it lands.
"""

from __future__ import annotations

import logging

from hunter.behaviour import Behaviour
from hunter.charges import Charge, ChargeBook
from ledger.contracts.disputes import GameOutcome, Turn
from ledger.contracts.token import UNLIMITED
from ledger.errors import Reverted
from ledger.event_types import VoteOpened
from node.games import Game, games_of, nodes_below, posted_list, siblings_up
from node.node import Node
from protocol.hashing import abi_words, keccak256
from protocol.ids import Hash32

logger = logging.getLogger(__name__)

_OTHERS_BLOCKS = 5
"""So long the validators have for what anyone may send: they are refunded for it."""


class Accuser:
    """One hunter's games."""

    def __init__(self, node: Node, behaviour: Behaviour) -> None:
        self._node = node
        self._behaviour = behaviour
        self._charges = ChargeBook(node.journal)

    @property
    def opened(self) -> int:
        """How many charges there are and were."""
        return self._charges.count()

    @property
    def is_idle(self) -> bool:
        """Whether no charge is open."""
        return not self._charges.open_charges()

    def accuse(self, charge: Charge) -> None:
        """Takes up a charge, durably; one at a time against a miner: the first verdict excludes it."""
        accused = {each.signed.submission.miner for each in self._charges.open_charges()}
        if charge.signed.submission.miner not in accused and self._charges.add(charge):
            logger.warning("charge %s: opening a game", charge.key)

    async def work(self) -> None:
        """Takes every charge one step further. Not in a pause."""
        if self._node.chain.paused:
            return
        games = games_of(self._node.chain.events) if not self.is_idle else []
        for charge in self._charges.open_charges():
            game = self._game_about(charge, games)
            try:
                if game is None:
                    await self._open(charge)
                elif game.over is None:
                    await self._play(charge, game)
                else:
                    await self._close(charge, game.over.outcome)
            except Reverted as error:
                logger.warning("charge %s: refused by the contract: %s", charge.key, error)
                if game is None:
                    self._charges.close(charge)

    async def _open(self, charge: Charge) -> None:
        node = self._node
        disputes, outbox = node.chain.contracts.disputes, node.outbox
        if not outbox.known("approve/disputes"):
            token = node.chain.contracts.token
            await outbox.submit(token.approve_call(disputes.address, UNLIMITED), "approve/disputes")
        salt = self._salt(charge)
        commitment = disputes.commitment(node.signer.address, charge.signed, salt)
        receipt = await outbox.submit(
            disputes.commit_challenge_call(commitment), f"dispute/{charge.key}"
        )
        if node.chain.block > receipt.block:
            call = disputes.open_game_call(salt, charge.signed)
            await outbox.submit(call, f"open-game/{charge.key}")
            logger.warning("charge %s: the game is open", charge.key)

    async def _play(self, charge: Charge, game: Game) -> None:
        node = self._node
        disputes, block = node.chain.contracts.disputes, node.chain.run_block
        match game.turn:
            case Turn.CHALLENGER_PICKS:
                await self._pick(charge, game)
            case Turn.CHALLENGER_PROVES:
                await node.outbox.send(
                    disputes.decide_call(game.id, game.position), f"decide/{game.id.hex()}"
                )
            case Turn.JUDGE_DECIDES:
                deadline = self._vote_ends(game)
                if deadline is not None and block > deadline + _OTHERS_BLOCKS:
                    await node.outbox.send(
                        disputes.decide_call(game.id, game.position), f"close/{game.id.hex()}"
                    )
            case Turn.DEFENDANT_POSTS | Turn.DEFENDANT_ENTERS:
                if block > game.last_block + _OTHERS_BLOCKS:
                    await node.outbox.send(
                        disputes.resolve_timeout_call(game.id, game.position),
                        f"timeout/{game.id.hex()}",
                    )

    async def _pick(self, charge: Charge, game: Game) -> None:
        node, position = self._node, game.position
        posted = posted_list(node.chain.events, position)
        if posted is None:
            return
        tree = charge.mine.level(position, node.run_file.spec.inner)
        place = self._behaviour.pick(nodes_below(tree, position), posted)
        if place is None:
            logger.error("charge %s: nothing differs where the game stands", charge.key)
            return
        call = node.chain.contracts.disputes.pick_call(
            game.id,
            position,
            child=place,
            node=posted[place],
            siblings=siblings_up(posted, place),
        )
        key = f"pick/{game.id.hex()}/{position.level}/{position.depth}"
        await node.outbox.send(call, key)
        logger.info("charge %s: level %d, picked %d", charge.key, position.level, place)

    async def _close(self, charge: Charge, outcome: GameOutcome) -> None:
        """Takes back what of the bond is ours."""
        node = self._node
        disputes = node.chain.contracts.disputes
        free, key = await disputes.free_bond(node.signer.address), f"withdraw-bond/{charge.key}"
        if free and not node.outbox.known(key):
            await node.outbox.submit(disputes.withdraw_bond_call(free), key)
        logger.warning("charge %s: %s", charge.key, outcome.name.lower().replace("_", " "))
        self._charges.close(charge)

    def _game_about(self, charge: Charge, games: list[Game]) -> Game | None:
        claim = charge.signed.submission.digest(self._node.run_file.domain)
        mine = self._node.signer.address
        return next(
            (game for game in games if game.position.claim == claim and game.challenger == mine),
            None,
        )

    def _vote_ends(self, game: Game) -> int | None:
        votes = self._node.chain.events.events(VoteOpened)
        return next((vote.reveal_deadline for vote in votes if vote.game == game.id), None)

    def _salt(self, charge: Charge) -> Hash32:
        """Secret and repeatable, so that a restarted hunter opens what it committed."""
        message = keccak256(
            b"syntience.dispute.salt.v1" + abi_words(keccak256(charge.key.encode()))
        )
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))
