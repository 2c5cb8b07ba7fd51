"""Pursues the hunter's cases on chain: bond and commitment, then the proof, then the bounty.

Evidence is in the journal before its commitment is sent, and the salt follows from the key, so that a hunter killed between commit
and proof still proves, and its bond is never lost. Bonds come from the hunter's own key and stay with the contract, to be used again,
until the hunter ends.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from hunter.cases import Case, CaseBook
from hunter.objections import objection_to
from ledger.contracts.verdicts import slash_bps_of
from ledger.errors import PAUSED, Reverted
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
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Round, Units

logger = logging.getLogger(__name__)

_ALLOWANCE = Units(2**255)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounty:
    """One that is held for us.

    Attributes:
        key: its payment's, in the outbox.
        last_block: it can be paid after this block of the run's clock.
        late: a game keeps it longer than challenges alone would.
    """

    key: str
    last_block: int
    late: bool


class Prosecutor:
    """Takes every open case as far as it goes now."""

    def __init__(self, node: Node, cases: CaseBook) -> None:
        self._node = node
        self._cases = cases
        self._bounties: dict[tuple[Address, Round], _Bounty] = {}

    async def prosecute(self) -> None:
        """Takes every open case one step further, the gravest faults first. Not in a pause."""
        if self._node.chain.paused:
            return
        params = self._node.run_file.spec.chain
        cases = sorted(self._cases.open_cases(), key=lambda case: -slash_bps_of(case.kind, params))
        for case in cases:
            try:
                await self._advance(case)
            except Reverted as error:
                if error.name == PAUSED:
                    return
                logger.warning("case %s is lost: %s", case.key, error)
                self._cases.close(case)

    async def collect(self) -> None:
        """Has every bounty paid that can be, and takes what gave way to graver verdicts. Not in a pause."""
        chain = self._node.chain
        if chain.paused:
            return
        for offender, round_ in self._won():
            bounty = await self._bounty(offender, round_)
            if (
                bounty is None
                or self._node.outbox.known(bounty.key)
                or self._run_block() <= bounty.last_block
            ):
                continue
            call = chain.contracts.verdicts.pay_bounty_call(offender, round_)
            await self._node.outbox.submit(call, bounty.key)
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

    def is_waiting(self) -> bool:
        """Whether a case is open, or a bounty of ours can be paid before long."""
        held = [self._bounties.get(won) for won in self._won()]
        return bool(self._cases.open_cases()) or any(
            bounty is None or not (bounty.late or self._node.outbox.known(bounty.key))
            for bounty in held
        )

    async def _advance(self, case: Case) -> None:
        node = self._node
        faults, outbox = node.chain.contracts.faults, node.outbox
        if not outbox.known(f"accuse/{case.key}"):
            if self._has_graver(case):
                return
            if await self._is_judged(case):
                self._cases.close(case)
                return
            reason = await objection_to(case.evidence, node.chain.contracts, node.run_file)
            if reason is not None:
                logger.warning("case %s is dropped: %s", case.key, reason)
                self._cases.drop(case)
                return
        await self._approve()
        salt = self._salt(case)
        commitment = faults.commitment(node.signer.address, case.evidence, salt)
        receipt = await outbox.submit(
            faults.commit_challenge_call(commitment), f"accuse/{case.key}"
        )
        if node.chain.block <= receipt.block:
            return
        proof = await outbox.submit(faults.prove_call(case.evidence, salt), f"prove/{case.key}")
        logger.warning("case %s proven in block %d", case.key, proof.block)
        self._cases.close(case)

    def _has_graver(self, case: Case) -> bool:
        """A graver case of ours against the same round goes first: what it takes, this one could not take as well."""
        params = self._node.run_file.spec.chain
        return any(
            (other.miner, other.round) == (case.miner, case.round)
            and slash_bps_of(other.kind, params) > slash_bps_of(case.kind, params)
            for other in self._cases.open_cases()
        )

    async def _is_judged(self, case: Case) -> bool:
        """Whether a fault as grave is proven already, so that there is nothing to be had."""
        node, params = self._node, self._node.run_file.spec.chain
        verdict = await node.chain.contracts.verdicts.verdict_of(case.miner, case.round)
        return verdict is not None and (
            slash_bps_of(verdict.kind, params) >= slash_bps_of(case.kind, params)
        )

    async def _approve(self) -> None:
        node = self._node
        if not node.outbox.known("approve/faults"):
            await node.outbox.submit(
                node.chain.contracts.token.approve_call(node.run_file.contracts.faults, _ALLOWANCE),
                "approve/faults",
            )

    def _salt(self, case: Case) -> Hash32:
        """Secret and repeatable, so that a restarted hunter proves what it committed."""
        message = keccak256(
            b"syntience.challenge.salt.v1" + abi_words(keccak256(case.key.encode()))
        )
        digest = self._node.run_file.domain.digest(message)
        return Hash32(keccak256(self._node.signer.sign_digest(digest)))

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
        """The bounty as it stands; asked for again only when it could have become payable."""
        known = self._bounties.get((offender, round_))
        if known is not None and self._run_block() <= known.last_block:
            return known
        node = self._node
        verdict = await node.chain.contracts.verdicts.verdict_of(offender, round_)
        if verdict is None or verdict.hunter != node.signer.address:
            return None
        reveal_blocks = node.run_file.spec.chain.challenge_reveal_blocks
        bounty = _Bounty(
            key=f"bounty/{offender}/{round_}/{verdict.kind.slug}",
            last_block=verdict.payable_after,
            late=verdict.payable_after > verdict.committed_block + reveal_blocks,
        )
        self._bounties[offender, round_] = bounty
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
