"""What the run's transactions cost: gas by contract function, from the receipts of every block."""

from __future__ import annotations

from dataclasses import fields

from ledger import json_rpc
from ledger.abi import contract_abi
from ledger.connection import Connection, Request
from ledger.json_rpc import Json
from protocol.ids import Address
from protocol.runfile import ContractAddresses

_BLOCKS_AT_ONCE = 32
_CONTRACT_OF = {
    "token": "SynToken",
    "registry": "Registry",
    "vault": "StakeVault",
    "epochs": "EpochManager",
    "beacon": "BlockhashBeacon",
    "scores": "ScoreRegistry",
    "rewards": "RewardsDistributor",
    "faults": "ObjectiveFaults",
    "verdicts": "Verdicts",
    "requests": "DataRequests",
    "disputes": "Disputes",
    "committee": "Committee",
}
REVERTED = "reverted"
"""Under this name stand the transactions that a contract refused."""


class GasMeter:
    """Reads blocks once, in order.

    Args:
        contracts: the run's.
        from_block: the first block that matters.
    """

    def __init__(
        self, connection: Connection, contracts: ContractAddresses, *, from_block: int
    ) -> None:
        self._connection = connection
        self._next = from_block
        self._functions = _functions(contracts)
        self.used: list[tuple[str, int]] = []
        """(function, gas) of every transaction to one of the contracts, oldest first."""

    async def read_upto(self, block: int) -> None:
        """Reads all blocks up to this one that were not read yet."""
        while self._next <= block:
            numbers = range(self._next, min(block + 1, self._next + _BLOCKS_AT_ONCE))
            requests: list[Request] = []
            for number in numbers:
                name = json_rpc.quantity(number)
                requests.append(Request("eth_getBlockByNumber", [name, True]))
                requests.append(Request("eth_getBlockReceipts", [name]))
            answers = await self._connection.batch(requests)
            for position in range(0, len(answers), 2):
                self._add(answers[position], answers[position + 1])
            self._next = numbers.stop

    def _add(self, block: Json, receipts: Json) -> None:
        calls = {}
        for item in json_rpc.as_list(json_rpc.field(json_rpc.as_record(block), "transactions")):
            transaction = json_rpc.as_record(item)
            if transaction.get("to") is not None:
                to = json_rpc.as_address(json_rpc.field(transaction, "to"))
                selector = json_rpc.as_bytes(json_rpc.field(transaction, "input"))[:4]
                calls[json_rpc.field(transaction, "hash")] = self._functions.get((to, selector))
        for item in json_rpc.as_list(receipts):
            receipt = json_rpc.as_record(item)
            function = calls.get(json_rpc.field(receipt, "transactionHash"))
            if function is not None:
                succeeded = json_rpc.as_int(json_rpc.field(receipt, "status")) == 1
                gas = json_rpc.as_int(json_rpc.field(receipt, "gasUsed"))
                self.used.append((function if succeeded else REVERTED, gas))


def _functions(contracts: ContractAddresses) -> dict[tuple[Address, bytes], str]:
    """``Contract.function`` by address and selector."""
    return {
        (getattr(contracts, item.name), function.selector): f"{name}.{function.name}"
        for item in fields(contracts)
        for name in [_CONTRACT_OF[item.name]]
        for function in contract_abi(name).functions.values()
    }
