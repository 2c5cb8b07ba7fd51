"""The lines of the public data log: canonical JSON, each with a hash over itself and the line before."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ledger.errors import DataLogDamaged
from ledger.event_decoding import field_names
from ledger.event_store import StoredEvent
from protocol import canonical
from protocol.canonical import Json
from protocol.errors import Rejected
from protocol.hashing import sha256
from protocol.ids import Hash32, to_hash32
from protocol.submission import SignedSubmission, Submission

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An event of the chain, linked to the line before by that line's hash."""

    block: int
    index: int
    tx: str
    event: str
    fields: dict[str, Json]
    previous: Hash32

    @property
    def hash(self) -> Hash32:
        return Hash32(sha256(self.previous + canonical.dumps(self._body())))

    def to_bytes(self) -> bytes:
        return canonical.dumps({**self._body(), "hash": self.hash.hex()}) + b"\n"

    def _body(self) -> dict[str, Json]:
        return {
            "block": self.block,
            "event": self.event,
            "fields": self.fields,
            "index": self.index,
            "previous": self.previous.hex(),
            "tx": self.tx,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """A signed submission, stored under its digest, which is the commit in the log."""

    digest: Hash32
    signed: SignedSubmission

    def to_bytes(self) -> bytes:
        body: dict[str, Json] = {
            "digest": self.digest.hex(),
            "signature": self.signed.signature.hex(),
            "submission": self.signed.submission.to_json(),
        }
        check = sha256(canonical.dumps(body)).hex()
        return canonical.dumps({**body, "check": check}) + b"\n"


def line_of(stored: StoredEvent, previous: Hash32) -> Line:
    """The line of an event that follows a line with the hash `previous`."""
    event = stored.event
    return Line(
        block=stored.log.block,
        index=stored.log.index,
        tx=stored.log.tx_hash.hex(),
        event=type(event).__name__,
        fields={name: _plain(getattr(event, name)) for name in field_names(type(event))},
        previous=previous,
    )


def _plain(value: object) -> Json:
    """Numbers as numbers (amounts of any size), bytes as hex, records as lists."""
    if isinstance(value, bytes):
        return value.hex()
    if dataclasses.is_dataclass(value):
        return [_plain(getattr(value, item.name)) for item in dataclasses.fields(value)]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, int):
        return int(value)
    return str(value)


def read_log(path: Path, run: Hash32) -> Iterator[Line]:
    """The lines, each proven to follow the one before; raises `DataLogDamaged`."""
    previous, place = run, (-1, -1)
    for number, raw in enumerate(_lines(path), start=1):
        line = _parse_line(path, number, raw)
        if line.previous != previous:
            raise DataLogDamaged(path, number, "it does not follow from the line before")
        if (line.block, line.index) <= place:
            raise DataLogDamaged(path, number, "it is out of order")
        previous, place = line.hash, (line.block, line.index)
        yield line


def _parse_line(path: Path, number: int, raw: bytes) -> Line:
    try:
        value = canonical.loads(raw)
        if not isinstance(value, dict):
            raise Rejected("no object")
        line = Line(
            block=_typed(value["block"], int),
            index=_typed(value["index"], int),
            tx=_typed(value["tx"], str),
            event=_typed(value["event"], str),
            fields=_typed(value["fields"], dict),
            previous=to_hash32(_typed(value["previous"], str)),
        )
    except (Rejected, KeyError) as error:
        raise DataLogDamaged(path, number, f"unreadable: {error}") from error
    if line.to_bytes() != raw + b"\n":
        raise DataLogDamaged(path, number, "its hash is wrong")
    return line


def _typed(value: object, kind: type[_T]) -> _T:
    if type(value) is not kind:
        raise Rejected(f"expected {kind.__name__}")
    return value


def read_disclosures(path: Path) -> Iterator[Disclosure]:
    """The disclosures, each with its check sum proven; raises `DataLogDamaged`."""
    for number, raw in enumerate(_lines(path), start=1):
        try:
            value = canonical.loads(raw)
            if not isinstance(value, dict):
                raise Rejected("no object")
            item = Disclosure(
                digest=to_hash32(_typed(value["digest"], str)),
                signed=SignedSubmission(
                    submission=Submission.from_json(value["submission"]),
                    signature=bytes.fromhex(_typed(value["signature"], str)),
                ),
            )
        except (Rejected, KeyError, ValueError) as error:
            raise DataLogDamaged(path, number, f"unreadable: {error}") from error
        if item.to_bytes() != raw + b"\n":
            raise DataLogDamaged(path, number, "its check sum is wrong")
        yield item


def _lines(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                raise DataLogDamaged(path, number, "it is cut off")
            yield line[:-1]


def append_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Durably; a crash leaves whole lines and at most one unfinished one."""
    if not lines and path.exists():
        return
    with path.open("ab") as file:
        file.write(b"".join(lines))
        file.flush()
        os.fsync(file.fileno())


def cut_unfinished_line(path: Path) -> None:
    """Takes away what a crash left of a line that was being written."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def write_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Replaces a file durably, whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    append_lines(draft, lines)
    draft.replace(path)
