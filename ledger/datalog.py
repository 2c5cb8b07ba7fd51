"""The public data ledger: an append-only log of a run that anyone can rebuild from the chain and check byte by byte.

Two files of canonical JSON lines:

- ``log.jsonl``: one line per event of the run's contracts, in the order of the chain. Each line holds the hash of the
  line before it (the first one the run's id), so the last hash stands for the whole log: two nodes that read the same
  blocks have the same bytes.
- ``disclosures.jsonl``: the signed submissions behind the logged commits, with the four hashes that a node discloses
  for a round: data in, data out, weights before, weights after. A disclosure needs no place in the chain of lines: its
  EIP-712 digest is the commit that stands there.

Only blocks that no reorganisation reaches any more belong into the log; a deeper one is answered with `rebuild`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ledger.errors import BadSignature, DataLogDamaged
from ledger.event_decoding import field_names
from ledger.event_store import StoredEvent
from ledger.event_types import Committed
from ledger.recover import recover
from protocol import canonical
from protocol.canonical import Json
from protocol.errors import Rejected
from protocol.hashing import sha256
from protocol.ids import Address, Hash32, Round, to_hash32
from protocol.settlement import SumNode
from protocol.submission import Domain, SignedSubmission, Submission

_T = TypeVar("_T")
_LOG_NAME = "log.jsonl"
_DISCLOSURES_NAME = "disclosures.jsonl"
_OPERATOR_EVENTS = ("Registered", "OperatorSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class FourHashes:
    """What a node discloses about a round.

    Attributes:
        data_in: root of the samples that it trained on.
        data_out: root of the update that it sent.
        weights_before: state root that it started from.
        weights_after: root of the trace of its states, the last of which it ended with.
    """

    round: Round
    account: Address
    data_in: Hash32
    data_out: Hash32
    weights_before: Hash32
    weights_after: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A log that verified: its lines, the hash of the last one, and what is disclosed."""

    entries: int
    head: Hash32
    disclosures: tuple[FourHashes, ...]


class DataLog:
    """The log of one run in a folder. One process writes; anyone reads."""

    def __init__(self, folder: Path, *, run: Hash32, domain: Domain) -> None:
        self._log = folder / _LOG_NAME
        self._disclosures = folder / _DISCLOSURES_NAME
        self._run = run
        self._domain = domain
        folder.mkdir(parents=True, exist_ok=True)
        for path in (self._log, self._disclosures):
            _cut_unfinished_line(path)
        self._head, self._place, self._commits = run, (-1, -1), set[Hash32]()
        for line in _read_log(self._log, run):
            self._note(line)
        self._disclosed = {item.digest for item in _read_disclosures(self._disclosures)}

    @property
    def head(self) -> Hash32:
        """Hash of the last line; the run's id while there is none."""
        return self._head

    @property
    def complete_upto(self) -> int:
        """Block of the last line; -1 while there is none."""
        return self._place[0]

    def extend(self, events: Iterable[StoredEvent]) -> int:
        """Appends the events that come after the last line; returns how many.

        Args:
            events: in the order of the chain, out of blocks that are final.
        """
        lines, head = [], self._head
        for stored in events:
            if (stored.log.block, stored.log.index) > self._place:
                line = _line(stored, head)
                lines.append(line)
                head = line.hash
        _append(self._log, [line.to_bytes() for line in lines])
        for line in lines:
            self._note(line)
        return len(lines)

    def rebuild(self, events: Iterable[StoredEvent]) -> None:
        """Writes the log anew, after a reorganisation that reached into it or damage."""
        draft = self._log.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        head, lines = self._run, []
        for stored in events:
            line = _line(stored, head)
            lines.append(line)
            head = line.hash
        _append(draft, [line.to_bytes() for line in lines])
        draft.replace(self._log)
        self._head, self._place, self._commits = self._run, (-1, -1), set()
        for line in lines:
            self._note(line)

    def disclose(self, signed: SignedSubmission) -> bool:
        """Adds a submission whose commit is logged; returns whether it was new.

        Raises:
            Rejected: nobody committed to it.
        """
        digest = signed.submission.digest(self._domain)
        if digest not in self._commits:
            raise Rejected(f"no logged commit is 0x{digest.hex()}")
        if digest in self._disclosed:
            return False
        _append(self._disclosures, [_Disclosure(digest=digest, signed=signed).to_bytes()])
        self._disclosed.add(digest)
        return True

    def _note(self, line: _Line) -> None:
        self._head, self._place = line.hash, (line.block, line.index)
        if line.event == Committed.__name__:
            self._commits.add(to_hash32(str(line.fields["digest"])))


def verify(
    folder: Path,
    *,
    run: Hash32,
    domain: Domain,
    events: Sequence[StoredEvent] | None = None,
) -> Audit:
    """Checks a log: every byte of it, and with `events` also against the chain.

    Args:
        folder: where the two files lie.
        run: the run's id, the first link of the chain.
        domain: of the run's signatures.
        events: what the verifier itself read from the chain up to the log's last block; None checks the log alone,
            which does not show whether lines are missing at its end.

    Raises:
        DataLogDamaged: with the first line that is wrong.
    """
    log, disclosed = folder / _LOG_NAME, folder / _DISCLOSURES_NAME
    head, lines = run, []
    for line in _read_log(log, run):
        lines.append(line)
        head = line.hash
    if events is not None:
        _compare(log, lines, events)
    commits = {(line.fields["digest"], line.fields["account"]) for line in _of(lines, "Committed")}
    operators = {
        (line.fields["account"], line.fields["operator"]) for line in _of(lines, *_OPERATOR_EVENTS)
    }
    hashes = []
    for number, item in enumerate(_read_disclosures(disclosed), start=1):
        submission = item.signed.submission
        digest = submission.digest(domain)
        if digest != item.digest or (digest.hex(), submission.miner) not in commits:
            raise DataLogDamaged(disclosed, number, "its commit is not in the log")
        if (submission.miner, _signer(item, disclosed, number)) not in operators:
            raise DataLogDamaged(disclosed, number, "signed by nobody who may")
        hashes.append(_four_hashes(submission))
    return Audit(entries=len(lines), head=head, disclosures=tuple(hashes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
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
class _Disclosure:
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


def _line(stored: StoredEvent, previous: Hash32) -> _Line:
    event = stored.event
    return _Line(
        block=stored.log.block,
        index=stored.log.index,
        tx=stored.log.tx_hash.hex(),
        event=type(event).__name__,
        fields={name: _plain(getattr(event, name)) for name in field_names(type(event))},
        previous=previous,
    )


def _plain(value: object) -> Json:
    """Numbers as numbers (amounts of any size), bytes as hex, nodes of a settlement tree as lists."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, SumNode):
        return [value.hash.hex(), value.w, value.amount]
    if isinstance(value, int):
        return int(value)
    return str(value)


def _read_log(path: Path, run: Hash32) -> Iterator[_Line]:
    """The lines, each checked against the one before."""
    previous, place = run, (-1, -1)
    for number, raw in enumerate(_lines(path), start=1):
        line = _parse_line(path, number, raw)
        if line.previous != previous:
            raise DataLogDamaged(path, number, "it does not follow from the line before")
        if (line.block, line.index) <= place:
            raise DataLogDamaged(path, number, "it is out of order")
        previous, place = line.hash, (line.block, line.index)
        yield line


def _parse_line(path: Path, number: int, raw: bytes) -> _Line:
    try:
        value = canonical.loads(raw)
        if not isinstance(value, dict):
            raise Rejected("no object")
        line = _Line(
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


def _read_disclosures(path: Path) -> Iterator[_Disclosure]:
    for number, raw in enumerate(_lines(path), start=1):
        try:
            value = canonical.loads(raw)
            if not isinstance(value, dict):
                raise Rejected("no object")
            item = _Disclosure(
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


def _compare(path: Path, lines: Sequence[_Line], events: Sequence[StoredEvent]) -> None:
    previous = lines[0].previous if lines else None
    for number, (line, stored) in enumerate(zip(lines, events, strict=False), start=1):
        if line != _line(stored, previous or line.previous):
            raise DataLogDamaged(path, number, "the chain says something else")
        previous = line.hash
    if len(lines) != len(events):
        raise DataLogDamaged(
            path, min(len(lines), len(events)) + 1, f"{len(lines)} lines for {len(events)} events"
        )


def _of(lines: Iterable[_Line], *events: str) -> list[_Line]:
    return [line for line in lines if line.event in events]


def _signer(item: _Disclosure, path: Path, number: int) -> Address:
    try:
        return recover(item.digest, item.signed.signature)
    except BadSignature as error:
        raise DataLogDamaged(path, number, str(error)) from error


def _four_hashes(submission: Submission) -> FourHashes:
    return FourHashes(
        round=submission.round,
        account=submission.miner,
        data_in=submission.data_root,
        data_out=submission.payload_root,
        weights_before=submission.initial_root,
        weights_after=submission.trace_root,
    )


def _lines(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                raise DataLogDamaged(path, number, "it is cut off")
            yield line[:-1]


def _append(path: Path, lines: Sequence[bytes]) -> None:
    """Durably; a crash leaves whole lines and at most one unfinished one."""
    if not lines and path.exists():
        return
    with path.open("ab") as file:
        file.write(b"".join(lines))
        file.flush()
        os.fsync(file.fileno())


def _cut_unfinished_line(path: Path) -> None:
    """Takes away what a crash left of a line that was being written."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        with path.open("r+b") as file:
            file.truncate(whole)
