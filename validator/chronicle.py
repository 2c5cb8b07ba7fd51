"""Keeps the public data ledger: every event of the run, and who disclosed which four hashes.

A file that anyone can copy, rebuild from the chain and check to the byte; nothing depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ledger.datalog import DataLog
from node.follower import Step
from node.node import Node
from protocol.errors import Rejected
from protocol.submission import SignedSubmission

FOLDER = "ledger"
FINAL_DEPTH = 12
"""Blocks after which no reorganisation is expected to reach an event."""


class Chronicle:
    """One validator's copy of the public data ledger, in its state folder."""

    def __init__(self, node: Node) -> None:
        self._node = node
        run_file = node.run_file
        folder = node.config.state_dir / FOLDER
        self._log = DataLog(folder, run=run_file.run, domain=run_file.domain)
        self._waiting: list[SignedSubmission] = []
        self._block = 0

    async def keep(self, steps: Sequence[Step]) -> None:
        """Catches up with final blocks, and discloses what was committed in concluded rounds."""
        for step in steps:
            roster = await self._node.chain.roster(step.outcome.round)
            committed = self._node.exchange.committed(roster) if roster is not None else {}
            self._waiting += [publication.signed for publication in committed.values()]
        if self._node.chain.block == self._block:
            return
        self._block = self._node.chain.block
        upto = self._node.chain.events.complete_upto - FINAL_DEPTH
        await asyncio.to_thread(self._log.follow, self._node.chain.events.store, upto=upto)
        self._waiting = [signed for signed in self._waiting if not self._disclose(signed)]

    def _disclose(self, signed: SignedSubmission) -> bool:
        """Whether the submission is in the ledger; not before its commit is."""
        try:
            self._log.disclose(signed)
        except Rejected:
            return False
        return True
