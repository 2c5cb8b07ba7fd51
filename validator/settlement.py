"""Settling an epoch: posting in turn, checking what others post, answering for it.

Several posts may stand side by side. One that is not what the revealed weights give is challenged,
leaf by leaf, until its poster can't open one; the right one is posted beside it. A challenge of a
right root is answered by anyone who can: the opening proves itself.
"""

from __future__ import annotations

import logging

from ledger.contracts.rewards import CellNode, Opening, Post, WeightsOpening
from ledger.contracts.token import UNLIMITED
from ledger.errors import Reverted
from ledger.event_types import (
    LeafChallenged,
    LeafOpened,
    PostClosed,
    SettlementFinalised,
    SettlementPosted,
    SettlementStruck,
    WeightsRevealed,
)
from node.caretaker import TURN_S
from node.chores import Chore, ChoreKind, my_turn
from node.node import Node
from protocol.hashing import keccak256
from protocol.ids import ZERO32, ZERO_ADDRESS, Epoch, Hash32, Slot, Units
from protocol.settlement import MAX_MINERS, CellTree, SettlementLeaf, SettlementTree, SumNode
from scoring.consensus import agreement, consensus_weights
from validator.behaviour import Behaviour

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 512
_MINERS_PER_CHUNK = _CHUNK_BYTES // 2
_HASTY_GAS = 1_000_000
"""Far above what a post takes: it can't be estimated before its time has come."""


class Settler:
    """One validator's part in settlements."""

    def __init__(self, node: Node, behaviour: Behaviour | None = None) -> None:
        self._node = node
        self._behaviour = behaviour or Behaviour()
        self._taken_back: set[str] = set()

    async def work(self) -> None:
        """Posts, checks, challenges and opens whatever is due."""
        node = self._node
        rewards = node.chain.contracts.rewards
        epoch = await rewards.next_epoch()
        await self._collect(epoch)
        await self._take_back()
        if node.chain.time > node.chain.clock.epoch_end(epoch):
            # Before it is our turn to post: a first post would else come blocks after its time.
            await self._approve()
        wait_s = 0 if self._behaviour.is_hasty else 1
        if node.chain.time < node.chain.clock.weight_reveal_deadline(epoch) + wait_s:
            return
        posts = await rewards.standing_posts()
        pot = posts[0].pot if posts else await rewards.pot_of(epoch)
        tree = await node.settlements.build(epoch, pot)
        if tree is None:
            return
        if all(post.root != tree.root.hash for post in posts):
            await self._post(epoch, tree)
        for post in posts:
            ours = post.poster == node.signer.address
            shown = self._behaviour.settlement(tree, node.me) if ours else tree
            if post.root == shown.root.hash:
                await self._answer(post, shown)
            else:
                await self._challenge(post, tree)

    async def _post(self, epoch: Epoch, tree: SettlementTree) -> None:
        node, chain = self._node, self._node.chain
        if chain.time > chain.clock.settlement_void_at(epoch):
            return
        struck = chain.events.events(SettlementStruck, epoch=epoch)
        chore = Chore(
            kind=ChoreKind.POST_SETTLEMENT,
            number=epoch,
            attempt=len(struck),
            opened=chain.clock.weight_reveal_deadline(epoch),
        )
        if node.outbox.known(chore.key) or not await self._is_our_turn(chore):
            return
        tree = self._behaviour.settlement(tree, node.me)
        await self._approve()
        call = chain.contracts.rewards.post_settlement_call(
            epoch, miners=tree.miners, validators=tree.validators
        )
        if self._behaviour.is_hasty:
            latest = chain.block_time_of(chain.clock.settlement_void_at(epoch))
            call = call.within(latest, gas=_HASTY_GAS)
        await node.outbox.send(call, chore.key)
        logger.info("epoch %d: posted the settlement, root %s", epoch, tree.root.hash.hex()[:16])

    async def _is_our_turn(self, chore: Chore) -> bool:
        """Whether to post now; who is hasty goes first once, and leaves the rest to others."""
        node, chain = self._node, self._node.chain
        if self._behaviour.is_hasty:
            return chore.attempt == 0
        snapshot = await chain.snapshot(Epoch(max(1, chain.epoch)))
        return my_turn(
            chore,
            time=chain.time,
            me=node.me,
            validators=[holder.account for holder in snapshot.validators.values()],
            seed=node.run_file.run,
            turn_s=max(TURN_S, node.run_file.spec.chain.settlement_turn_s),
        )

    async def _challenge(self, post: Post, tree: SettlementTree) -> None:
        """Challenges the next leaf of a half that differs; one of each post at a time."""
        node, chain = self._node, self._node.chain
        if post.poster is None or post.open_challenges or chain.time > post.window_ends:
            return
        posts = chain.events.events(SettlementPosted, epoch=post.epoch)
        posted = next((each for each in posts if each.attempt == post.attempt), None)
        if posted is None:
            return
        tried = {
            (event.index, event.cell)
            for event in chain.events.events(LeafChallenged, epoch=post.epoch)
            if event.attempt == post.attempt
        }
        miners_differ = posted.miners != tree.miners
        poster = await chain.contracts.registry.account_of_operator(post.poster)
        candidates = [
            (leaf.index, cell)
            # Whoever posts a false settlement most likely pays itself.
            for leaf in sorted(tree.leaves.values(), key=lambda leaf: leaf.account != poster)
            if (leaf.index < MAX_MINERS) == miners_differ
            for cell in ([0] if miners_differ else [i for i in tree.leaves if i < MAX_MINERS])
        ]
        for index, cell in candidates:
            key = f"challenge-leaf/{post.epoch}/{post.attempt}/{index}/{cell}"
            if (index, cell) in tried:
                continue
            if node.outbox.known(key):
                return  # on its way
            await self._approve()
            call = chain.contracts.rewards.challenge_leaf_call(
                post.epoch, attempt=post.attempt, index=index, cell=cell
            )
            await node.outbox.send(call, key)
            logger.warning("epoch %d: challenged leaf %d of a wrong settlement", post.epoch, index)
            return

    async def _take_back(self) -> None:
        """Takes back our bonds of posts that are gone: of a right one beside the final one, and of challenges."""
        node, events = self._node, self._node.chain.events
        rewards = node.chain.contracts.rewards
        final = node.chain.settled()
        gone = self._gone()
        for posted in events.events(SettlementPosted):
            place = (posted.epoch, posted.attempt)
            key = f"close-post/{posted.epoch}/{posted.attempt}"
            if posted.poster != node.signer.address or place in gone or posted.epoch not in final:
                continue
            post = await rewards.post_of(*place) if not node.outbox.known(key) else None
            if post is not None and post.root == final[posted.epoch]:
                await node.outbox.send(rewards.close_post_call(*place), key)
        mine = {
            f"release/{event.epoch}/{event.attempt}/{event.index}/{event.cell}": event
            for event in events.events(LeafChallenged)
            if event.challenger == node.signer.address and (event.epoch, event.attempt) in gone
        }
        for key in mine.keys() - self._taken_back:
            event = mine[key]
            details = {"attempt": event.attempt, "index": event.index, "cell": event.cell}
            challenge = await rewards.challenge_of(event.epoch, **details)
            fell = gone[event.epoch, event.attempt]
            if challenge is not None and not challenge.closed and (challenge.open or fell):
                call = rewards.release_challenge_call(event.epoch, **details)
                await node.outbox.send(call, key)
            self._taken_back.add(key)

    def _gone(self) -> dict[tuple[Epoch, int], bool]:
        """The posts that stand no more, and whether they fell; the bonds of challenges that a right one answered are its."""
        events = self._node.chain.events
        struck = {(event.epoch, event.attempt): True for event in events.events(SettlementStruck)}
        final = {
            (event.epoch, event.attempt): False for event in events.events(SettlementFinalised)
        }
        closed = {
            (event.epoch, event.attempt): event.burned > 0 for event in events.events(PostClosed)
        }
        return struck | final | closed

    async def _answer(self, post: Post, tree: SettlementTree) -> None:
        """Opens challenged leaves of a root that is right."""
        node, chain = self._node, self._node.chain
        opened = {
            (event.index, event.cell)
            for event in chain.events.events(LeafOpened, epoch=post.epoch)
            if event.attempt == post.attempt
        }
        for event in chain.events.events(LeafChallenged, epoch=post.epoch):
            key = f"open-leaf/{post.epoch}/{post.attempt}/{event.index}/{event.cell}"
            if (
                event.attempt != post.attempt
                or (event.index, event.cell) in opened
                or node.outbox.known(key)
            ):
                continue
            opening = await self._opening(post.epoch, tree, event.index, Slot(event.cell))
            call = chain.contracts.rewards.open_leaf_call(
                post.epoch,
                attempt=post.attempt,
                index=event.index,
                cell=event.cell,
                opening=opening,
            )
            try:
                await node.outbox.send(call, key)
                logger.info("epoch %d: opened leaf %d", post.epoch, event.index)
            except Reverted as error:
                logger.info("epoch %d: leaf %d: %s", post.epoch, event.index, error)

    async def _opening(self, epoch: Epoch, tree: SettlementTree, index: int, cell: Slot) -> Opening:
        chain = self._node.chain
        leaf = tree.leaves.get(index)
        before = await self._node.settlements.final(leaf.prev_epoch) if leaf else None
        prev_leaf = _empty_leaf(0)
        prev_siblings: tuple[SumNode, ...] = ()
        if leaf is not None and before is not None:
            prev_leaf = next(
                each for each in before.leaves.values() if each.account == leaf.account
            )
            prev_siblings = before.proof(prev_leaf.index)
        reveals = await chain.reveals(epoch)
        miner_slot = Slot(index) if index < MAX_MINERS else cell
        cell_value = 0
        cell_siblings: tuple[CellNode, ...] = ()
        mine = [each for each in reveals if index == MAX_MINERS + each.slot]
        if mine:
            snapshot = await chain.snapshot(epoch)
            values = agreement(mine[0], consensus_weights(reveals), snapshot.miners)
            cell_value = values.get(cell, 0)
            cell_siblings = tuple(
                CellNode(hash=Hash32(hash_), sum=total)
                for hash_, total in CellTree(values).proof(cell)
            )
        vectors = {
            event.slot: event.weights for event in chain.events.events(WeightsRevealed, epoch=epoch)
        }
        return Opening(
            leaf=leaf or _empty_leaf(index),
            siblings=tree.proof(index),
            prev_leaf=prev_leaf,
            prev_siblings=prev_siblings,
            cell_value=cell_value,
            cell_siblings=cell_siblings,
            weights=tuple(_weights_opening(vectors[slot], miner_slot) for slot in sorted(vectors)),
        )

    async def _collect(self, next_epoch: Epoch) -> None:
        """Draws released bonds and chore refunds, once per settled epoch."""
        node = self._node
        rewards, sender = node.chain.contracts.rewards, node.signer.address
        settled = Epoch(next_epoch - 1)
        key = f"collect/{settled}"
        final = node.chain.events.events(SettlementFinalised, epoch=settled)
        if not final or node.journal.noted(key) is not None:
            return
        if await rewards.bonds_of(sender):
            await node.outbox.send(rewards.withdraw_bonds_call(sender), f"withdraw-bonds/{settled}")
        if await rewards.refunds_of(sender):
            await node.outbox.send(
                rewards.withdraw_refunds_call(sender), f"withdraw-refunds/{settled}"
            )
        node.journal.note(key, b"done")

    async def _approve(self) -> None:
        """Lets the distributor take bonds from the operator key, once for ever."""
        token, rewards = self._node.chain.contracts.token, self._node.run_file.contracts.rewards
        if not self._node.outbox.known("approve/rewards"):
            await self._node.outbox.submit(
                token.approve_call(rewards, UNLIMITED), "approve/rewards"
            )


def _empty_leaf(index: int) -> SettlementLeaf:
    return SettlementLeaf(
        index=index,
        account=ZERO_ADDRESS,
        w=0,
        amount=Units(0),
        cumulative=Units(0),
        prev_epoch=Epoch(0),
        cells=ZERO32,
    )


def _weights_opening(weights: bytes, miner: Slot) -> WeightsOpening:
    chunks = [weights[i : i + _CHUNK_BYTES] for i in range(0, len(weights), _CHUNK_BYTES)]
    place = miner // _MINERS_PER_CHUNK
    return WeightsOpening(
        chunk=chunks[place] if place < len(chunks) else b"",
        chunk_hashes=tuple(Hash32(keccak256(chunk)) for chunk in chunks),
    )
