"""The connection: what can be wrong with a node, and what is said about it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from aiohttp import web

from ledger.connection import Connection, Request
from ledger.contracts.token import SynToken
from ledger.errors import (
    Reverted,
    RpcDenied,
    RpcRefused,
    RpcUnavailable,
    RpcUnreachable,
    WrongChain,
)
from protocol.errors import OperatorError, Retryable
from protocol.ids import Address
from tests.chain import Anvil
from tests.ledger.fake_node import RpcFault, fake_node
from tests.ledger.world import stranger


@pytest.mark.parametrize(
    "url", ["", "localhost:8545", "ws://127.0.0.1:8545", "http://", "http://x:99999", "ftp://x"]
)
async def test_open__no_http_url__says_what_one_looks_like(url: str) -> None:
    with pytest.raises(RpcUnreachable, match=r"http://127\.0\.0\.1:8545"):
        await Connection.open(url)


async def test_open__nobody_listens__says_what_to_do() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(RpcUnreachable) as refused:
            await Connection.open(f"http://127.0.0.1:{port}/v3/secret-key")
    text = str(refused.value)
    assert isinstance(refused.value, OperatorError)
    assert f"http://127.0.0.1:{port}" in text
    assert "check --rpc" in text
    assert "secret-key" not in text
    assert "\n" not in text


async def test_open__wrong_chain__names_both() -> None:
    async with fake_node(lambda method, params: "0x7") as node:
        with pytest.raises(WrongChain, match=r"follows chain 7, the run lives on chain 8"):
            await Connection.open(node.url, chain_id=8)
        async with await Connection.open(node.url, chain_id=7) as connection:
            assert connection.chain_id == 7


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (404, "no", RpcDenied),
        (401, "no", RpcDenied),
        (500, "no", RpcUnreachable),
        (200, "<html>hello</html>", RpcUnreachable),
        (200, "[]", RpcUnreachable),
        (200, "{}", RpcUnreachable),
        (200, '{"jsonrpc":"2.0","id":0,"result":"seven"}', RpcUnreachable),
        (200, '{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"x"}}', RpcUnreachable),
        (200, '{"jsonrpc":"2.0","id":0,"error":"x"}', RpcUnreachable),
    ],
)
async def test_open__no_ethereum_node__is_for_the_operator(
    status: int, body: str, expected: type[OperatorError]
) -> None:
    async with fake_node() as node:
        node.raw = lambda: web.Response(status=status, text=body)
        with pytest.raises(expected):
            await Connection.open(node.url)


async def test_request__slow_node__times_out() -> None:
    class Slow(web.Response):
        async def prepare(self, request: web.BaseRequest) -> Any:
            await asyncio.sleep(1)
            return await super().prepare(request)

    async with fake_node() as node, await Connection.open(node.url, timeout_s=0.2) as connection:
        node.raw = Slow
        with pytest.raises(RpcUnavailable, match="in time"):
            await connection.head()


async def test_request__connection_dropped__is_sent_once_more() -> None:
    async with fake_node() as node, await Connection.open(node.url) as connection:
        node.drop_next = True
        assert await connection.balance(stranger()) == 1
        assert node.asked[-2:] == ["eth_getBalance"] * 2


async def test_request__node_gone__is_retryable() -> None:
    async with fake_node() as node:
        connection = await Connection.open(node.url)
    with pytest.raises(Retryable):
        await connection.head()
    await connection.aclose()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (RpcFault(-32005, "limit exceeded"), RpcUnavailable),
        (RpcFault(-32602, "invalid params"), RpcRefused),
        (RpcFault(3, "execution reverted", "0x"), Reverted),
        (RpcFault(-32000, "execution reverted"), Reverted),
        (RpcFault(-32015, "VM execution error.", "Reverted 0x01020304"), Reverted),
        (RpcFault(-32603, "boxed", {"data": "0x01020304"}), Reverted),
        (RpcFault(-32603, "boxed", {"originalError": {"data": "0x01020304"}}), Reverted),
    ],
)
async def test_request__errors__sorted_by_kind(fault: RpcFault, expected: type[Exception]) -> None:
    def answer(method: str, params: list[Any]) -> str:
        if method == "eth_call":
            raise fault
        return "0x1"

    async with fake_node(answer) as node, await Connection.open(node.url) as connection:
        with pytest.raises(expected):
            await connection.read(stranger(), b"")


async def test_batch__one_error__others_keep_their_results() -> None:
    def answer(method: str, params: list[Any]) -> str:
        if method == "bad":
            raise RpcFault(-32601, "no such method")
        return method

    async with fake_node() as node, await Connection.open(node.url) as connection:
        node.answer = answer
        requests = [Request(f"m{i}", []) for i in range(150)]
        assert await connection.batch(requests) == [f"m{i}" for i in range(150)]
        requests[120] = Request("bad", [])
        results = await connection.try_batch(requests)
        assert isinstance(results[120], RpcRefused)
        assert results[119] == "m119"
        with pytest.raises(RpcRefused):
            await connection.batch(requests)


async def test_batch__node_that_takes_none__gets_one_by_one() -> None:
    async with fake_node() as node, await Connection.open(node.url) as connection:
        node.takes_batches = False
        requests = [Request(f"m{i}", []) for i in range(3)]
        node.answer = lambda method, params: method
        for _ in range(2):
            assert await connection.batch(requests) == ["m0", "m1", "m2"]
        assert node.asked == ["eth_chainId", *["m0", "m1", "m2"] * 3]


@pytest.mark.parametrize(
    "answers", ["[]", "[1, 2]", '[{"id": 2, "result": 1}, {"id": 2, "result": 1}]', "7"]
)
async def test_batch__answers_that_fit_no_request__are_the_nodes_fault(answers: str) -> None:
    async with fake_node() as node, await Connection.open(node.url) as connection:
        node.raw = lambda: web.Response(text=answers)
        with pytest.raises(RpcUnavailable):
            await connection.batch([Request("a", []), Request("b", [])])


async def test_request__cancelled__blocks_no_other() -> None:
    async with fake_node() as node, await Connection.open(node.url) as connection:
        for _ in range(20):
            tasks = [asyncio.create_task(connection.head()) for _ in range(5)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        assert await asyncio.wait_for(connection.balance(stranger()), 5) == 1


async def test_wrapper__address_without_contract__is_undecodable(anvil: Anvil) -> None:
    async with await Connection.open(anvil.url) as connection:
        with pytest.raises(Exception, match="cannot decode 0 bytes"):
            await SynToken(connection, stranger()).cap()


async def test_views__real_chain__are_read(anvil: Anvil) -> None:
    signer = anvil.key(3)
    async with await Connection.open(anvil.url, chain_id=31337) as connection:
        assert await connection.balance(signer.address) == 3 * 10**18
        assert await connection.transaction_count(signer.address) == 0
        assert await connection.code(signer.address) == b""
        head = await connection.head()
        again = await connection.block(head.number)
        assert again == head
        assert await connection.block(head.number + 1_000) is None
        genesis = await connection.block(0)
        assert genesis is not None
        assert await connection.genesis_hash() == genesis.hash
        assert Address(signer.address) == signer.address
