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

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.datalog_lines import (
    Disclosure,
    Line,
    append_lines,
    cut_unfinished_line,
    line_of,
    read_disclosures,
    read_log,
    write_lines,
)
from ledger.errors import BadSignature, DataLogDamaged
from ledger.event_store import EventStore, StoredEvent
from ledger.event_types import Committed
from ledger.recover import recover
from protocol.errors import Rejected
from protocol.ids import Address, Hash32, Round, to_hash32
from protocol.submission import Domain, SignedSubmission, Submission

_LOG = logging.getLogger(__name__)
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
            cut_unfinished_line(path)
        self._reset()
        for line in read_log(self._log, run):
            self._note(line)
        self._disclosed = {item.digest for item in read_disclosures(self._disclosures)}

    @property
    def head(self) -> Hash32:
        """Hash of the last line; the run's id while there is none."""
        return self._head

    @property
    def complete_upto(self) -> int:
        """Block of the last line; -1 while there is none."""
        return self._place[0]

    def follow(self, store: EventStore, *, upto: int) -> int:
        """Appends what a node has stored up to a final block; returns how many lines.

        A reorganisation that reached into the log after all, or a log of another node's past, makes it be built anew.
        """
        block, index = self._place
        last = store.all(after=block - 1, upto=block)
        if self._last is not None and not any(
            item.log.index == index and line_of(item, self._last.previous) == self._last
            for item in last
        ):
            _LOG.warning("the data log %s does not fit the chain; building it anew", self._log)
            self.rebuild(store.all(upto=upto))
            return 0
        return self.extend(store.all(after=block - 1, upto=upto))

    def extend(self, events: Iterable[StoredEvent]) -> int:
        """Appends the events that come after the last line; returns how many.

        Args:
            events: in the order of the chain, out of blocks that are final.
        """
        lines, head = [], self._head
        for stored in events:
            if (stored.log.block, stored.log.index) > self._place:
                line = line_of(stored, head)
                lines.append(line)
                head = line.hash
        append_lines(self._log, [line.to_bytes() for line in lines])
        for line in lines:
            self._note(line)
        return len(lines)

    def rebuild(self, events: Iterable[StoredEvent]) -> None:
        """Writes the log anew, after a reorganisation that reached into it or damage."""
        head, lines = self._run, []
        for stored in events:
            line = line_of(stored, head)
            lines.append(line)
            head = line.hash
        write_lines(self._log, [line.to_bytes() for line in lines])
        self._reset()
        for line in lines:
            self._note(line)
        self._keep_disclosures()

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
        append_lines(self._disclosures, [Disclosure(digest=digest, signed=signed).to_bytes()])
        self._disclosed.add(digest)
        return True

    def _keep_disclosures(self) -> None:
        """Drops the submissions whose commits are no more."""
        kept = [
            item for item in read_disclosures(self._disclosures) if item.digest in self._commits
        ]
        write_lines(self._disclosures, [item.to_bytes() for item in kept])
        self._disclosed = {item.digest for item in kept}

    def _reset(self) -> None:
        self._head, self._place = self._run, (-1, -1)
        self._last: Line | None = None
        self._commits: set[Hash32] = set()

    def _note(self, line: Line) -> None:
        self._head, self._place, self._last = line.hash, (line.block, line.index), line
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
    for line in read_log(log, run):
        lines.append(line)
        head = line.hash
    if events is not None:
        _compare(log, lines, events)
    commits = {(line.fields["digest"], line.fields["operator"]) for line in _of(lines, "Committed")}
    operators = {
        (line.fields["account"], line.fields["operator"]) for line in _of(lines, *_OPERATOR_EVENTS)
    }
    hashes = []
    for number, item in enumerate(read_disclosures(disclosed), start=1):
        submission = item.signed.submission
        digest = submission.digest(domain)
        if digest != item.digest:
            raise DataLogDamaged(disclosed, number, "its digest is wrong")
        signer = _signer(item, disclosed, number)
        if (submission.miner, signer) not in operators:
            raise DataLogDamaged(disclosed, number, "signed by nobody who may")
        if (digest.hex(), signer) not in commits:
            raise DataLogDamaged(disclosed, number, "its commit is not in the log")
        hashes.append(_four_hashes(submission))
    return Audit(entries=len(lines), head=head, disclosures=tuple(hashes))


def _compare(path: Path, lines: Sequence[Line], events: Sequence[StoredEvent]) -> None:
    previous = lines[0].previous if lines else None
    for number, (line, stored) in enumerate(zip(lines, events, strict=False), start=1):
        if line != line_of(stored, previous or line.previous):
            raise DataLogDamaged(path, number, "the chain says something else")
        previous = line.hash
    if len(lines) != len(events):
        raise DataLogDamaged(
            path, min(len(lines), len(events)) + 1, f"{len(lines)} lines for {len(events)} events"
        )


def _of(lines: Iterable[Line], *events: str) -> list[Line]:
    return [line for line in lines if line.event in events]


def _signer(item: Disclosure, path: Path, number: int) -> Address:
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
