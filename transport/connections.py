"""Connections, limited before a byte of them is read: so many in all, so many per peer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web

from transport.limits import KIB, ServerLimits
from transport.rate import peer_of

_LINGER_S = 1.0


class LimitedServer(web.Server):
    """aiohttp's low-level server, less the connections beyond the limits.

    A connection that brings no complete request head in time, at its start or between requests, is
    closed by aiohttp's keep-alive timer.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        limits: ServerLimits,
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            keepalive_timeout=limits.head_timeout_s,
            lingering_time=_LINGER_S,
            auto_decompress=False,
            read_bufsize=64 * KIB,
        )
        self._limits = limits
        self._peers: Counter[str] = Counter()
        self._peer_of: dict[web.RequestHandler, str] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Takes a connection, or drops it when there are too many."""
        super().connection_made(handler, transport)
        peername = transport.get_extra_info("peername")
        peer = peer_of(peername[0]) if isinstance(peername, tuple) else ""
        self._peer_of[handler] = peer
        self._peers[peer] += 1
        if (
            len(self._peer_of) > self._limits.connections
            or self._peers[peer] > self._limits.connections_per_peer
        ):
            transport.abort()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        """Gives the connection's place back."""
        super().connection_lost(handler, exc)
        peer = self._peer_of.pop(handler, None)
        if peer is not None:
            self._peers[peer] -= 1
            if not self._peers[peer]:
                del self._peers[peer]
