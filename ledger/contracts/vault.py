"""The stake vault: deposits, exits, what is at stake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.contracts.token import Permit
from ledger.transactions import Call
from protocol.ids import Address, Epoch, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbonding:
    """Stake on its way out; it can be withdrawn after (not at) `unlock_time`."""

    amount: Units
    unlock_time: int


class StakeVault(Contract):
    """The custodian of stakes."""

    ABI = "StakeVault"

    async def active_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        """Active stake now; it counts from the next epoch's snapshot."""
        return Units((await self._read("activeOf", account, block=block)).integer(0))

    async def unbonding_of(self, account: Address, *, block: BlockId = "latest") -> Unbonding:
        answer = await self._read("unbondingOf", account, block=block)
        return Unbonding(amount=Units(answer.integer(0)), unlock_time=answer.integer(1))

    async def locks_of(self, account: Address, *, block: BlockId = "latest") -> int:
        """Open games against an account; none of its stake leaves meanwhile."""
        return (await self._read("locksOf", account, block=block)).integer(0)

    async def stake_at(self, account: Address, epoch: Epoch, *, block: BlockId = "latest") -> Units:
        """Active stake in the snapshot of an epoch; the contract forgets old ones."""
        return Units((await self._read("stakeAt", account, epoch, block=block)).integer(0))

    async def held_for(
        self, accounts: Sequence[Address], *, block: BlockId = "latest"
    ) -> dict[Address, Units]:
        """Active and unbonding stake together, by account."""
        lists = [[account] for account in accounts]
        active = await self._read_each("activeOf", lists, block=block)
        unbonding = await self._read_each("unbondingOf", lists, block=block)
        return {
            account: Units(held.integer(0) + leaving.integer(0))
            for account, held, leaving in zip(accounts, active, unbonding, strict=True)
        }

    def deposit_call(self, amount: Units) -> Call:
        """Needs an allowance for the vault."""
        return self._call("deposit", amount)

    def deposit_with_permit_call(self, permit: Permit) -> Call:
        r, s, v = permit.signature[:32], permit.signature[32:64], permit.signature[64]
        return self._call("depositWithPermit", permit.amount, permit.deadline, v, r, s)

    def request_unbond_call(self, amount: Units) -> Call:
        return self._call("requestUnbond", amount)

    def withdraw_call(self) -> Call:
        return self._call("withdraw")
