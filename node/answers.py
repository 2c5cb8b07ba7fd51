"""Serves on chain what was vouched for: answers the open data requests whose turn is ours, from our own blobs.

Killed and restarted, a node finds the open requests in the events and its answers in the outbox, so it neither misses one
nor sends one twice.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial

from ledger.contracts.requests import Item, ItemKind, Opening
from ledger.errors import Reverted
from ledger.event_types import BalanceWithdrawn, ItemAnswered
from ledger.transactions import Call
from node.chain import Snapshot
from node.errors import MissingPayload
from node.node import Node
from node.openings import BLOB_OF, Opener, opener
from node.requests import OpenRequest, Turn, open_requests, turn_to_answer
from protocol.errors import Rejected, Retryable
from protocol.ids import Address, Hash32
from protocol.submission import Publication

logger = logging.getLogger(__name__)

_GAS, _GAS_PER_BYTE = 400_000, 80
"""Far above what an answer takes. In our turn nobody can spoil it, so an estimate would tell nothing and cost a block."""

_OPENERS_KEPT = 4
"""They hold the blobs in memory."""


class Answerer:
    """What a validator owes on chain, and what a miner may show of its own work."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._openers: dict[tuple[Hash32, ItemKind], Opener] = {}

    async def work(self) -> None:
        """Answers what is ours to answer now, and withdraws what that earned; not in a pause."""
        node = self._node
        if node.chain.paused:
            return
        pending = open_requests(node.chain.events)
        if pending:
            block = await node.chain.contracts.epochs.run_block()
            for request in pending:
                await self._consider(request, block)
        await self._withdraw()

    async def _consider(self, request: OpenRequest, block: int) -> None:
        node, item = self._node, request.item
        snapshot = await node.chain.snapshot(node.chain.clock.epoch_of(item.round))
        slot, miner = snapshot.validator_slot(node.me), _miner_of(item, snapshot)
        if slot is None and miner != node.me:
            return
        turn_blocks = node.run_file.spec.chain.answer_turn_blocks
        turn = turn_to_answer(request, block=block, turn_blocks=turn_blocks, slot=slot)
        if turn is None or miner is None:
            return
        key = f"answer/{request.id.hex()}/{turn.number}"
        if node.outbox.known(key):
            return
        try:
            await node.outbox.send(await self._call(item, miner, turn), key)
            logger.info("answered on chain: %s", described(item))
        except Reverted as error:
            logger.info("%s: %s", described(item), error)
        except (Retryable, Rejected) as error:
            logger.warning("can't answer for %s: %s", described(item), error)

    async def _call(self, item: Item, miner: Address, turn: Turn) -> Call:
        publication = await find_publication(self._node, item, miner)
        opening = await self._opening(publication, item)
        submission = publication.signed.submission
        call = self._node.chain.contracts.requests.answer_call(item, submission, opening)
        if turn.slot is None:
            return call
        return replace(call, gas=_GAS + _GAS_PER_BYTE * len(call.data))

    async def _opening(self, publication: Publication, item: Item) -> Opening:
        node, signed = self._node, publication.signed
        if item.kind is ItemKind.SUBMISSION:
            return Opening(position=0, content=signed.signature)
        key = (item.digest, item.kind)
        if key not in self._openers:
            read = partial(opener, item.kind, signed.submission, node.run_file.spec)
            mirrors = await node.chain.validator_endpoints(without=node.me)
            kind = BLOB_OF[item.kind]
            _, found = await node.exchange.content(publication, kind, mirrors, read)
            while len(self._openers) >= _OPENERS_KEPT:
                del self._openers[next(iter(self._openers))]
            self._openers[key] = found
        return await asyncio.to_thread(self._openers[key], item.index)

    async def _withdraw(self) -> None:
        """Once an epoch at most."""
        node = self._node
        events = node.chain.events
        earned = sum(event.fee for event in events.events(ItemAnswered) if event.paid == node.me)
        paid = sum(event.amount for event in events.events(BalanceWithdrawn, account=node.me))
        key = f"withdraw-answers/{node.chain.epoch}"
        if earned > paid and not node.outbox.known(key):
            await node.outbox.send(node.chain.contracts.requests.withdraw_call(node.me), key)


async def find_publication(node: Node, item: Item, miner: Address) -> Publication:
    """The submission that an item belongs to, from our board or from other validators.

    Raises:
        MissingPayload: nobody has it just now.
    """
    roster = await node.chain.roster(item.round)
    found = None
    if roster is not None:
        found = _known(node, item, miner)
        if found is None:
            node.exchange.reload(roster)
            found = _known(node, item, miner)
        if found is None:
            await node.exchange.pull(roster, await node.chain.validator_endpoints(without=node.me))
            found = _known(node, item, miner)
    if found is None:
        raise MissingPayload(f"nobody has the submission {item.digest.hex()[:16]} just now")
    return found


def described(item: Item) -> str:
    """An item in words."""
    return f"{item.kind.name.lower()} leaf {item.index} of miner slot {item.miner} in round {item.round}"


def _known(node: Node, item: Item, miner: Address) -> Publication | None:
    return node.exchange.versions(item.round).get(miner, {}).get(item.digest)


def _miner_of(item: Item, snapshot: Snapshot) -> Address | None:
    holder = snapshot.miners.get(item.miner)
    return None if holder is None else holder.account
