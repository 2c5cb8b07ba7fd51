"""Fixtures of the transport tests; a test that leaves 127.0.0.1 fails."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.transport.nodes import Node
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.limits import MIB, ClientLimits
from transport.store import FolderStore

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are not resolved and strangers not connected to, unless a test brings a fake."""

    def resolve(host: str, *arguments: object, **options: object) -> object:
        assert host in LOOPBACK, f"a test resolves {host}"
        return real_resolve(host, *arguments, **options)  # type: ignore[arg-type]

    async def connect(
        self: asyncio.BaseEventLoop, sock: socket.socket, address: tuple[str, int]
    ) -> None:
        assert address[0] in LOOPBACK, f"a test connects to {address}"
        await real_connect(self, sock, address)

    real_resolve = socket.getaddrinfo
    real_connect = asyncio.SelectorEventLoop.sock_connect
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    """An empty store, the one that tests fetch into."""
    return FolderStore(tmp_path / "store", 256 * MIB)


@pytest.fixture
def board(tmp_path: Path) -> RecordBoard:
    """An empty board."""
    return RecordBoard(tmp_path / "board")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    """An honest node that serves."""
    async with Node.running(tmp_path / "node") as running:
        yield running


@pytest.fixture
async def client() -> AsyncIterator[PeerClient]:
    """A client with little patience."""
    async with PeerClient(quick()) as opened:
        yield opened


def quick(**changes: float) -> ClientLimits:
    """A devnet client's limits with timeouts that suit a test."""
    values: dict[str, float] = {"connect_timeout_s": 1.0, "read_timeout_s": 0.3}
    return ClientLimits(allow_private=True, **{**values, **changes})  # type: ignore[arg-type]
