"""Small signed records by topic and key, in a folder.

    <topic>/<sequence>.<key>.<sha-256 of the record>

Several distinct records may stand under one key: two conflicting signed submissions of one miner
are evidence, so nothing replaces anything. Listings go newest first by sequence, a number that only
grows, so a reader that pages through a listing sees each record once whatever arrives meanwhile.
The board never drops a record by itself: when it is full it refuses, and its owner drops whole
topics when their time has passed. Thread-safe; a folder belongs to one process.
"""

from __future__ import annotations

import logging
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from protocol.hashing import sha256
from transport.errors import BadName, RecordRefused, StorageFull
from transport.files import storage_errors, write_atomically
from transport.limits import BoardLimits
from transport.names import check_key, check_topic

logger = logging.getLogger(__name__)

RECORD_FILE = re.compile(r"([0-9]{12})\.([A-Za-z0-9-]+)\.([0-9a-f]{64})", re.ASCII)
TOPICS = "topics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record on the board, without its bytes."""

    topic: str
    sequence: int
    key: str
    digest: bytes
    size: int


class RecordBoard:
    """The records of a node.

    Args:
        root: the folder, made if absent.
        limits: sizes and counts.
    """

    def __init__(self, root: Path, limits: BoardLimits | None = None) -> None:
        self.root = root
        self.limits = limits or BoardLimits()
        self._topics_folder = root / TOPICS
        self._scratch = root / "scratch"
        self._lock = threading.RLock()
        self._topics: dict[str, list[Entry]] = {}  # oldest first
        self._keys: dict[tuple[str, str], list[Entry]] = {}  # the same entries
        self._used_bytes = 0
        self._last = 0
        with storage_errors(root):
            self._topics_folder.mkdir(parents=True, exist_ok=True)
            self._scratch.mkdir(exist_ok=True)
            for leftover in self._scratch.iterdir():
                leftover.unlink()
            self._load()

    def put(self, topic: str, key: str, record: bytes) -> bool:
        """Adds a record durably; returns False when the same bytes stand under the key already.

        Raises:
            BadName: a topic or key outside the grammar.
            RecordRefused: larger than a record may be, or too many under the key or topic.
            StorageFull: the board's quota is exhausted.
        """
        check_topic(topic)
        check_key(key)
        if not 0 < len(record) <= self.limits.record_bytes:
            raise RecordRefused(f"a record has 1 to {self.limits.record_bytes} bytes")
        digest = sha256(record)
        with self._lock:
            if any(entry.digest == digest for entry in self._keys.get((topic, key), [])):
                return False
            self._check_room(topic, key, len(record))
            entry = Entry(
                topic=topic, sequence=self._last + 1, key=key, digest=digest, size=len(record)
            )
            with storage_errors(self.root):
                write_atomically(self._path(entry), record, scratch=self._scratch)
            self._last += 1
            self._enter(entry)
        return True

    def get(self, topic: str, key: str) -> list[bytes]:
        """Every record under a key, newest first."""
        with self._lock:
            entries = self._keys.get((topic, key), [])[::-1]
        return self._read(entries)

    def listing(
        self, topic: str, *, before: int | None = None, max_bytes: int, max_records: int
    ) -> tuple[list[bytes], int | None]:
        """A page of a topic, newest first, with the cursor of the next page (None: the last one).

        Args:
            topic: which topic; one that does not exist is empty.
            before: only records older than this cursor.
            max_bytes: most record bytes in the page; a single record always fits.
            max_records: most records in the page.
        """
        page: list[Entry] = []
        size = 0
        more = False
        with self._lock:
            for entry in reversed(self._topics.get(topic, [])):
                if before is not None and entry.sequence >= before:
                    continue
                if page and (size + entry.size > max_bytes or len(page) == max_records):
                    more = True
                    break
                page.append(entry)
                size += entry.size
        return self._read(page), page[-1].sequence if more else None

    def records(self, topic: str) -> list[bytes]:
        """All records of a topic, newest first."""
        with self._lock:
            entries = self._topics.get(topic, [])[::-1]
        return self._read(entries)

    def keys(self, topic: str) -> list[str]:
        """The keys of a topic, sorted."""
        with self._lock:
            return sorted({entry.key for entry in self._topics.get(topic, [])})

    def topics(self) -> list[str]:
        """The topics that hold a record, sorted."""
        with self._lock:
            return sorted(self._topics)

    def drop(self, topic: str) -> int:
        """Drops a topic and everything under it; returns how many records it had."""
        check_topic(topic)
        with self._lock, storage_errors(self.root):
            entries = self._topics.pop(topic, [])
            for entry in entries:
                self._path(entry).unlink(missing_ok=True)
                self._keys.pop((topic, entry.key), None)
            self._used_bytes -= sum(entry.size for entry in entries)
            self._remove_empty_folders(self._topics_folder / topic)
        return len(entries)

    @property
    def used_bytes(self) -> int:
        """Record bytes in all."""
        with self._lock:
            return self._used_bytes

    def _check_room(self, topic: str, key: str, size: int) -> None:
        if len(self._keys.get((topic, key), [])) >= self.limits.records_per_key:
            raise RecordRefused(f"{topic}: too many different records under the key {key}")
        if len(self._topics.get(topic, [])) >= self.limits.records_per_topic:
            raise RecordRefused(f"{topic}: the topic is full")
        if self._used_bytes + size > self.limits.quota_bytes:
            raise StorageFull(
                f"the record board's quota of {self.limits.quota_bytes} bytes is exhausted",
                "raise the quota, or drop topics whose time has passed",
            )

    def _enter(self, entry: Entry) -> None:
        self._topics.setdefault(entry.topic, []).append(entry)
        self._keys.setdefault((entry.topic, entry.key), []).append(entry)
        self._used_bytes += entry.size

    def _path(self, entry: Entry) -> Path:
        name = f"{entry.sequence:012d}.{entry.key}.{entry.digest.hex()}"
        return self._topics_folder / entry.topic / name

    def _read(self, entries: list[Entry]) -> list[bytes]:
        """The records that are still there and undamaged."""
        found = []
        for entry in entries:
            with storage_errors(self.root), suppress(FileNotFoundError):  # dropped meanwhile
                record = self._path(entry).read_bytes()
                if sha256(record) == entry.digest:
                    found.append(record)
                else:
                    logger.warning("%s: a record of %s was damaged", entry.topic, entry.key)
        return found

    def _load(self) -> None:
        found = []
        for path in self._topics_folder.rglob("*"):
            match = RECORD_FILE.fullmatch(path.name)
            if match and path.is_file():
                topic = path.parent.relative_to(self._topics_folder).as_posix()
                with suppress(BadName):
                    found.append(
                        Entry(
                            topic=check_topic(topic),
                            sequence=int(match[1]),
                            key=check_key(match[2]),
                            digest=bytes.fromhex(match[3]),
                            size=path.stat().st_size,
                        )
                    )
        for entry in sorted(found, key=lambda entry: entry.sequence):
            self._enter(entry)
            self._last = entry.sequence

    def _remove_empty_folders(self, folder: Path) -> None:
        """From a topic's folder upwards, up to the first that still holds something."""
        with suppress(OSError):
            while folder != self._topics_folder:
                folder.rmdir()
                folder = folder.parent
