"""A run on an anvil of its own, for measuring: whoever acts is impersonated, time moves when told, receipts tell the gas.

Impersonation spares signing, not gas: a transaction costs what it costs, whoever vouches for it. Evidence and consents
are signed with real keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

from ledger.abi import AbiValue, contract_abi
from ledger.connection import Connection, Request, block_id
from ledger.contracts import Contracts
from ledger.contracts.base import Values
from ledger.deploy import deploy
from ledger.errors import Reverted
from ledger.json_rpc import Json
from ledger.keys import LocalSigner
from ledger.outbox import Outbox
from ledger.transactions import Receipt
from protocol.clock import RoundClock
from protocol.hashing import keccak256
from protocol.ids import Address, Hash32, Units, to_address
from protocol.runfile import RunFile
from protocol.spec import RunSpec
from syntience.anvil import Anvil, AnvilOptions

CAP = Units(10**9 * 10**18)
ALLOCATION = Units(10**8 * 10**18)
NAMES = (
    "SynToken",
    "Registry",
    "StakeVault",
    "EpochManager",
    "BlockhashBeacon",
    "ScoreRegistry",
    "RewardsDistributor",
    "ObjectiveFaults",
    "Verdicts",
    "DataRequests",
    "Disputes",
    "Committee",
)
"""In the order of `ContractAddresses`."""
_GAS_LIMIT = 16_000_000
_BLOCK_GAS_LIMIT = 1 << 40
_WEALTH = 10**24


@dataclass(frozen=True, slots=True)
class Move:
    """A transaction: who sends it, ``Contract.function``, its arguments."""

    sender: Address
    function: str
    arguments: tuple[AbiValue, ...] = ()


@dataclass(slots=True, kw_only=True)
class Stage:
    """A deployed run. `spent` holds every transaction's function and gas, oldest first."""

    connection: Connection
    run_file: RunFile
    clock: RoundClock
    contracts: Contracts
    deployer: Address
    spent: list[tuple[str, int]] = field(default_factory=list)

    def address(self, contract: str) -> Address:
        """Where a contract of the run lies."""
        addresses = self.run_file.contracts
        position = NAMES.index(contract)
        found: Address = getattr(addresses, fields(addresses)[position].name)
        return found

    # -- transactions

    async def send(self, sender: Address, function: str, *arguments: AbiValue) -> Receipt:
        """Sends a transaction in a block of its own; raises `Reverted` if the contract refuses it."""
        return (await self.send_all([Move(sender, function, arguments)]))[0]

    async def gas(self, sender: Address, function: str, *arguments: AbiValue) -> int:
        """As `send`; only what it cost."""
        return (await self.send(sender, function, *arguments)).gas_used

    async def send_all(self, moves: Sequence[Move]) -> list[Receipt]:
        """Sends transactions that fit into one block, in order."""
        await self.rpc("evm_setAutomine", False)
        requests = [Request("eth_sendTransaction", [self._transaction(move)]) for move in moves]
        hashes = await self.connection.batch(requests)
        await self.rpc("evm_mine")
        answers = await self.connection.batch(
            [Request("eth_getTransactionReceipt", [found]) for found in hashes]
        )
        receipts = [Receipt.from_rpc(answer) for answer in answers]
        for move, receipt in zip(moves, receipts, strict=True):
            if not receipt.succeeded:
                await self._explain(move, receipt.block)
            self.spent.append((move.function, receipt.gas_used))
        return receipts

    def _transaction(self, move: Move) -> dict[str, Json]:
        contract, _, function = move.function.partition(".")
        data = contract_abi(contract).function(function).encode_call(move.arguments)
        return {
            "from": move.sender,
            "to": self.address(contract),
            "data": "0x" + data.hex(),
            "gas": hex(_GAS_LIMIT),
        }

    async def _explain(self, move: Move, block: int) -> None:
        """Asks the block before for the reason; the state is nearly that of the transaction."""
        request: list[Json] = [dict(self._transaction(move)), block_id(block - 1)]
        await self.connection.request("eth_call", request, label=move.function)
        raise AssertionError(f"{move.function} fails, but not against the block before")

    async def read(self, function: str, *arguments: AbiValue) -> Values:
        """Calls a view."""
        contract, _, name = function.partition(".")
        interface = contract_abi(contract).function(name)
        data = interface.encode_call(arguments)
        answer = await self.connection.read(self.address(contract), data, label=function)
        return Values(interface.decode_result(answer))

    async def refuses(self, sender: Address, function: str, *arguments: AbiValue) -> bool:
        """Whether the contract would refuse a transaction now."""
        request: list[Json] = [dict(self._transaction(Move(sender, function, arguments))), "latest"]
        try:
            await self.connection.request("eth_call", request, label=function)
        except Reverted:
            return True
        return False

    # -- time

    async def rpc(self, method: str, *parameters: Json) -> Json:
        """One request to anvil."""
        return await self.connection.request(method, list(parameters))

    async def time(self) -> int:
        """Of the newest block."""
        return (await self.connection.head()).time

    async def to(self, timestamp: int) -> None:
        """Moves the chain's time forward to this second, unless it is past."""
        if await self.time() < timestamp:
            await self.rpc("evm_setNextBlockTimestamp", hex(timestamp))
            await self.rpc("evm_mine")

    async def mine(self, blocks: int) -> None:
        """Mines empty blocks."""
        await self.rpc("anvil_mine", hex(blocks))

    # -- people

    async def enrich(self, accounts: Sequence[Address]) -> None:
        """Gives accounts native currency."""
        requests = [Request("anvil_setBalance", [account, hex(_WEALTH)]) for account in accounts]
        await self.connection.batch(requests)


def account_named(name: str) -> Address:
    """An account without a known key; it acts by impersonation."""
    return to_address(keccak256(b"account " + name.encode())[12:])


def key_named(name: str) -> LocalSigner:
    """A key for what has to be signed."""
    return LocalSigner(keccak256(b"key " + name.encode()))


def hash_named(name: str) -> Hash32:
    """32 bytes that look like a hash."""
    return Hash32(keccak256(name.encode()))


@asynccontextmanager
async def opened(spec: RunSpec) -> AsyncIterator[Stage]:
    """Starts anvil, deploys the run with genesis `spec.chain.genesis_time`, stops anvil in the end."""
    with tempfile.TemporaryDirectory(prefix="syntience-bench-") as scratch:
        folder = Path(scratch)
        options = AnvilOptions(block_time_s=None, accounts=1)
        async with (
            Anvil.start(log_file=folder / "anvil.log", options=options) as anvil,
            await Connection.open(anvil.rpc_url, timeout_s=120) as connection,
        ):
            signer = LocalSigner(anvil.accounts[0].private_key)
            outbox = await Outbox.open(folder / "deployer.sqlite3", connection, signer)
            async with outbox:
                run_file = await deploy(
                    connection, outbox, spec, cap=CAP, genesis_allocation=ALLOCATION
                )
            stage = Stage(
                connection=connection,
                run_file=run_file,
                clock=RoundClock(spec.chain),
                contracts=Contracts(connection, run_file.contracts),
                deployer=signer.address,
            )
            await stage.rpc("anvil_autoImpersonateAccount", True)
            await stage.rpc("evm_setBlockGasLimit", hex(_BLOCK_GAS_LIMIT))
            yield stage
