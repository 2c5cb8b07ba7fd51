"""Claims what an account earned, once per settled epoch at most."""

from __future__ import annotations

import logging

from ledger.event_types import Claimed
from node.node import Node

logger = logging.getLogger(__name__)


async def claim_rewards(node: Node, *, send: bool = True) -> bool:
    """Claims everything that the node's account has earned and not been paid.

    Args:
        node: whose account, and whose outbox.
        send: False only looks.

    Returns:
        Whether something was still to be paid.
    """
    newest = await node.settlements.newest_leaf(node.me)
    if newest is None:
        return False
    epoch, leaf = newest
    claimed = node.chain.events.events(Claimed, account=node.me)
    if leaf.cumulative <= sum(event.amount for event in claimed):
        return False
    key = f"claim/{epoch}"
    if send and not node.outbox.known(key):
        tree = await node.settlements.final(epoch)
        if tree is not None:
            proof = tree.proof(leaf.index)
            await node.outbox.send(node.chain.contracts.rewards.claim_call(epoch, leaf, proof), key)
            logger.info("epoch %d: claiming up to %d", epoch, leaf.cumulative)
    return True
