"""What a server gives, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from protocol.errors import OperatorError, Rejected
from tests.transport.conftest import quick
from tests.transport.nodes import Node, pattern, ref_of
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.errors import BadName, CannotListen, PeerUnavailable
from transport.limits import KIB, MIB, ServerLimits
from transport.server import NodeServer, Requester
from transport.store import FolderStore

DATA = pattern(300_000)
TOPIC = "submissions/7"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as opened:
        yield opened


async def raw(node: Node, *parts: bytes, pause_s: float = 0.0) -> bytes:
    """Sends bytes as they are and reads until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.server.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_s)
        async with asyncio.timeout(5):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def test_health__asked__ok(node: Node, client: PeerClient) -> None:
    await client.check_health(node.url)


async def test_blob__whole_and_head__right_headers(
    node: Node, session: aiohttp.ClientSession
) -> None:
    digest = node.store.put(DATA).digest.hex()
    url = f"{node.url}/v1/blobs/{digest}"
    async with session.get(url) as response:
        assert response.status == 200
        assert await response.read() == DATA
        assert response.headers["Content-Length"] == str(len(DATA))
        assert response.headers["Accept-Ranges"] == "bytes"
        assert response.headers["Content-Type"] == "application/octet-stream"
    async with session.head(url) as response:
        assert response.status == 200
        assert response.headers["Content-Length"] == str(len(DATA))
        assert await response.read() == b""
    async with session.head(f"{node.url}/v1/blobs/{'0' * 64}") as response:
        assert response.status == 404


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, 300_000),
        ("bytes=5-9", 5, 10),
        ("bytes=299999-400000", 299_999, 300_000),
        ("bytes=-7", 299_993, 300_000),
        ("bytes=-400000", 0, 300_000),
    ],
)
async def test_blob__range__exactly_that(
    header: str, start: int, stop: int, node: Node, session: aiohttp.ClientSession
) -> None:
    url = f"{node.url}/v1/blobs/{node.store.put(DATA).digest.hex()}"
    async with session.get(url, headers={"Range": header}) as response:
        assert response.status == 206
        assert await response.read() == DATA[start:stop]
        assert response.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(DATA)}"
        assert response.headers["Content-Length"] == str(stop - start)


async def test_blob__ranges_out_of_reach_or_strange__416_or_whole(
    node: Node, session: aiohttp.ClientSession
) -> None:
    url = f"{node.url}/v1/blobs/{node.store.put(DATA).digest.hex()}"
    for header in ("bytes=300000-", "bytes=-0"):
        async with session.get(url, headers={"Range": header}) as response:
            assert response.status == 416
            assert response.headers["Content-Range"] == "bytes */300000"
    for header in ("bytes=0-1,3-4", "items=0-1", "bytes=9-5", "bytes=-", "bytes=x-y"):
        async with session.get(url, headers={"Range": header}) as response:
            assert response.status == 200
            assert await response.read() == DATA


async def test_blob__empty__served(node: Node, session: aiohttp.ClientSession) -> None:
    url = f"{node.url}/v1/blobs/{node.store.put(b'').digest.hex()}"
    async with session.get(url) as response:
        assert (response.status, await response.read()) == (200, b"")


async def test_blob__rotten_on_disk__404_rather_than_wrong_bytes(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    digest = FolderStore(tmp_path / "node" / "blobs", 10 * MIB).put(DATA).digest.hex()
    path = tmp_path / "node" / "blobs" / "blobs" / digest[:2] / digest
    path.write_bytes(pattern(300_000, seed=2))
    async with (
        Node.running(tmp_path / "node") as node,
        session.get(f"{node.url}/v1/blobs/{digest}") as response,
    ):
        assert response.status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/v1/",
        "/v1/blobs",
        "/v1/blobs/",
        "/v1/blobs/..%2f..%2fsecret",
        "/v1/blobs/../../secret",
        "/v1/blobs/%2e%2e/%2e%2e/secret",
        "/v1/blobs//etc/passwd",
        "/v1/blobs/" + "A" * 64,
        "/v1/blobs/" + "0" * 63 + "%30",
        "/v1/blobs/" + "0" * 65,
        "/v1/blobs/" + "0" * 64 + "/",
        "/v1/records/../blobs",
        "/v1/records/..%2f..%2fsecret",
        "/v1/records/a%2fb",
        "/v1/records/a//b",
        "/v1/records/%00",
        "/v1/records/.hidden",
        "/v1/records/\xff\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        "/v1/records/a?before=-1",
        "/v1/records/a?before=1e3",
        "/v1/records/a?before=99999999999999999",
        "/v2/health",
        "http://elsewhere/v1/blobs/x",
    ],
)
async def test_any_path__outside_the_grammar__404(path: str, node: Node, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"treasure")
    (node.store.root / "secret").write_bytes(b"treasure")
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = await raw(node, request.encode("latin-1"))
    assert answer.split(b"\r\n")[0] in (b"HTTP/1.1 404 Not Found", b"HTTP/1.0 400 Bad Request")
    assert b"treasure" not in answer


async def test_methods__not_offered__405(node: Node, session: aiohttp.ClientSession) -> None:
    for method, path in [
        ("PUT", f"/v1/blobs/{'0' * 64}"),
        ("DELETE", f"/v1/blobs/{'0' * 64}"),
        ("POST", "/v1/health"),
        ("POST", f"/v1/records/{TOPIC}"),  # no verifier: gossip is off
        ("PATCH", f"/v1/records/{TOPIC}"),
    ]:
        async with session.request(method, node.url + path, data=b"x") as response:
            assert response.status == 405
    assert node.board.topics() == []


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\0\1\2\3\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n" + b"X: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n" + b"X: a\r\n" * 1000 + b"\r\n",
        b"POST /v1/records/a HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/records/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
    ids=["binary", "version", "long-path", "long-header", "many-headers", "length", "chunk"],
)
async def test_any_request__not_http__refused_and_the_server_lives(
    request_bytes: bytes, node: Node, client: PeerClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await raw(node, request_bytes)
    assert answer == b"" or answer.split(b" ")[1].startswith(b"4")
    await client.check_health(node.url)
    assert caplog.records == []  # a stranger does not fill the log


async def test_head__trickles_in__connection_closed(tmp_path: Path) -> None:
    async with Node.running(tmp_path, ServerLimits(head_timeout_s=0.3)) as node:
        began = time.monotonic()
        trickle = [b"GET /v1/health HTTP/1.1\r\n"] + [b"X: y\r\n"] * 20
        assert await raw(node, *trickle, pause_s=0.1) == b""
        assert await raw(node) == b""  # a connection that says nothing
        assert time.monotonic() - began < 4


async def test_reader__slow_but_never_stalled__cut_off(tmp_path: Path) -> None:
    limits = ServerLimits(write_timeout_s=0.5, min_bytes_per_s=1 << 30)
    async with Node.running(tmp_path, limits) as node:
        digest = node.store.put(pattern(64 * MIB)).digest.hex()
        reader, writer = await asyncio.open_connection("127.0.0.1", node.server.port, limit=KIB)
        writer.write(f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        taken = 0
        with suppress(ConnectionError):
            while chunk := await reader.read(64 * KIB):
                taken += len(chunk)
                await asyncio.sleep(0.02)
        assert 0 < taken < 32 * MIB
        writer.close()


async def test_reader__stalls__cut_off(tmp_path: Path, client: PeerClient) -> None:
    limits = ServerLimits(write_timeout_s=0.3, transfers=1)
    async with Node.running(tmp_path, limits) as node:
        digest = node.store.put(pattern(64 * MIB)).digest.hex()
        reader, writer = await asyncio.open_connection("127.0.0.1", node.server.port, limit=KIB)
        writer.write(f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readexactly(KIB)
        ref = node.store.put(b"small")
        store = FolderStore(tmp_path / "mine", MIB)
        await client.fetch_blob(ref, [node.url], store)  # refused as busy until the cut
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(64 * MIB)
        writer.close()


async def test_reader_of_a_listing__stalls__cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listing = [bytes(50 * KIB)] * 600
    limits = ServerLimits(write_timeout_s=0.3, listing_bytes=32 * MIB)
    provided = {"big": lambda topic, requester: listing}
    async with Node.running(tmp_path, limits, providers=provided) as node:
        reader, writer = await asyncio.open_connection("127.0.0.1", node.server.port, limit=KIB)
        writer.write(b"GET /v1/records/big HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(KIB)
        await asyncio.sleep(1)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(32 * MIB)
        writer.close()
    assert caplog.records == []


async def test_requests__broken_off__no_noise_in_the_log(
    tmp_path: Path, client: PeerClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with Node.running(tmp_path, verifier=by_prefix) as node:
        digest = node.store.put(pattern(8 * MIB)).digest.hex()
        for begun in (
            f"POST /v1/records/{TOPIC} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na:",
            f"POST /v1/records/{TOPIC} HTTP/1.1\r\nHost: x\r\n"
            "Transfer-Encoding: chunked\r\n\r\n5\r\na:one\r\nZZ\r\n",
            f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /v1/he",
        ):
            for _ in range(3):
                _, writer = await asyncio.open_connection("127.0.0.1", node.server.port)
                writer.write(begun.encode())
                await writer.drain()
                await asyncio.sleep(0.02)
                writer.transport.abort()
        await asyncio.sleep(0.1)
        await client.check_health(node.url)
        assert node.board.topics() == []
    assert caplog.records == []


async def test_requests__too_many__429_until_rested(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    limits = ServerLimits(requests_per_s=5, request_burst=3)
    async with Node.running(tmp_path, limits) as node:
        answers = []
        for _ in range(5):
            async with session.get(f"{node.url}/v1/health") as response:
                answers.append((response.status, response.headers.get("Retry-After")))
        assert answers == [(200, None)] * 3 + [(429, "1")] * 2
        await asyncio.sleep(0.3)
        async with session.get(f"{node.url}/v1/health") as response:
            assert response.status == 200


async def test_bytes__too_many__429_until_the_debt_is_paid(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    limits = ServerLimits(bytes_per_s=1_000_000, byte_burst=100_000)
    async with Node.running(tmp_path, limits) as node:
        url = f"{node.url}/v1/blobs/{node.store.put(DATA).digest.hex()}"
        async with session.get(url) as response:
            assert len(await response.read()) == len(DATA)  # begun is finished
        async with session.get(url) as response:
            assert response.status == 429
        await asyncio.sleep(0.3)
        async with session.get(url) as response:
            assert response.status == 200


async def test_transfers__too_many_of_one_peer__503(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    release = asyncio.Event()

    async def wait(topic: str, record: bytes) -> str:
        await release.wait()
        return "key"

    limits = ServerLimits(transfers_per_peer=2)
    async with (
        Node.running(tmp_path, limits, verifier=wait) as node,
        PeerClient(quick(read_timeout_s=9)) as client,
    ):
        posts = [
            asyncio.create_task(client.post_record(node.url, TOPIC, b"%d" % number))
            for number in range(2)
        ]
        await until(lambda: node.server._transfers.total() == 2)
        digest = node.store.put(DATA).digest.hex()
        async with session.get(f"{node.url}/v1/blobs/{digest}") as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
        release.set()
        assert await asyncio.gather(*posts) == [True, True]
        async with session.get(f"{node.url}/v1/blobs/{digest}") as response:
            assert response.status == 200


async def test_connections__too_many_of_one_peer__dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Node.running(tmp_path, ServerLimits(connections_per_peer=3)) as node:
        opened = [await asyncio.open_connection("127.0.0.1", node.server.port) for _ in range(3)]
        await asyncio.sleep(0.05)
        assert (
            await raw(node, b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            == b""
        )
        for _, writer in opened:
            writer.close()
        await asyncio.sleep(0.05)
        answer = await raw(node, b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200")
    assert caplog.records == []


async def test_start__port_in_use__operator_told(node: Node, tmp_path: Path) -> None:
    other = NodeServer(FolderStore(tmp_path / "b", MIB), RecordBoard(tmp_path / "r"))
    with pytest.raises(CannotListen, match="in use") as caught:
        await other.start("127.0.0.1", node.server.port)
    assert isinstance(caught.value, OperatorError)
    assert "another port" in caught.value.fix
    await other.start("127.0.0.1")  # the failed start left nothing behind
    with pytest.raises(RuntimeError, match="already"):
        await other.start("127.0.0.1")
    await other.stop()
    await other.stop()


@pytest.mark.parametrize(
    ("host", "port", "fix"),
    [("192.0.2.1", 0, "0.0.0.0"), ("127.0.0.1", 99_999, "another address or port")],
)
async def test_start__impossible_address__operator_told(
    host: str, port: int, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # 192.0.2.1 is looked at, not connected to
    server = NodeServer(FolderStore(tmp_path / "b", MIB), RecordBoard(tmp_path / "r"))
    with pytest.raises(CannotListen) as caught:
        await server.start(host, port)
    assert fix in caught.value.fix


async def test_stop__transfer_under_way__finished(tmp_path: Path) -> None:
    data = pattern(8 * MIB)
    async with Node.running(tmp_path) as node:
        digest = node.store.put(data).digest.hex()
        port = node.server.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=64 * KIB)
        writer.write(f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        stopping = asyncio.create_task(node.server.stop())
        await asyncio.sleep(0.05)
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0  # no new ones
        assert await reader.readexactly(len(data)) == data
        writer.close()
        await stopping


async def test_stop__reader_stalls__cut_after_the_grace(tmp_path: Path) -> None:
    async with Node.running(tmp_path, ServerLimits(shutdown_grace_s=0.3)) as node:
        digest = node.store.put(pattern(64 * MIB)).digest.hex()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", node.server.port, limit=64 * KIB
        )
        writer.write(f"GET /v1/blobs/{digest} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        began = time.monotonic()
        await node.server.stop()
        assert time.monotonic() - began < 3
        writer.close()


async def test_twenty_clients__at_once__all_served(tmp_path: Path) -> None:
    blobs = [pattern(400_000 + number, seed=number) for number in range(5)]
    async with Node.running(tmp_path / "node") as node:
        refs = [node.store.put(data) for data in blobs]
        for number in range(50):
            node.board.put(TOPIC, f"key{number}", pattern(1000, seed=number))

        async def work(number: int) -> None:
            store = FolderStore(tmp_path / f"client{number}", 10 * MIB)
            async with PeerClient(quick(read_timeout_s=30)) as client:
                await asyncio.gather(*(client.fetch_blob(ref, [node.url], store) for ref in refs))
                assert len(await client.fetch_records(node.url, TOPIC)) == 50
            for ref, data in zip(refs, blobs, strict=True):
                assert await asyncio.to_thread(store.get, ref.digest) == data

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(work(number))


def by_prefix(topic: str, record: bytes) -> str:
    """Takes records of the form ``key:rest``."""
    key, colon, _ = record.decode(errors="replace").partition(":")
    if not colon:
        raise Rejected(f"{topic}: no key in the record")
    return key


async def slow_by_prefix(topic: str, record: bytes) -> str:
    await asyncio.sleep(0.01)
    return by_prefix(topic, record)


@pytest.mark.parametrize("verifier", [by_prefix, slow_by_prefix])
async def test_gossip__verified__stored_once_and_conflicts_kept(
    verifier: Callable[[str, bytes], Awaitable[str] | str], tmp_path: Path, client: PeerClient
) -> None:
    async with Node.running(tmp_path, verifier=verifier) as node:
        assert await client.post_record(node.url, TOPIC, b"a:one")
        assert not await client.post_record(node.url, TOPIC, b"a:one")
        assert await client.post_record(node.url, TOPIC, b"a:two")
        assert node.board.get(TOPIC, "a") == [b"a:two", b"a:one"]
        assert await client.fetch_records(node.url, TOPIC) == [b"a:two", b"a:one"]


async def test_gossip__refused__nothing_stored(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    limits = ServerLimits(record_bytes=1000, body_timeout_s=0.3)
    async with Node.running(tmp_path, limits, verifier=by_prefix) as node:
        url = f"{node.url}/v1/records/"
        for topic, record, status in [
            (TOPIC, b"no key", 422),
            (TOPIC, b"../../evil:x", 422),  # the verifier's key is checked all the same
            (TOPIC, b"", 422),
            (TOPIC, b"a:" + b"x" * 1000, 413),
            ("..%2fevil", b"a:one", 404),
        ]:
            async with session.post(url + topic, data=record) as response:
                assert response.status == status
                assert "error" in json.loads(await response.read())
        lines = f"POST /v1/records/{TOPIC} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\na:"
        assert b" 408 " in await raw(node, lines.encode())
        assert node.board.topics() == []


async def test_gossip__verifier_hangs_or_breaks__answered_and_nothing_stored(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    async def hang(topic: str, record: bytes) -> str:
        await asyncio.sleep(60)
        return "key"

    def broken(topic: str, record: bytes) -> str:
        raise ZeroDivisionError

    limits = ServerLimits(verify_timeout_s=0.2)
    for verifier, status in ((hang, 503), (broken, 500)):
        root = tmp_path / verifier.__name__
        async with Node.running(root, limits, verifier=verifier) as node:
            url = f"{node.url}/v1/records/{TOPIC}"
            async with session.post(url, data=b"record") as response:
                assert response.status == status
            assert node.board.topics() == []


async def test_provider__answers_for_its_topics__else_the_board(tmp_path: Path) -> None:
    asked: list[tuple[str, Requester]] = []

    def split(topic: str, requester: Requester) -> list[bytes] | None:
        asked.append((topic, requester))
        if topic == "submissions/9":
            return None
        return [f"for {requester.name}".encode()]

    async with Node.running(tmp_path, providers={"submissions": split}) as node:
        node.board.put("submissions/9", "key", b"from the board")
        node.board.put("checkpoints", "key", b"checkpoint")
        for name in ("alice", "bob"):
            async with PeerClient(quick(), name=name) as client:
                assert await client.fetch_records(node.url, TOPIC) == [f"for {name}".encode()]
                assert await client.fetch_records(node.url, "submissions/9") == [b"from the board"]
                assert await client.fetch_records(node.url, "checkpoints") == [b"checkpoint"]
    assert {topic for topic, _ in asked} == {TOPIC, "submissions/9"}
    assert asked[0][1] == Requester(host="127.0.0.1", name="alice")
    with pytest.raises(BadName):
        PeerClient(name="alice\r\nX: y")


async def test_listing__more_than_a_page__client_reads_on(
    tmp_path: Path, client: PeerClient
) -> None:
    records = [pattern(1000, seed=number) for number in range(30)]
    limits = ServerLimits(record_bytes=2000, listing_bytes=4500, listing_records=100)
    provided = {"provided": lambda topic, requester: records[::-1]}
    async with Node.running(tmp_path, limits, providers=provided) as node:
        for number, record in enumerate(records):
            node.board.put(TOPIC, f"key{number}", record)
        assert await client.fetch_records(node.url, TOPIC) == records[::-1]
        assert await client.fetch_records(node.url, "provided") == records[::-1]
        assert await client.fetch_records(node.url, "nothing") == []


async def test_stopped__asked__unavailable(tmp_path: Path, client: PeerClient) -> None:
    async with Node.running(tmp_path) as node:
        url = node.url
        node.store.put(DATA)
        assert await client.has_blob(url, ref_of(DATA))
        assert not await client.has_blob(url, ref_of(b"other"))
    with pytest.raises(PeerUnavailable):
        await client.check_health(url)
    with pytest.raises(PeerUnavailable):
        await client.fetch_records(url, TOPIC)
