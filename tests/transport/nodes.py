"""Nodes for tests: honest ones, and ones that misbehave in a single stated way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from protocol.hashing import sha256
from protocol.ids import Hash32
from protocol.submission import BlobRef
from transport.board import RecordBoard
from transport.limits import MIB, ServerLimits
from transport.server import NodeServer, Provider, Verifier
from transport.store import FolderStore


def pattern(size: int, seed: int = 1) -> bytes:
    """``size`` bytes that differ at every offset of interest."""
    block = b"".join(sha256(seed.to_bytes(4, "big") + i.to_bytes(4, "big")) for i in range(512))
    return (block * (size // len(block) + 1))[:size]


def ref_of(data: bytes) -> BlobRef:
    """The true reference of some bytes."""
    return BlobRef(digest=Hash32(sha256(data)), size=len(data))


@dataclass(frozen=True, kw_only=True)
class Node:
    """An honest node."""

    store: FolderStore
    board: RecordBoard
    server: NodeServer

    @property
    def url(self) -> str:
        return self.server.url

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        root: Path,
        limits: ServerLimits | None = None,
        *,
        verifier: Verifier | None = None,
        providers: Mapping[str, Provider] | None = None,
    ) -> AsyncIterator[Node]:
        store = FolderStore(root / "blobs", 1024 * MIB)
        board = RecordBoard(root / "records")
        server = NodeServer(store, board, limits, verifier=verifier, providers=providers)
        await server.start("127.0.0.1")
        try:
            yield cls(store=store, board=board, server=server)
        finally:
            await server.stop()


@dataclass(kw_only=True)
class Request:
    """What a villain was asked."""

    method: str
    path: str
    headers: dict[str, str]

    def start(self) -> int:
        """The first byte that is asked for."""
        text = self.headers.get("range", "bytes=0-")
        return int(text.removeprefix("bytes=").split("-")[0])


Behaviour = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass(kw_only=True)
class Villain:
    """A raw server under a test's control, which keeps what it was asked."""

    url: str = ""
    asked: list[Request] = field(default_factory=list)


@asynccontextmanager
async def villain(behaviour: Behaviour) -> AsyncIterator[Villain]:
    """Runs a behaviour: one request a connection, closed afterwards."""
    running = Villain()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            method, path, _ = first.split(" ")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            request = Request(method=method, path=path, headers=headers)
            running.asked.append(request)
            await behaviour(request, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield running
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def head(status: str, **headers: str | int) -> bytes:
    """The head of an answer; underscores in names become dashes."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def blob_head(request: Request, size: int) -> bytes:
    """The head of an honest answer for a blob of ``size`` bytes."""
    start = request.start()
    if "range" not in request.headers:
        return head("200 OK", Content_Length=size)
    return head(
        "206 Partial Content",
        Content_Length=size - start,
        Content_Range=f"bytes {start}-{size - 1}/{size}",
    )


def serves(data: bytes) -> Behaviour:
    """Serves these bytes, with ranges: honest if they are the right ones."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(blob_head(request, len(data)) + data[request.start() :])
        await writer.drain()

    return behave


def cuts(data: bytes, after: int) -> Behaviour:
    """Sends ``after`` bytes of what is asked for, then closes the connection."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        start = request.start()
        writer.write(blob_head(request, len(data)) + data[start : start + after])
        await writer.drain()

    return behave


def stalls(data: bytes, after: int) -> Behaviour:
    """Sends ``after`` bytes of what is asked for, then nothing more."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        start = request.start()
        writer.write(blob_head(request, len(data)) + data[start : start + after])
        await writer.drain()
        await asyncio.sleep(60)

    return behave


def drips(data: bytes, pause_s: float) -> Behaviour:
    """Sends one byte at a time, never slow enough to look stalled."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(blob_head(request, len(data)))
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(pause_s)

    return behave


def says(*parts: bytes) -> Behaviour:
    """Says these bytes whatever it is asked."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.writelines(parts)
        await writer.drain()

    return behave


def floods(first: bytes, more: bytes) -> Behaviour:
    """Says ``first``, then ``more`` for ever."""

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(more)
            await writer.drain()

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One behaviour after the other, the last for ever."""
    left = list(behaviours)

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, writer)

    return behave
