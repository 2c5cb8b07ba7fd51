"""Verdicts: what a proven fault cost, and the bounty that waits for its hunter."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.transactions import Call
from protocol.ids import Address, Round, Units
from protocol.spec import ChainParams


class Fault(IntEnum):
    """What was proven (the numbers are the contract's)."""

    NONE = 0
    EQUIVOCATION = 1
    WRONG_SPEC = 2
    WRONG_DATA = 3
    LOCAL_STATE = 4
    BAD_ENCODING = 5
    NATIVE_COMPUTATION = 6
    COMPUTATION = 7
    STATE_ROOT = 8

    @property
    def slug(self) -> str:
        """The fault's name in files and on command lines, such as ``wrong-data``."""
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The gravest verdict on an account in a round.

    Attributes:
        taken_bps: what its verdicts took together, in 1/10,000 of the stake before them.
        hunter: winner so far of the bounty that is held; None if none is held.
        committed_block: block of the winner's commit, by the run's clock.
        payable_after: the bounty can be paid after this block of the run's clock.
    """

    kind: Fault
    taken_bps: int
    hunter: Address | None
    bounty: Units
    committed_block: int
    payable_after: int


def slash_bps_of(kind: Fault, params: ChainParams) -> int:
    """What a fault costs, in 1/10,000 of the stake: how grave it is. The contract's `penaltyOf`, from the run's parameters."""
    match kind:
        case Fault.NONE:
            return 0
        case Fault.EQUIVOCATION | Fault.WRONG_SPEC:
            return params.equivocation_slash_bps
        case Fault.NATIVE_COMPUTATION:
            return params.native_slash_bps
        case Fault.COMPUTATION | Fault.STATE_ROOT:
            return params.computation_slash_bps
        case _:
            return params.wrong_data_slash_bps


class Verdicts(Contract):
    """The only contract that slashes for fraud."""

    ABI = "Verdicts"

    async def verdict_of(
        self, offender: Address, round_: Round, *, block: BlockId = "latest"
    ) -> Verdict | None:
        """The verdict on an account in a round; None if no fault was proven."""
        record = (await self._read("verdictOf", offender, round_, block=block)).record(0)
        kind = Fault(record.integer(0))
        if kind is Fault.NONE:
            return None
        return Verdict(
            kind=kind,
            taken_bps=record.integer(1),
            hunter=record.address_or_none(2),
            bounty=Units(record.integer(3)),
            committed_block=record.integer(4),
            payable_after=record.integer(5),
        )

    async def penalty_of(self, kind: Fault) -> tuple[int, Units]:
        """What a fault costs, in 1/10,000 of the stake, and the most that its bounty comes to."""
        answer = await self._read("penaltyOf", int(kind))
        return answer.integer(0), Units(answer.integer(1))

    async def credit_of(self, hunter: Address, *, block: BlockId = "latest") -> Units:
        """Bounties that gave way to graver verdicts, for their hunter to withdraw."""
        return Units((await self._read("creditOf", hunter, block=block)).integer(0))

    async def bounties_held(self, *, block: BlockId = "latest") -> Units:
        """Bounties and credits that are not paid yet: the contract's token balance, donations apart."""
        return Units((await self._read("bountiesHeld", block=block)).integer(0))

    def pay_bounty_call(self, offender: Address, round_: Round) -> Call:
        """Pays a bounty to its winner, whoever sends this, after `Verdict.payable_after`."""
        return self._call("payBounty", offender, round_)

    def withdraw_credit_call(self) -> Call:
        """Pays the sender's credits to it."""
        return self._call("withdrawCredit")
