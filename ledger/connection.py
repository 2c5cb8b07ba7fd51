"""One connection to an Ethereum node over HTTP: a deadline on every request, every failure in one of our kinds.

Blocks and values are read straight from JSON into typed records; contract calls are encoded by `ledger.abi`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from ledger import json_rpc
from ledger.errors import (
    Reverted,
    RpcRefused,
    RpcUnavailable,
    RpcUnreachable,
    WrongChain,
)
from ledger.http import Answer, JsonRpcClient
from ledger.json_rpc import Json
from ledger.reverts import revert_error
from protocol.ids import Address, Hash32

BlockId = int | str
"""A block number, or ``latest`` / ``pending`` / ``finalized``."""


class Request(NamedTuple):
    """A JSON-RPC request; `label` names the call in the error if a contract refuses it."""

    method: str
    parameters: list[Json]
    label: str = ""


_BATCH = 100
_RATE_LIMIT_CODES = (-32005, -32097, 429)
_EXECUTION_REVERTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A block's header, as far as we need it. `base_fee` is None on chains without EIP-1559."""

    number: int
    hash: Hash32
    parent_hash: Hash32
    time: int
    base_fee: int | None


class Connection:
    """Asks one node. Made by `open`, which checks what can be wrong with it; closed by `aclose`."""

    def __init__(self, client: JsonRpcClient, *, rpc_url: str) -> None:
        self._client = client
        self.rpc_url = rpc_url
        self.shown_url = _without_secrets(rpc_url)
        self._chain_id: int | None = None
        self._genesis: Hash32 | None = None

    @classmethod
    async def open(
        cls, rpc_url: str, *, chain_id: int | None = None, timeout_s: float = 10.0
    ) -> Connection:
        """Connects and checks.

        Args:
            rpc_url: ``http(s)://…``
            chain_id: the chain that the node must follow; None takes any.
            timeout_s: deadline of each request.

        Raises:
            RpcUnreachable, RpcDenied, WrongChain: with what to do about it.
        """
        if not _is_http(rpc_url):
            raise RpcUnreachable(
                f"{rpc_url!r} is not an http(s) URL", "give one such as http://127.0.0.1:8545"
            )
        client = JsonRpcClient(rpc_url, _without_secrets(rpc_url), timeout_s=timeout_s)
        connection = cls(client, rpc_url=rpc_url)
        try:
            await connection._check_chain(chain_id)
        except BaseException:
            await connection.aclose()
            raise
        return connection

    @property
    def chain_id(self) -> int:
        """The chain's id, read when the connection was opened."""
        assert self._chain_id is not None
        return self._chain_id

    async def aclose(self) -> None:
        """Closes the sockets."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def request(self, method: str, parameters: list[Json], *, label: str = "") -> Json:
        """One JSON-RPC request."""
        answer = await self._client.single(method, parameters)
        return _result(answer, Request(method, parameters, label))

    async def batch(self, requests: Sequence[Request]) -> list[Json]:
        """Several requests in one round trip, results in order; raises the first error."""
        return [_raised(item) for item in await self.try_batch(requests)]

    async def try_batch(self, requests: Sequence[Request]) -> list[Json | Reverted | RpcRefused]:
        """As `batch`, but what one request met stands in its place and the others keep their results."""
        results: list[Json | Reverted | RpcRefused] = []
        for start in range(0, len(requests), _BATCH):
            part = requests[start : start + _BATCH]
            responses = await self._client.batch([(item.method, item.parameters) for item in part])
            for item, response in zip(part, responses, strict=True):
                try:
                    results.append(_result(response, item))
                except (Reverted, RpcRefused) as error:
                    results.append(error)
        return results

    async def head(self) -> Head:
        """The newest block."""
        block = await self.block("latest")
        if block is None:
            raise RpcUnavailable(f"{self.shown_url} has no blocks yet")
        return block

    async def block(self, block: BlockId) -> Head | None:
        """A block by number or tag; None if the node has none such."""
        return head_of(await self.request("eth_getBlockByNumber", [block_id(block), False]))

    async def read(
        self, to: Address, data: bytes, *, block: BlockId = "latest", label: str = ""
    ) -> bytes:
        """Calls a view function."""
        asked = call_request(to, data, block, label)
        return json_rpc.as_bytes(await self.request(asked.method, asked.parameters, label=label))

    async def genesis_hash(self) -> Hash32:
        """Hash of block 0: tells apart two chains of one id, such as a development chain and its successor."""
        if self._genesis is None:
            block = await self.block(0)
            if block is None:
                raise RpcUnavailable(f"{self.shown_url} does not serve block 0")
            self._genesis = block.hash
        return self._genesis

    async def balance(self, account: Address) -> int:
        """Native currency of an account, in wei."""
        return json_rpc.as_int(await self.request("eth_getBalance", [account, "latest"]))

    async def transaction_count(self, account: Address, block: BlockId = "latest") -> int:
        """How many transactions the account has sent: its next nonce."""
        return json_rpc.as_int(
            await self.request("eth_getTransactionCount", [account, block_id(block)])
        )

    async def code(self, account: Address) -> bytes:
        """The account's code; empty if it is no contract."""
        return json_rpc.as_bytes(await self.request("eth_getCode", [account, "latest"]))

    async def _check_chain(self, expected: int | None) -> None:
        advice = "check --rpc and that the node runs"
        try:
            answer = await self.request("eth_chainId", [])
            self._chain_id = json_rpc.as_int(answer)
        except RpcUnavailable as error:
            raise RpcUnreachable(
                f"no Ethereum node answers at {self.shown_url} ({error})", advice
            ) from error
        except RpcRefused as error:
            raise RpcUnreachable(
                f"{self.shown_url} is no Ethereum node ({error.message})", advice
            ) from error
        if expected is not None and self._chain_id != expected:
            raise WrongChain(
                f"{self.shown_url} follows chain {self._chain_id}, the run lives on chain {expected}",
                "give --rpc a node of that chain",
            )


def block_id(block: BlockId) -> str:
    """A block number or tag as JSON-RPC wants it."""
    return json_rpc.quantity(block) if isinstance(block, int) else block


def call_request(to: Address, data: bytes, block: BlockId = "latest", label: str = "") -> Request:
    """The request behind a view call, for `Connection.batch`."""
    return Request("eth_call", [{"to": to, "data": json_rpc.data(data)}, block_id(block)], label)


def block_request(block: BlockId) -> Request:
    """The request behind `Connection.block`, for `Connection.batch`."""
    return Request("eth_getBlockByNumber", [block_id(block), False])


def head_of(value: Json) -> Head | None:
    """Reads a block as the node sends it."""
    if value is None:
        return None
    block = json_rpc.as_record(value)
    base_fee = block.get("baseFeePerGas")
    return Head(
        number=json_rpc.as_int(json_rpc.field(block, "number")),
        hash=json_rpc.as_hash(json_rpc.field(block, "hash")),
        parent_hash=json_rpc.as_hash(json_rpc.field(block, "parentHash")),
        time=json_rpc.as_int(json_rpc.field(block, "timestamp")),
        base_fee=None if base_fee is None else json_rpc.as_int(base_fee),
    )


def _result(answer: Answer, asked: Request) -> Json:
    """The result of a JSON-RPC response, or the typed error that it stands for."""
    error = answer.get("error")
    if error is None:
        if "result" not in answer:
            raise RpcUnavailable("the node's answer has neither result nor error")
        return answer["result"]
    if not isinstance(error, Mapping):
        raise RpcUnavailable(f"the node answered {asked.method} with {error!r}")
    code, message = error.get("code"), str(error.get("message", ""))
    if code in _RATE_LIMIT_CODES:
        raise RpcUnavailable(f"the node limits requests: {message}")
    data = _revert_data(error.get("data"))
    if code == _EXECUTION_REVERTED or data or "execution reverted" in message:
        raise revert_error(data, label=asked.label or asked.method)
    raise RpcRefused(asked.method, code if isinstance(code, int) else 0, message)


def _revert_data(value: Json) -> bytes:
    """Nodes put the bytes of a revert into ``data``, or one level down in it, or after ``Reverted ``."""
    if isinstance(value, Mapping):
        inner = value.get("originalError")
        value = value.get("data") or (inner.get("data") if isinstance(inner, Mapping) else None)
    if not isinstance(value, str):
        return b""
    text = value.removeprefix("Reverted ")
    try:
        return bytes.fromhex(text.removeprefix("0x")) if text.startswith("0x") else b""
    except ValueError:
        return b""


def _raised(item: Json | Reverted | RpcRefused) -> Json:
    if isinstance(item, Exception):
        raise item
    return item


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _without_secrets(url: str) -> str:
    """Scheme, host and port: paths, queries and user names of RPC URLs carry API keys."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}"
