"""Drawing bounties: each waits until nobody can win it with an earlier challenge any more, and then anyone may have it paid."""

from __future__ import annotations

import logging

from ledger.event_types import BountyMoved, BountyPaid, Convicted
from node.node import Node
from protocol.ids import Address, Round

logger = logging.getLogger(__name__)


class Bounties:
    """One hunter's bounties."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def is_idle(self) -> bool:
        """Whether none is waiting."""
        return not self._waiting()

    async def work(self) -> None:
        """Has those paid whose time has come. Not in a pause."""
        node = self._node
        if node.chain.paused:
            return
        verdicts = node.chain.contracts.verdicts
        for offender, round_ in self._waiting():
            key = f"pay-bounty/{offender}/{round_}"
            if node.outbox.known(key):
                continue
            verdict = await verdicts.verdict_of(offender, round_)
            if verdict is not None and verdict.payable_after < node.chain.run_block:
                await node.outbox.send(verdicts.pay_bounty_call(offender, round_), key)
                logger.info("round %d: drawing the bounty for %s", round_, offender)

    def _waiting(self) -> list[tuple[Address, Round]]:
        """Verdicts whose bounty is held for us."""
        events = self._node.chain.events
        told: list[Convicted | BountyMoved] = [
            *events.events(Convicted),
            *events.events(BountyMoved),
        ]
        told.sort(key=lambda event: (event.block, event.log_index))
        winners = {
            (event.offender, event.round): event.hunter
            for event in told
            if isinstance(event, BountyMoved) or event.bounty
        }
        paid = {(event.offender, event.round) for event in events.events(BountyPaid)}
        mine = self._node.signer.address
        return [place for place, hunter in winners.items() if hunter == mine and place not in paid]
