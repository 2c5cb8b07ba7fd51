"""The hunter's process: collects what was signed, looks for frauds, proves them, is paid."""

from __future__ import annotations

import logging

from hunter.accuser import Accuser
from hunter.audit import Auditor
from hunter.behaviour import Behaviour
from hunter.bounties import Bounties
from hunter.cases import CaseBook
from hunter.prosecutor import Prosecutor
from hunter.search import Search
from hunter.withheld import Seeker
from ledger.errors import Reverted
from node.follower import Step
from node.node import Node
from protocol.errors import Rejected, Retryable
from protocol.ids import Epoch

logger = logging.getLogger(__name__)


class Hunter:
    """One hunter of one run.

    Args:
        node: its open node; its signer holds the bonds and gets the bounties.
        behaviour: whom it takes to a game; nobody by default.
        last_epoch: it stops when this epoch is settled; None never.
    """

    def __init__(
        self, node: Node, behaviour: Behaviour | None = None, *, last_epoch: Epoch | None = None
    ) -> None:
        self._node = node
        self._behaviour = behaviour or Behaviour()
        self._last_epoch = last_epoch
        self._cases = CaseBook(node.journal)
        self._search = Search(node, self._cases)
        self._seeker = Seeker(node)
        self._prosecutor = Prosecutor(node, self._cases)
        self._bounties = Bounties(node)
        self._auditor = Auditor(node, count=self._behaviour.audits)
        self._accuser = Accuser(node, self._behaviour)

    async def run(self) -> None:
        """Hunts until cancelled; or until `last_epoch` is settled and all is proven and paid, and then takes its bonds back."""
        try:
            while not await self._is_done():
                await self.step()
                await self._node.wait()
        finally:
            self.close()

    def close(self) -> None:
        """Stops what `step` leaves running."""
        self._auditor.close()

    async def step(self) -> None:
        """Catches up with the chain and does what there is to do now; what failed is tried again."""
        concluded = await self._node.tick()
        for work in (
            self._search.look,
            self._seek,
            self._prosecutor.prosecute,
            self._accuser.work,
            self._bounties.work,
        ):
            try:
                await work()
            except (Retryable, Rejected) as error:
                logger.warning("%s", error)
            except Reverted as error:
                logger.warning("refused by the contract: %s", error)
        await self._audit(concluded)

    async def _seek(self) -> None:
        """Asks on chain for what is withheld, and reads what was answered."""
        await self._seeker.work()
        for evidence in self._seeker.evidence():
            self._search.open_case(evidence)

    async def _audit(self, steps: list[Step]) -> None:
        for step in steps:
            async for audit in self._auditor.audit(step):
                matches, charge = audit.finding.matches, audit.charge
                if charge is not None and self._behaviour.accuses(
                    matches=matches, games=self._accuser.opened
                ):
                    self._accuser.accuse(charge)

    async def _is_done(self) -> bool:
        settled = self._last_epoch is not None and self._last_epoch in self._node.chain.settled()
        if not settled or self._cases.open_cases() or self._seeker.is_waiting():
            return False
        if not (self._accuser.is_idle and self._bounties.is_idle):
            return False
        try:
            await self._bounties.withdraw_bonds()
        except Retryable as error:
            logger.warning("%s", error)
            return False
        return True
