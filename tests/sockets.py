"""Unit tests open no connections; a `conftest.py` imports the fixture to say so for its folder."""

from __future__ import annotations

import asyncio
import socket

import pytest


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test that connects, listens or resolves. The event loop's own pair of sockets is none of these."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a unit test uses the network")

    for name in ("connect", "connect_ex", "bind", "listen"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", refuse)
