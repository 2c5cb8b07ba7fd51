"""The wire form of a page of records.

Canonical JSON ``{"next": cursor or null, "records": [base64, …]}``, newest first. A page is cut
when the next record would exceed its size or count; ``next`` then asks for what is older:
``GET /v1/records/<topic>?before=<next>``. Cursors fall strictly, so a listing always ends.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol import canonical
from protocol.errors import Rejected
from transport.errors import BadAnswer
from transport.limits import KIB

MAX_CURSOR = 1 << 53


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of records and the cursor of the next, older one (None: this is the last)."""

    records: Sequence[bytes]
    next: int | None

    def to_bytes(self) -> bytes:
        """Canonical JSON."""
        records = [base64.b64encode(record).decode() for record in self.records]
        return canonical.dumps({"next": self.next, "records": records})

    @classmethod
    def from_bytes(cls, data: bytes, *, record_bytes: int) -> Page:
        """Strict inverse of `to_bytes`; raises `BadAnswer`."""
        if data.count(b"[") > 1 or data.count(b"{") > 1:
            # Said before parsing: deep nesting overflows the C stack of the JSON parser where a
            # library has raised Python's recursion limit.
            raise BadAnswer("a listing has one object with one list")
        try:
            value = canonical.loads(data)
        except Rejected as error:
            raise BadAnswer(f"a listing: {error}") from error
        if not isinstance(value, Mapping) or set(value) != {"next", "records"}:
            raise BadAnswer("a listing is an object with next and records")
        cursor, texts = value["next"], value["records"]
        if isinstance(cursor, bool) or not isinstance(cursor, int | None):
            raise BadAnswer("a listing's cursor is a whole number or null")
        if cursor is not None and not 0 <= cursor < MAX_CURSOR:
            raise BadAnswer("a listing's cursor is out of range")
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise BadAnswer("a listing's records are a list")
        return cls(records=[_record(text, record_bytes) for text in texts], next=cursor)


def page_of(
    records: Sequence[bytes], *, before: int | None, max_bytes: int, max_records: int
) -> Page:
    """Cuts a page out of a whole listing that is given newest first.

    The cursor is the number of records that are older, so it stays right when newer ones arrive.
    """
    start = 0 if before is None else max(0, len(records) - before)
    size = 0
    stop = start
    while stop < len(records) and stop - start < max_records:
        size += len(records[stop])
        if size > max_bytes and stop > start:
            break
        stop += 1
    return Page(records=records[start:stop], next=len(records) - stop or None)


def page_wire_bytes(*, max_bytes: int, max_records: int) -> int:
    """An upper bound on the encoded size of a page, for the reader's cap."""
    return max_bytes * 4 // 3 + max_records * 8 + KIB


def _record(text: canonical.Json, record_bytes: int) -> bytes:
    if not isinstance(text, str):
        raise BadAnswer("a listing's record is base64 text")
    try:
        record = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadAnswer("a listing's record is not base64") from error
    if len(record) > record_bytes:
        raise BadAnswer(f"a record of {len(record)} bytes, more than {record_bytes}")
    return record
