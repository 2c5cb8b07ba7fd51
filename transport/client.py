"""Asking other nodes for blobs and records.

Every peer is a stranger: what it sends is capped while it streams, compared with its digest,
awaited with a deadline, and never decompressed; redirects are not followed, cookies and proxies are
not used, and endpoints that lead into private networks are refused (see `endpoint`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import TracebackType
from weakref import WeakValueDictionary

import aiohttp
from aiohttp import ClientResponse, hdrs

from protocol.hashing import sha256
from protocol.ids import Hash32
from protocol.submission import BlobRef
from transport.answers import (
    SMALL_ANSWER_BYTES,
    append_body,
    bytes_to_skip,
    parse_object,
    read_capped,
    reason_of,
    require,
    retry_after_s,
)
from transport.download import Download, Fetched
from transport.endpoint import SafeResolver, parse_endpoint
from transport.errors import (
    BadAnswer,
    PeerBusy,
    PeerUnavailable,
    RecordRefused,
    WrongLength,
)
from transport.limits import MIB, ClientLimits
from transport.listing import Page, page_wire_bytes
from transport.names import NAME_HEADER, check_node_name, check_topic
from transport.parts import Part
from transport.store import FolderStore
from transport.trust import TrustBook

logger = logging.getLogger(__name__)

_BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


class PeerClient:
    """Talks to nodes by their endpoints. Use as an async context manager, or `close` it.

    Args:
        limits: what to accept, and for how long to wait.
        trust: told how each mirror did; choose mirrors by it.
        name: how this node calls itself to others; may be empty.
    """

    def __init__(
        self,
        limits: ClientLimits | None = None,
        *,
        trust: TrustBook | None = None,
        name: str = "",
    ) -> None:
        self.limits = limits or ClientLimits()
        self.trust = trust or TrustBook()
        self._name = check_node_name(name)
        self._resolver: SafeResolver | None = None
        self._session: aiohttp.ClientSession | None = None
        self._fetching: WeakValueDictionary[tuple[int, Hash32], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def __aenter__(self) -> PeerClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections."""
        session, self._session = self._session, None
        resolver, self._resolver = self._resolver, None
        if session is not None:
            await session.close()
        if resolver is not None:
            await resolver.close()

    async def check_health(self, endpoint: str) -> None:
        """Returns if a node answers there; raises `PeerUnavailable`, `BadAnswer`, `BadEndpoint`."""
        async with self._exchange("GET", endpoint, "/v1/health") as response:
            require(response, HTTPStatus.OK)
            value = parse_object(await read_capped(response, SMALL_ANSWER_BYTES))
        if value.get("protocol") != 1:
            raise BadAnswer("not a node of this protocol")

    async def has_blob(self, endpoint: str, ref: BlobRef) -> bool:
        """Whether a peer says that it holds a blob of this digest and size."""
        async with self._exchange("HEAD", endpoint, _blob_path(ref)) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                return False
            require(response, HTTPStatus.OK)
            return response.headers.get(hdrs.CONTENT_LENGTH) == str(ref.size)

    async def fetch_blob(self, ref: BlobRef, mirrors: Sequence[str], store: FolderStore) -> Fetched:
        """Fetches a blob into the store, from the first mirrors that deliver it.

        Goes on where an earlier attempt stopped. Concurrent fetches of one blob become one.

        Args:
            ref: digest and size of the blob.
            mirrors: endpoints, best first.
            store: where it goes; nothing is fetched when it is there already.

        Raises:
            BlobUnavailable: no mirror delivered it; says why and who is to blame.
            WrongLength: the reference's size is false, or beyond the limit.
            OperatorError: the store has no room or can't be written.
        """
        if ref.size > self.limits.blob_bytes:
            raise WrongLength(f"a blob of {ref.size} bytes, more than {self.limits.blob_bytes}")
        if ref.size == 0 and ref.digest != sha256(b""):
            raise WrongLength("only the empty blob has no bytes")
        lock = self._fetching.setdefault((id(store), ref.digest), asyncio.Lock())
        async with lock:
            held = store.size(ref.digest)
            if held is not None and held != ref.size:
                raise WrongLength(f"the blob has {held} bytes, the reference says {ref.size}")
            if held is not None:
                return Fetched(ref=ref, mirrors=frozenset(), blamed=frozenset(), failures=())
            download = Download(
                ref,
                mirrors,
                store=store,
                pull=self._pull,
                limits=self.limits,
                trust=self.trust,
            )
            return await download.run()

    async def fetch_records(self, endpoint: str, topic: str) -> list[bytes]:
        """All records that a peer lists under a topic, newest first.

        A peer that lists more than the limits allow is cut: the newest ones are returned.

        Raises:
            PeerUnavailable: no answer, or not in time.
            BadAnswer: not a listing.
        """
        path = f"/v1/records/{check_topic(topic)}"
        records: list[bytes] = []
        size = 0
        before: int | None = None
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            allowed_s = self.limits.request_timeout_s + size / self.limits.min_bytes_per_s
            left_s = began + allowed_s - loop.time()
            if left_s <= 0:
                raise PeerUnavailable("lists too slowly")
            page = await self._fetch_page(endpoint, path, before, left_s)
            for record in page.records:
                size += len(record)
                if size > self.limits.listing_bytes or len(records) == self.limits.listing_records:
                    logger.warning("%s lists too much under %s; cut", endpoint, topic)
                    return records
                records.append(record)
            if page.next is None:
                return records
            if not page.records or (before is not None and page.next >= before):
                raise BadAnswer("a listing that does not end")
            before = page.next

    async def post_record(self, endpoint: str, topic: str, record: bytes) -> bool:
        """Hands a record to a peer; returns whether it was new there.

        Raises:
            PeerUnavailable: no answer, not in time, or the peer is full.
            RecordRefused: the peer does not take it; says why.
        """
        path = f"/v1/records/{check_topic(topic)}"
        async with self._exchange("POST", endpoint, path, body=record) as response:
            if HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise RecordRefused(await reason_of(response))
            require(response, HTTPStatus.OK, HTTPStatus.CREATED)
            return response.status == HTTPStatus.CREATED

    async def _fetch_page(
        self, endpoint: str, path: str, before: int | None, deadline_s: float
    ) -> Page:
        limits = self.limits
        most = page_wire_bytes(max_bytes=limits.listing_bytes, max_records=limits.listing_records)
        query = "" if before is None else f"?before={before}"
        async with self._exchange("GET", endpoint, path + query, deadline_s=deadline_s) as response:
            require(response, HTTPStatus.OK)
            body = await read_capped(response, most)
        return await asyncio.to_thread(Page.from_bytes, body, record_bytes=limits.record_bytes)

    async def _pull(self, mirror: str, part: Part) -> None:
        """Appends a mirror's bytes to a part, from the part's size on."""
        ref, offset = part.ref, part.size
        headers: dict[str, str] = {}
        if offset:
            headers[hdrs.RANGE] = f"bytes={offset}-{ref.size - 1}"
        deadline_s = self.limits.transfer_timeout_s(ref.size - offset)
        async with self._exchange(
            "GET", mirror, _blob_path(ref), headers=headers, deadline_s=deadline_s
        ) as response:
            skip = bytes_to_skip(response, ref, offset)
            part.begin(mirror)
            await append_body(response, part, skip)

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        endpoint: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        deadline_s: float | None = None,
    ) -> AsyncIterator[ClientResponse]:
        """One request and its answer, within a deadline; network failures as our own errors."""
        url = parse_endpoint(endpoint, allow_private=self.limits.allow_private).url(path)
        deadline_s = deadline_s or self.limits.request_timeout_s
        try:
            async with (
                asyncio.timeout(deadline_s),
                self._open_session().request(
                    method, url, headers=headers, data=body, allow_redirects=False
                ) as response,
            ):
                if response.headers.get(hdrs.CONTENT_ENCODING, "identity") != "identity":
                    raise BadAnswer("an encoded answer")
                if response.status in _BUSY:
                    raise PeerBusy(f"busy ({response.status})", retry_after_s(response))
                yield response
        except TimeoutError as error:
            raise PeerUnavailable(
                f"too slow ({str(error) or f'{deadline_s:g} s in all'})"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise PeerUnavailable(f"no answer ({str(error) or type(error).__name__})") from error

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            limits = self.limits
            self._resolver = SafeResolver(
                timeout_s=limits.connect_timeout_s, allow_private=limits.allow_private
            )
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=limits.connections,
                    limit_per_host=limits.connections_per_peer,
                    resolver=self._resolver,
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=limits.connect_timeout_s,
                    sock_read=limits.read_timeout_s,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={hdrs.ACCEPT_ENCODING: "identity", NAME_HEADER: self._name},
                auto_decompress=False,
                trust_env=False,
                read_bufsize=MIB,
            )
        return self._session


def _blob_path(ref: BlobRef) -> str:
    return f"/v1/blobs/{ref.digest.hex()}"
