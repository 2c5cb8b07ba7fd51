"""The token: balances, allowances and permits (ERC-20, EIP-2612)."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.connection import BlockId
from ledger.contracts.base import Contract
from ledger.transactions import Call
from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32, Units
from protocol.ports import Signer

_PERMIT_TYPE = keccak256(
    b"Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """A signed allowance, good until `deadline` (unix seconds) and for one use."""

    amount: Units
    deadline: int
    signature: bytes


UNLIMITED = Units(2**256 - 1)
"""An allowance that the token does not count down: each transfer out of it saves a write of storage."""


class SynToken(Contract):
    """The run's token."""

    ABI = "SynToken"

    async def balance_of(self, account: Address, *, block: BlockId = "latest") -> Units:
        return Units((await self._read("balanceOf", account, block=block)).integer(0))

    async def balances_of(
        self, accounts: list[Address], *, block: BlockId = "latest"
    ) -> list[Units]:
        """Balances in the order of the accounts."""
        rows = await self._read_each("balanceOf", [[account] for account in accounts], block=block)
        return [Units(row.integer(0)) for row in rows]

    async def allowance(
        self, owner: Address, spender: Address, *, block: BlockId = "latest"
    ) -> Units:
        return Units((await self._read("allowance", owner, spender, block=block)).integer(0))

    async def total_supply(self, *, block: BlockId = "latest") -> Units:
        return Units((await self._read("totalSupply", block=block)).integer(0))

    async def total_minted(self, *, block: BlockId = "latest") -> Units:
        """All that was ever minted, burned tokens included."""
        return Units((await self._read("totalMinted", block=block)).integer(0))

    async def cap(self) -> Units:
        """The most that is ever minted."""
        return Units((await self._read("cap")).integer(0))

    async def minter(self) -> Address:
        return (await self._read("minter")).address(0)

    async def sign_permit(
        self, signer: Signer, *, spender: Address, amount: Units, deadline: int
    ) -> Permit:
        """Signs an allowance for `spender` with the owner's key (EIP-2612)."""
        domain = (await self._read("DOMAIN_SEPARATOR")).hash(0)
        nonce = (await self._read("nonces", signer.address)).integer(0)
        words = abi_words(_PERMIT_TYPE, signer.address, spender, amount, nonce, deadline)
        digest = Hash32(keccak256(b"\x19\x01" + domain + keccak256(words)))
        return Permit(amount=amount, deadline=deadline, signature=signer.sign_digest(digest))

    def approve_call(self, spender: Address, amount: Units) -> Call:
        return self._call("approve", spender, amount)

    def transfer_call(self, to: Address, amount: Units) -> Call:
        return self._call("transfer", to, amount)
