"""What a running node measures of itself, for whoever watches its metrics."""

from __future__ import annotations

import asyncio
import logging

from ledger.contracts.registry import Role
from node.node import Node
from protocol.errors import Rejected, Retryable
from protocol.ids import Epoch, Round
from protocol.ports import Metrics
from scoring.report import RoundReport, value_of
from validator.shelf import REPORT, parse_locator, round_topic

EVERY_S = 2.0
_PREFIX_BYTES = 6
"""A gauge is a double: it holds the first 48 bits of a root exactly, enough to see that two nodes agree."""

_ROUNDS_BACK = 4

logger = logging.getLogger(__name__)


async def watch(node: Node, metrics: Metrics, role: Role) -> None:
    """Keeps the gauges up to date, and says in each epoch whether there is a slot to work in, until cancelled."""
    told = Epoch(0)
    while True:
        measure(node, metrics)
        if role is not Role.NONE and node.chain.epoch > told:
            try:
                await _tell_slot(node, metrics, role)
                told = node.chain.epoch
            except Retryable as error:
                logger.debug("slot of %s: %s", node.me, error)
        await asyncio.sleep(EVERY_S)


async def _tell_slot(node: Node, metrics: Metrics, role: Role) -> None:
    epoch = node.chain.epoch
    snapshot = await node.chain.snapshot(epoch)
    find = snapshot.miner_slot if role is Role.MINER else snapshot.validator_slot
    slot = find(node.me)
    metrics.gauge("has_slot", slot is not None)
    if slot is None:
        logger.warning(
            "epoch %d: %s holds no slot; see `syntience status`",
            epoch,
            node.me,
            extra={"epoch": epoch},
        )
    else:
        logger.info("epoch %d: slot %d", epoch, slot, extra={"epoch": epoch, "slot": slot})


def measure(node: Node, metrics: Metrics) -> None:
    """Sets the gauges to what the node knows now."""
    chain, follower = node.chain, node.follower
    metrics.gauge("block", chain.block)
    metrics.gauge("chain_time_seconds", chain.time)
    metrics.gauge("paused", chain.paused)
    metrics.gauge("round", chain.round)
    metrics.gauge("epoch", chain.epoch)
    metrics.gauge("head_round", follower.head)
    metrics.gauge("head_root_prefix", int.from_bytes(follower.root[:_PREFIX_BYTES], "big"))
    metrics.gauge("settled_epochs", len(chain.settled()))
    metrics.gauge("outbox_waiting", node.outbox.waiting())
    loss = _newest_loss(node)
    if loss is not None:
        metrics.gauge("heldout_loss", loss)


def _newest_loss(node: Node) -> float | None:
    """What this node, as a validator, last reported; scoring may lag a little behind the head."""
    for round_ in range(node.follower.head - 1, node.follower.head - _ROUNDS_BACK, -1):
        for record in node.board.get(round_topic(Round(round_)), node.me):
            try:
                data = node.store.get(parse_locator(record)[REPORT].digest)
                if data is not None:
                    return value_of(RoundReport.from_bytes(data).heldout_loss)
            except Rejected as error:
                logger.debug("own report of round %d: %s", round_, error)
    return None
