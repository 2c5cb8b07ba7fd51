"""What all wrappers share: encode a call, send it, hand out the results by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ledger.abi import AbiValue, ContractAbi, contract_abi
from ledger.connection import BlockId, Connection, call_request
from ledger.errors import Undecodable
from ledger.json_rpc import as_bytes
from ledger.transactions import Call
from protocol.ids import ZERO_ADDRESS, Address, Hash32


class Values:
    """Decoded results, taken out by position and expected type; a surprise is `Undecodable`."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[AbiValue]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def integer(self, position: int) -> int:
        value = self._items[position]
        if isinstance(value, int):
            return value
        raise self._surprise(position, "a number")

    def truth(self, position: int) -> bool:
        value = self._items[position]
        if isinstance(value, bool):
            return value
        raise self._surprise(position, "a truth value")

    def text(self, position: int) -> str:
        value = self._items[position]
        if isinstance(value, str):
            return value
        raise self._surprise(position, "a string")

    def raw(self, position: int) -> bytes:
        value = self._items[position]
        if isinstance(value, bytes):
            return value
        raise self._surprise(position, "bytes")

    def hash(self, position: int) -> Hash32:
        value = self.raw(position)
        if len(value) == 32:
            return Hash32(value)
        raise self._surprise(position, "32 bytes")

    def address(self, position: int) -> Address:
        return Address(self.text(position))

    def address_or_none(self, position: int) -> Address | None:
        """None for the zero address."""
        address = self.address(position)
        return None if address == ZERO_ADDRESS else address

    def record(self, position: int) -> Values:
        value = self._items[position]
        if isinstance(value, tuple):
            return Values(value)
        raise self._surprise(position, "a record")

    def records(self, position: int) -> list[Values]:
        inner = self.record(position)
        return [inner.record(index) for index in range(len(inner))]

    def _surprise(self, position: int, expected: str) -> Undecodable:
        return Undecodable(f"expected {expected} at {position}, got {self._items[position]!r}")


class Contract:
    """A contract at an address. `ABI` names its packaged interface."""

    ABI: ClassVar[str]

    def __init__(self, connection: Connection, address: Address) -> None:
        self._connection = connection
        self.address = address

    @property
    def abi(self) -> ContractAbi:
        """The packaged interface."""
        return contract_abi(self.ABI)

    async def _read(self, function: str, *arguments: AbiValue, block: BlockId = "latest") -> Values:
        interface = self.abi.function(function)
        data = interface.encode_call(arguments)
        label = f"{self.ABI}.{function}"
        answer = await self._connection.read(self.address, data, block=block, label=label)
        return Values(interface.decode_result(answer))

    async def _read_each(
        self,
        function: str,
        argument_lists: Sequence[Sequence[AbiValue]],
        *,
        block: BlockId = "latest",
    ) -> list[Values]:
        """One call per argument list, in as few round trips as possible, results in order."""
        interface = self.abi.function(function)
        label = f"{self.ABI}.{function}"
        requests = [
            call_request(self.address, interface.encode_call(arguments), block, label)
            for arguments in argument_lists
        ]
        answers = await self._connection.batch(requests)
        return [Values(interface.decode_result(as_bytes(answer))) for answer in answers]

    def _call(self, function: str, *arguments: AbiValue) -> Call:
        data = self.abi.function(function).encode_call(arguments)
        return Call(to=self.address, data=data, label=f"{self.ABI}.{function}")
