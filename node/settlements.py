"""The settlement of each epoch, recomputed from what the chain shows.

Anyone with the events can: that is how a poster builds a settlement, how everybody else checks it,
and how an account finds the leaf that it claims with.
"""

from __future__ import annotations

import logging

from ledger.event_types import SettlementFinalised, SettlementPosted
from node.chain import RunChain
from protocol.ids import Address, Epoch, Hash32, Units
from protocol.settlement import SettlementLeaf, SettlementTree
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle

logger = logging.getLogger(__name__)


class Settlements:
    """Trees by epoch; those of final epochs are kept."""

    def __init__(self, chain: RunChain, *, miners_bps: int) -> None:
        self._chain = chain
        self._miners_bps = miners_bps
        self._final: dict[Epoch, tuple[Hash32, SettlementTree | None]] = {}

    async def final(self, epoch: Epoch) -> SettlementTree | None:
        """The tree of a final epoch; None if it is not final, or not what the reveals say.

        A tree whose root is not the final one was settled wrongly, unchallenged: its leaves are
        known to its poster alone.
        """
        root = self._chain.settled().get(epoch)
        if root is None:
            return None
        known = self._final.get(epoch)
        if known is not None and known[0] == root:
            return known[1]
        tree = await self.build(epoch, self._pot_of(epoch))
        if tree is None or tree.root.hash != root:
            logger.error("epoch %d was settled with another root than its reveals give", epoch)
            tree = None
        self._final[epoch] = (root, tree)
        return tree

    async def build(self, epoch: Epoch, pot: Units) -> SettlementTree | None:
        """The tree that the revealed weights of an epoch give; None without a quorum of reveals."""
        snapshot = await self._chain.snapshot(epoch)
        return settle(
            EpochFacts(
                epoch=epoch,
                miners=snapshot.miner_accounts,
                validators={
                    slot: ValidatorSeat(account=holder.account, stake=holder.stake)
                    for slot, holder in snapshot.validators.items()
                },
                reveals={each.slot: each.weights for each in await self._chain.reveals(epoch)},
                pot=pot,
                miners_bps=self._miners_bps,
                earlier=await self._earlier(epoch),
            )
        )

    async def newest_leaf(self, account: Address) -> tuple[Epoch, SettlementLeaf] | None:
        """An account's leaf in the last final epoch in which it has one."""
        for epoch in sorted(self._chain.settled(), reverse=True):
            tree = await self.final(epoch)
            for leaf in tree.leaves.values() if tree else ():
                if leaf.account == account:
                    return epoch, leaf
        return None

    async def _earlier(self, epoch: Epoch) -> dict[Address, EarlierLeaf]:
        earlier: dict[Address, EarlierLeaf] = {}
        for before in sorted(self._chain.settled()):
            if before >= epoch:
                break
            tree = await self.final(before)
            for leaf in tree.leaves.values() if tree else ():
                earlier[leaf.account] = EarlierLeaf(epoch=before, cumulative=leaf.cumulative)
        return earlier

    def _pot_of(self, epoch: Epoch) -> Units:
        """The pot that the final post of an epoch was made for."""
        final = self._chain.events.events(SettlementFinalised, epoch=epoch)[-1]
        posts = [
            post
            for post in self._chain.events.events(SettlementPosted, epoch=epoch)
            if (post.block, post.log_index) < (final.block, final.log_index)
        ]
        return posts[-1].pot
