"""Fixtures of the stepped subnet; a test that leaves 127.0.0.1 fails."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.chain import Anvil
from tests.subnet.stepped import start_stepped_anvil


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(
        self: asyncio.BaseEventLoop, sock: socket.socket, address: tuple[str, int]
    ) -> None:
        assert address[0] in ("127.0.0.1", "::1"), f"a test connects to {address}"
        await real_connect(self, sock, address)

    real_connect = asyncio.SelectorEventLoop.sock_connect
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)


@pytest.fixture
def stepped_anvil() -> Iterator[Anvil]:
    """A chain whose time is the test's: a block with each transaction, a second with each block."""
    with start_stepped_anvil() as chain:
        yield chain
