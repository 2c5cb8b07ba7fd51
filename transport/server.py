"""What a node serves: blobs by digest, listings of records, and a door for gossip.

    GET       /v1/health
    GET HEAD  /v1/blobs/<sha-256>               with Range
    GET       /v1/records/<topic>?before=<n>    a page, newest first (see `listing`)
    POST      /v1/records/<topic>               one record, if the verifier takes it

The server interprets nothing. It distrusts everybody alike: rates, connections and sizes are
limited per peer, every read and write has a deadline, and a record is stored only after the
verifier has accepted it. Errors are JSON ``{"error": text}``.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import BinaryIO

from aiohttp import web

from protocol import canonical
from protocol.errors import OperatorError, Rejected, Retryable
from protocol.ids import Hash32
from transport.board import RecordBoard
from transport.connections import LimitedServer
from transport.errors import BadName, BlobMissing, CannotListen, PeerBusy, RecordRefused
from transport.limits import MIB, ServerLimits
from transport.listing import MAX_CURSOR, Page, page_of
from transport.names import NAME_HEADER, check_node_name, check_topic, family, parse_digest
from transport.ranges import Unsatisfiable, parse_range
from transport.rate import RateLimiter, peer_of, retry_after
from transport.store import FolderStore
from transport.threads import Threads

logger = logging.getLogger(__name__)

_THREADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """Who asks: the remote address, and what it calls itself (unproven, may be empty)."""

    host: str
    name: str


Provider = Callable[[str, Requester], list[bytes] | None]
"""Answers a listing itself, newest first: (topic, requester) to records, or None for the board's."""

Verifier = Callable[[str, bytes], Awaitable[str] | str]
"""Decides on a posted record: (topic, record) to the key to store it under; raises `Rejected`."""


class NodeServer:
    """The HTTP side of a node.

    Peers are told apart by the address that they connect from. Behind a reverse proxy all of them
    have the proxy's: let it limit them, and raise the limits per peer here.

    Args:
        store: the blobs to serve.
        board: the records to serve.
        limits: what peers may take.
        verifier: decides on posted records; without one nothing can be posted.
        providers: by topic or family of topics (its first segment), who answers listings itself.
    """

    def __init__(
        self,
        store: FolderStore,
        board: RecordBoard,
        limits: ServerLimits | None = None,
        *,
        verifier: Verifier | None = None,
        providers: Mapping[str, Provider] | None = None,
    ) -> None:
        self._store = store
        self._board = board
        self._limits = limits or ServerLimits()
        self._verifier = verifier
        self._providers = dict(providers or {})
        self._requests = RateLimiter(
            per_s=self._limits.requests_per_s,
            burst=self._limits.request_burst,
            clock=time.monotonic,
        )
        self._bytes = RateLimiter(
            per_s=self._limits.bytes_per_s, burst=self._limits.byte_burst, clock=time.monotonic
        )
        self._transfers: Counter[str] = Counter()
        self._threads = Threads("serve", _THREADS)
        self._runner: web.ServerRunner | None = None
        self._host = ""

    async def start(self, host: str, port: int = 0) -> None:
        """Listens; port 0 takes a free one.

        Raises:
            CannotListen: the address is taken, privileged or not this machine's.
        """
        if self._runner is not None:
            raise RuntimeError("the server runs already")
        runner = web.ServerRunner(
            LimitedServer(self._answer, self._limits),
            shutdown_timeout=self._limits.shutdown_grace_s,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            raise _cannot_listen(host, port, error) from error
        self._runner, self._host = runner, host

    async def stop(self) -> None:
        """Stops listening at once; requests under way may finish within the grace."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
            self._threads.close()
            self._threads = Threads("serve", _THREADS)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        if self._runner is None:
            raise RuntimeError("the server does not run")
        return int(self._runner.addresses[0][1])

    @property
    def url(self) -> str:
        """The endpoint as reached on the address that the server listens on."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Decides on a request and sends the answer, within a deadline."""
        peer = peer_of(request.remote or "")
        wait_s = self._requests.draw(peer) or self._bytes.debt_s(peer)
        if wait_s:
            response: web.StreamResponse = _error(HTTPStatus.TOO_MANY_REQUESTS, "slow down", wait_s)
        else:
            response = await self._decide(request, peer)
        try:
            async with asyncio.timeout(self._limits.write_timeout_s):
                await response.prepare(request)
                await response.write_eof()
        except (TimeoutError, OSError) as error:
            _give_up(request, error)
        return response

    async def _decide(self, request: web.BaseRequest, peer: str) -> web.StreamResponse:
        try:
            return await self._route(request, peer)
        except (BadName, BlobMissing) as error:
            return _error(HTTPStatus.NOT_FOUND, str(error))
        except Rejected as error:
            return _error(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except TimeoutError:
            return _error(HTTPStatus.REQUEST_TIMEOUT, "too slow")
        except (web.RequestPayloadError, ConnectionError) as error:
            return _error(HTTPStatus.BAD_REQUEST, f"the request broke off: {error}")
        except Retryable as error:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(error), 1.0)
        except OperatorError as error:
            logger.error("%s %s: %s", request.method, request.path, error)
            return _error(HTTPStatus.INSUFFICIENT_STORAGE, "the node's storage needs its operator")

    async def _route(self, request: web.BaseRequest, peer: str) -> web.StreamResponse:
        reading = request.method in ("GET", "HEAD")
        path = request.rel_url.raw_path  # still encoded: an encoded slash or dot is no name
        match path.removeprefix("/v1/").split("/", 1) if path.startswith("/v1/") else []:
            case ["health"] if reading:
                return _json({"protocol": 1, "status": "ok"})
            case ["blobs", name] if reading:
                return await self._send_blob(request, parse_digest(name), peer)
            case ["records", topic] if reading:
                return await self._send_page(request, check_topic(topic), peer)
            case ["records", topic] if request.method == "POST" and self._verifier is not None:
                with self._transfer(peer):
                    return await self._take_record(request, check_topic(topic), self._verifier)
            case ["health"] | ["blobs", _] | ["records", _]:
                return _error(HTTPStatus.METHOD_NOT_ALLOWED, "not this method here")
        return _error(HTTPStatus.NOT_FOUND, "no such path")

    async def _send_blob(
        self, request: web.BaseRequest, digest: Hash32, peer: str
    ) -> web.StreamResponse:
        size = self._store.size(digest)
        if size is None:
            raise BlobMissing(f"blob {digest.hex()} is not held")
        headers = {"Accept-Ranges": "bytes", "ETag": f'"{digest.hex()}"'}
        try:
            span = parse_range(request.headers.get("Range"), size)
        except Unsatisfiable:
            headers["Content-Range"] = f"bytes */{size}"
            return web.Response(status=HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers=headers)
        start, stop = span or (0, size)
        if span:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        response = web.StreamResponse(
            status=HTTPStatus.PARTIAL_CONTENT if span else HTTPStatus.OK, headers=headers
        )
        response.content_type = "application/octet-stream"
        response.content_length = stop - start
        if request.method == "HEAD":
            return response
        with self._transfer(peer), await self._threads.run(self._store.open, digest) as file:
            await self._stream(request, response, file, start, peer)
        return response

    @contextmanager
    def _transfer(self, peer: str) -> Iterator[None]:
        """A place among the transfers under way; raises `PeerBusy`."""
        total, own = self._transfers.total(), self._transfers[peer]
        if total >= self._limits.transfers or own >= self._limits.transfers_per_peer:
            raise PeerBusy("too many transfers")
        self._transfers[peer] += 1
        try:
            yield
        finally:
            self._transfers[peer] -= 1
            if not self._transfers[peer]:
                del self._transfers[peer]

    async def _stream(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        file: BinaryIO,
        start: int,
        peer: str,
    ) -> None:
        """Sends ``content_length`` bytes from ``start``; a client that stalls is cut off."""
        left = response.content_length or 0
        try:
            file.seek(start)
            async with asyncio.timeout(self._limits.transfer_timeout_s(left)):
                await response.prepare(request)
                while left:
                    chunk = await self._threads.run(file.read, min(MIB, left))
                    if not chunk:
                        raise ConnectionAbortedError("the blob's file ended early")
                    self._bytes.charge(peer, len(chunk))
                    left -= len(chunk)
                    async with asyncio.timeout(self._limits.write_timeout_s):
                        await response.write(chunk)
        except (TimeoutError, OSError) as error:
            _give_up(request, error)

    async def _send_page(
        self, request: web.BaseRequest, topic: str, peer: str
    ) -> web.StreamResponse:
        before = _cursor(request.rel_url.query.get("before"))
        name = check_node_name(request.headers.get(NAME_HEADER, ""))
        requester = Requester(host=request.remote or "", name=name)
        provider = self._providers.get(topic) or self._providers.get(family(topic))
        records = provider(topic, requester) if provider else None
        body = await self._threads.run(self._page, topic, records, before)
        self._bytes.charge(peer, len(body))
        return web.Response(body=body, content_type="application/json")

    def _page(self, topic: str, records: list[bytes] | None, before: int | None) -> bytes:
        most = self._limits.listing_bytes, self._limits.listing_records
        if records is not None:
            page = page_of(records, before=before, max_bytes=most[0], max_records=most[1])
        else:
            found, cursor = self._board.listing(
                topic, before=before, max_bytes=most[0], max_records=most[1]
            )
            page = Page(records=found, next=cursor)
        return page.to_bytes()

    async def _take_record(
        self, request: web.BaseRequest, topic: str, verifier: Verifier
    ) -> web.StreamResponse:
        record = await self._read_record(request)
        if record is None:
            text = f"a record has at most {self._limits.record_bytes} bytes"
            response = _error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
            response.force_close()
            return response
        try:
            async with asyncio.timeout(self._limits.verify_timeout_s):
                verdict = verifier(topic, record)
                key = await verdict if inspect.isawaitable(verdict) else verdict
        except TimeoutError:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, "can't verify it in time", 1.0)
        try:
            new = await self._threads.run(self._board.put, topic, key, record)
        except BadName as error:
            raise RecordRefused(str(error)) from error
        return _json({"new": new}, HTTPStatus.CREATED if new else HTTPStatus.OK)

    async def _read_record(self, request: web.BaseRequest) -> bytes | None:
        """The posted record; None if it is too large."""
        record = bytearray()
        async with asyncio.timeout(self._limits.body_timeout_s):
            async for chunk in request.content.iter_any():
                record += chunk
                if len(record) > self._limits.record_bytes:
                    return None
        return bytes(record)


def _cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and int(text) < MAX_CURSOR):
        raise BadName(f"not a cursor: {text[:80]!r}")
    return int(text)


def _json(value: canonical.Json, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    return web.Response(body=canonical.dumps(value), status=status, content_type="application/json")


def _error(status: HTTPStatus, text: str, wait_s: float = 0.0) -> web.Response:
    response = _json({"error": text}, status)
    if wait_s:
        response.headers["Retry-After"] = retry_after(wait_s)
    return response


def _give_up(request: web.BaseRequest, error: Exception) -> None:
    """Cuts off a reader that stalls or is gone."""
    logger.debug("answer to %s given up: %r", request.remote, error)
    if request.transport is not None:
        request.transport.abort()


def _cannot_listen(host: str, port: int, error: OSError | OverflowError) -> CannotListen:
    where = f"{host}:{port}"
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return CannotListen(
            f"{where} is in use by another program", "stop it, or choose another port"
        )
    if number in (errno.EACCES, errno.EPERM):
        return CannotListen(f"this user may not listen on {where}", "choose a port above 1023")
    if number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return CannotListen(
            f"{host} is not an address of this machine", "listen on 0.0.0.0 or on one of its own"
        )
    return CannotListen(f"can't listen on {where} ({error})", "choose another address or port")
