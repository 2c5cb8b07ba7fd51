"""Listings and gossip from peers that misbehave, and endpoints that lead inside."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from protocol.errors import Rejected, Retryable
from tests.transport.conftest import quick
from tests.transport.nodes import (
    Behaviour,
    Node,
    Villain,
    floods,
    head,
    in_turn,
    pattern,
    ref_of,
    says,
    stalls,
    villain,
)
from transport.client import PeerClient
from transport.errors import (
    BadAnswer,
    BadEndpoint,
    BlobUnavailable,
    PeerBusy,
    PeerUnavailable,
    RecordRefused,
)
from transport.limits import MIB, ClientLimits
from transport.store import FolderStore

TOPIC = "submissions/7"


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def start(stack: AsyncExitStack, behaviour: Behaviour) -> Villain:
    return await stack.enter_async_context(villain(behaviour))


def page(records: list[bytes], following: int | None = None) -> bytes:
    texts = [base64.b64encode(record).decode() for record in records]
    body = json.dumps({"next": following, "records": texts}, separators=(",", ":")).encode()
    return head("200 OK", Content_Length=len(body)) + body


def ok(body: bytes) -> bytes:
    return head("200 OK", Content_Length=len(body)) + body


@pytest.mark.parametrize(
    "answer",
    [
        ok(b""),
        ok(b"[]"),
        ok(b"nonsense"),
        ok(b"\xff\xfe"),
        ok(b'{"next":null,"records":[]}\n'),
        ok(b'{"next":null,"records":["!!!"]}'),
        ok(b'{"next":null,"records":["QQ"]}'),
        ok(b'{"next":null,"records":[1]}'),
        ok(b'{"next":null,"records":"QQ=="}'),
        ok(b'{"next":null}'),
        ok(b'{"next":-1,"records":[]}'),
        ok(b'{"next":true,"records":["QQ=="]}'),
        ok(b'{"next":1.5,"records":["QQ=="]}'),
        ok(b'{"next":99999999999999999999,"records":["QQ=="]}'),
        ok(b'{"next":"1","records":["QQ=="]}'),
        ok(b'{"next":5,"records":[]}'),
        ok(b"[" * 100_000),
        ok(b"9" * 100_000),
        page([b"x" * 70_000]),
        head("200 OK", Content_Length=2, Content_Encoding="gzip") + b"{}",
    ],
)
async def test_fetch_records__not_a_listing__bad_answer(
    answer: bytes, client: PeerClient, stack: AsyncExitStack
) -> None:
    peer = await start(stack, says(answer))
    with pytest.raises(BadAnswer) as caught:
        await client.fetch_records(peer.url, TOPIC)
    assert isinstance(caught.value, Rejected)


async def test_fetch_records__endless_page__cut_at_the_cap(stack: AsyncExitStack) -> None:
    peer = await start(stack, floods(head("200 OK") + b'{"next":null,"records":["', b"A" * MIB))
    async with PeerClient(quick(listing_bytes=MIB, listing_records=10)) as client:
        with pytest.raises(BadAnswer, match="more than"):
            await client.fetch_records(peer.url, TOPIC)


async def test_fetch_records__pages_without_end__refused_or_cut(stack: AsyncExitStack) -> None:
    same = await start(stack, says(page([b"a"], 5)))
    async with PeerClient(quick(listing_records=7)) as client:
        with pytest.raises(BadAnswer, match="does not end"):
            await client.fetch_records(same.url, TOPIC)
        falling = [says(page([b"a", b"b"], cursor)) for cursor in range(100, 0, -1)]
        many = await start(stack, in_turn(*falling))
        assert await client.fetch_records(many.url, TOPIC) == [b"a", b"b"] * 3 + [b"a"]
        assert len(many.asked) == 4
    async with PeerClient(quick(listing_bytes=5)) as client:
        big = await start(stack, says(page([b"123", b"456"], 9)))
        assert await client.fetch_records(big.url, TOPIC) == [b"123"]


@pytest.mark.parametrize(
    "behaviour",
    [stalls(b"x" * 100, after=10), says(head("200 OK", Content_Length=100) + b"x"), says(b"")],
    ids=["stalls", "cut", "silent"],
)
async def test_fetch_records__no_whole_answer__unavailable(
    behaviour: Behaviour, client: PeerClient, stack: AsyncExitStack
) -> None:
    peer = await start(stack, behaviour)
    with pytest.raises(PeerUnavailable) as caught:
        await client.fetch_records(peer.url, TOPIC)
    assert isinstance(caught.value, Retryable)


async def test_fetch_records__drips__unavailable_after_the_deadline(stack: AsyncExitStack) -> None:
    async def drip(request: object, writer: asyncio.StreamWriter) -> None:
        writer.write(head("200 OK"))
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    peer = await start(stack, drip)
    async with PeerClient(quick(request_timeout_s=0.5)) as client:
        with pytest.raises(PeerUnavailable, match="slow"):
            await client.fetch_records(peer.url, TOPIC)


async def test_fetch_records__many_slow_pages__unavailable_after_the_deadline(
    stack: AsyncExitStack,
) -> None:
    cursors = iter(range(10**6, 0, -1))

    async def slow(request: object, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(page([b"x"], next(cursors)))
        await writer.drain()

    peer = await start(stack, slow)
    async with PeerClient(quick(request_timeout_s=0.5)) as client:
        with pytest.raises(PeerUnavailable, match="slow"):
            await client.fetch_records(peer.url, TOPIC)
    assert len(peer.asked) <= 10


async def test_post_record__busy_full_or_refused__told_apart(
    client: PeerClient, stack: AsyncExitStack
) -> None:
    reason = json.dumps({"error": "wrong\x1b[31m signature"}, separators=(",", ":")).encode()
    answers: list[tuple[bytes, type[Exception], str]] = [
        (head("429 Slow", Retry_After=7, Content_Length=0), PeerBusy, "429"),
        (head("507 Full", Content_Length=0), PeerUnavailable, "507"),
        (head("204 Nothing"), PeerUnavailable, "204"),
        (
            head("422 No", Content_Length=len(reason)) + reason,
            RecordRefused,
            r"refused \(422\): wrong\[31m signature",
        ),
        (head("404 No", Content_Length=3) + b"???", RecordRefused, r"refused \(404\)"),
    ]
    for answer, kind, text in answers:
        peer = await start(stack, says(answer))
        with pytest.raises(kind, match=text):
            await client.post_record(peer.url, TOPIC, b"record")


async def test_check_health__another_service__bad_answer(
    client: PeerClient, stack: AsyncExitStack
) -> None:
    for body in (b"<html>", b"{}", b'{"protocol":2}', b"[]"):
        peer = await start(stack, says(ok(body)))
        with pytest.raises(BadAnswer):
            await client.check_health(peer.url)


async def test_any_request__redirect_or_cookie__not_followed_nor_kept(
    client: PeerClient, stack: AsyncExitStack
) -> None:
    inside = await start(stack, says(page([b"inside"])))
    peer = await start(
        stack,
        says(head("302 Found", Location=inside.url, Set_Cookie="a=b", Content_Length=0)),
    )
    for _ in range(2):
        with pytest.raises(PeerUnavailable, match="302"):
            await client.fetch_records(peer.url, TOPIC)
    assert inside.asked == []
    assert all("cookie" not in request.headers for request in peer.asked)


async def test_any_request__proxy_in_the_environment__ignored(
    node: Node, client: PeerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    await client.check_health(node.url)


async def test_public_run__private_endpoints__refused_unasked(
    node: Node, store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = node.server.port
    ref = node.store.put(pattern(1000))

    def inside(host: str, asked: int, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", asked))]

    monkeypatch.setattr(socket, "getaddrinfo", inside)
    async with PeerClient(ClientLimits()) as client:
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "rebind.example"):
            with pytest.raises(BadEndpoint):
                await client.check_health(f"http://{host}:{port}")
        with pytest.raises(BlobUnavailable, match="not public"):
            await client.fetch_blob(ref, [f"http://rebind.example:{port}"], store)
    async with PeerClient(ClientLimits(allow_private=True)) as client:
        await client.check_health(f"http://rebind.example:{port}")


async def test_fetch_blob__one_bad_endpoint_among_mirrors__the_others_serve(
    node: Node, client: PeerClient, store: FolderStore
) -> None:
    ref = node.store.put(pattern(1000))
    mirrors = ["ftp://127.0.0.1:1", "", "http://user@127.0.0.1:1", node.url]
    fetched = await client.fetch_blob(ref, mirrors, store)
    assert fetched.mirrors == {node.url}
    assert store.has(ref_of(pattern(1000)).digest)
