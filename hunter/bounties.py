"""Drawing what a hunter won: bounties once nobody can win them with an earlier challenge any more, and bonds at the end."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ledger.event_types import (
    BondWithdrawn,
    BountyCredited,
    BountyMoved,
    BountyPaid,
    Convicted,
    CreditWithdrawn,
    Event,
    PauseEnded,
)
from node.node import Node
from protocol.ids import Address, Round

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounty:
    """One that is held for us.

    Attributes:
        key: its payment's, in the outbox.
        last_block: as things stood, it can be paid after this block of the run's clock.
        revealed_by: whoever committed earlier has revealed by this block.
    """

    key: str
    last_block: int
    revealed_by: int


class Bounties:
    """One hunter's bounties and bonds."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._held: dict[tuple[Address, Round], _Bounty] = {}

    @property
    def is_idle(self) -> bool:
        """Whether no bounty is waiting."""
        held = [self._held.get(won) for won in self._won()]
        return all(bounty and self._node.outbox.known(bounty.key) for bounty in held)

    async def work(self) -> None:
        """Has those paid whose time has come, and takes what gave way to graver verdicts. Not in a pause."""
        node = self._node
        if node.chain.paused:
            return
        for offender, round_ in self._won():
            bounty = await self._bounty(offender, round_)
            if bounty is None or node.outbox.known(bounty.key):
                continue
            if self._run_block() > bounty.last_block:
                call = node.chain.contracts.verdicts.pay_bounty_call(offender, round_)
                await node.outbox.submit(call, bounty.key)
                logger.info("round %d: bounty for %s paid", round_, offender)
        await self._withdraw_credit()

    async def withdraw_bonds(self) -> None:
        """Takes back all bonds that stand behind no challenge."""
        node = self._node
        faults, me = node.chain.contracts.faults, node.signer.address
        free = await faults.free_bond(me)
        if free:
            before = [e for e in node.chain.events.events(BondWithdrawn) if e.hunter == me]
            await node.outbox.submit(faults.withdraw_bond_call(free), f"bonds/{len(before)}")
            logger.info("bonds withdrawn")

    def _won(self) -> list[tuple[Address, Round]]:
        """Offenders and rounds whose bounty the events say is held for us."""
        events, me = self._node.chain.events, self._node.signer.address
        found: list[Convicted | BountyMoved | BountyPaid] = [
            *events.events(Convicted),
            *events.events(BountyMoved),
            *events.events(BountyPaid),
        ]
        newest = {(event.offender, event.round): event for event in sorted(found, key=_place)}
        return [
            place
            for place, event in newest.items()
            if not isinstance(event, BountyPaid) and event.hunter == me
        ]

    async def _bounty(self, offender: Address, round_: Round) -> _Bounty | None:
        """The bounty as it stands; asked for again only when it could have become payable.

        That is when whoever committed earlier has revealed: a game that holds it up may end at any time.
        """
        known = self._held.get((offender, round_))
        if known is not None and self._run_block() <= known.revealed_by:
            return known
        node = self._node
        verdict = await node.chain.contracts.verdicts.verdict_of(offender, round_)
        if verdict is None or verdict.hunter != node.signer.address:
            return None
        bounty = _Bounty(
            key=f"bounty/{offender}/{round_}/{verdict.kind.slug}",
            last_block=verdict.payable_after,
            revealed_by=verdict.committed_block + node.run_file.spec.chain.challenge_reveal_blocks,
        )
        self._held[offender, round_] = bounty
        return bounty

    def _run_block(self) -> int:
        """The newest block by the run's clock."""
        chain = self._node.chain
        ended = chain.events.events(PauseEnded)
        return chain.block - (ended[-1].total_blocks if ended else 0)

    async def _withdraw_credit(self) -> None:
        node = self._node
        events, me = node.chain.events, node.signer.address
        credited = [event for event in events.events(BountyCredited) if event.hunter == me]
        taken = [event for event in events.events(CreditWithdrawn) if event.hunter == me]
        if not credited or (taken and _place(taken[-1]) > _place(credited[-1])):
            return
        call = node.chain.contracts.verdicts.withdraw_credit_call()
        await node.outbox.submit(call, f"credit/{len(credited)}")


def _place(event: Event) -> tuple[int, int]:
    return event.block, event.log_index
