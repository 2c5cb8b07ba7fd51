"""Connections, limited before a byte of them is read: so many in all, so many per peer."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from transport.limits import KIB, ServerLimits
from transport.rate import peer_of

logger = logging.getLogger(__name__)

_LINGER_S = 1.0


class _Log(logging.LoggerAdapter[logging.Logger]):
    """Lets no stranger fill the log: a request that is not HTTP is worth a debug line."""

    def exception(
        self, msg: object, *args: object, exc_info: object = True, **kwargs: object
    ) -> None:
        level = logging.DEBUG if isinstance(exc_info, HttpProcessingError) else logging.ERROR
        self.log(level, msg, *args, exc_info=exc_info, **kwargs)  # type: ignore[arg-type]


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
            logger=_Log(logger),
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
            # Not at once: aiohttp's task for the connection must have begun, or it trips over itself.
            asyncio.get_running_loop().call_soon(transport.abort)

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
