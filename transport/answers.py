"""Reading what a peer answers, when nothing in it can be relied on: every byte counts against a cap."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import ClientResponse, hdrs

from protocol import canonical
from protocol.errors import Rejected
from protocol.submission import BlobRef
from transport.errors import BadAnswer, BlobMissing, PeerUnavailable, WrongLength
from transport.limits import KIB, MIB
from transport.parts import SMALL_BYTES, Part
from transport.ranges import parse_content_range

SMALL_ANSWER_BYTES = 4 * KIB
"""Enough for whatever is neither a blob nor a listing."""


def require(response: ClientResponse, *expected: HTTPStatus) -> None:
    """Raises `PeerUnavailable` for any other status."""
    if response.status not in expected:
        raise PeerUnavailable(f"answered {response.status}")


def retry_after_s(response: ClientResponse) -> float:
    """How long a busy peer asks us to wait; 0 if it does not say, or not in seconds."""
    text = response.headers.get(hdrs.RETRY_AFTER, "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0.0


def bytes_to_skip(response: ClientResponse, ref: BlobRef, offset: int) -> int:
    """Checks the head of a blob's answer; returns how many bytes of the body we have already."""
    status = response.status
    if status == HTTPStatus.NOT_FOUND:
        raise BlobMissing("does not hold it")
    if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
        raise WrongLength(f"holds less than {ref.size} bytes")
    if status == HTTPStatus.PARTIAL_CONTENT and offset:
        span = parse_content_range(response.headers.get(hdrs.CONTENT_RANGE, ""))
        if span is None:
            raise BadAnswer("a partial answer without its range")
        start, stop, size = span
        if size != ref.size:
            raise WrongLength(f"holds {size} bytes, not {ref.size}")
        if (start, stop) != (offset, size):
            raise BadAnswer("another range than asked for")
        return 0
    if status == HTTPStatus.PARTIAL_CONTENT:
        raise BadAnswer("a partial answer to a whole request")
    require(response, HTTPStatus.OK)
    if response.content_length not in (None, ref.size):
        raise WrongLength(f"holds {response.content_length} bytes, not {ref.size}")
    return offset


async def append_body(response: ClientResponse, part: Part, skip: int) -> None:
    """Streams a body into a part; hashing and writing go on in a thread while more arrives."""
    small = part.ref.size <= SMALL_BYTES
    left = part.ref.size - part.size + skip
    batch = bytearray()
    writing: asyncio.Future[None] | None = None
    try:
        async for chunk in response.content.iter_any():
            left -= len(chunk)
            if left < 0:
                raise WrongLength(f"sends more than {part.ref.size} bytes")
            batch += memoryview(chunk)[skip:]
            skip = max(0, skip - len(chunk))
            if len(batch) >= MIB:
                if writing is not None:
                    await writing
                writing = asyncio.ensure_future(asyncio.to_thread(part.append, bytes(batch)))
                batch.clear()
    finally:
        # What did arrive counts, also when the connection was cut.
        if writing is not None:
            await writing
        if batch and small:
            part.append(bytes(batch))
        elif batch:
            await asyncio.to_thread(part.append, bytes(batch))


async def read_capped(response: ClientResponse, most: int) -> bytes:
    """A whole body; raises `BadAnswer` when it is longer than ``most`` bytes."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > most:
            raise BadAnswer(f"an answer of more than {most} bytes")
    return bytes(body)


def parse_object(body: bytes) -> Mapping[str, canonical.Json]:
    """A small JSON object; raises `BadAnswer`."""
    try:
        value = canonical.loads(body)
    except Rejected as error:
        raise BadAnswer(f"not canonical JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise BadAnswer("not a JSON object")
    return value


async def reason_of(response: ClientResponse) -> str:
    """The reason that a peer gives for a refusal, in words fit for a log."""
    try:
        text = str(parse_object(await read_capped(response, SMALL_ANSWER_BYTES)).get("error", ""))
    except BadAnswer:
        text = ""
    printable = "".join(char for char in text if char.isprintable())
    return f"refused ({response.status}): {printable[:200]}"
