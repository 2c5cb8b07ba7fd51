"""Downloads under way: partial files that survive a kill, and who sent which bytes of them.

``parts/ab12….part`` holds the bytes so far, appended in order. They are compared with the blob's
digest only when they are complete. Who sent them is known for the bytes of this attempt; what an
earlier attempt left is of unknown source, since a crash may have damaged it. Blobs of up to
`SMALL_BYTES` stay in memory: there is little to resume.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from protocol.ids import Hash32
from protocol.submission import BlobRef
from transport.errors import DownloadBusy, WrongLength
from transport.files import storage_errors
from transport.limits import KIB, MIB
from transport.names import digest_files

SMALL_BYTES = 256 * KIB
_KEEP_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """The bytes [start, stop) of a part, all from one mirror (None: left by an earlier attempt)."""

    source: str | None
    start: int
    stop: int


class Part:
    """The bytes of one blob so far. Thread-safe; opened by `FolderStore.part`."""

    def __init__(self, folder: PartFolder, ref: BlobRef, path: Path | None) -> None:
        self.ref = ref
        self.path = path
        self._folder = folder
        self._lock = threading.Lock()
        self._hash = hashlib.sha256()
        self._size = 0
        self._starts: list[tuple[int, str | None]] = [(0, None)]
        self._mixture: BinaryIO | None = None
        self._suspects: tuple[Stretch, ...] = ()
        self._file = self._fresh_file()
        self._recover()

    @property
    def size(self) -> int:
        """Bytes held so far; the offset from which to continue."""
        return self._size

    def is_complete(self) -> bool:
        """Whether as many bytes as the blob has are here, right or wrong."""
        return self._size == self.ref.size

    def digest(self) -> Hash32:
        """sha-256 of the bytes so far."""
        with self._lock:
            return Hash32(self._hash.digest())

    def stretches(self) -> tuple[Stretch, ...]:
        """Who sent what, in order; empty stretches left out."""
        with self._lock:
            stops = [start for start, _ in self._starts[1:]] + [self._size]
            return tuple(
                Stretch(source, start, stop)
                for (start, source), stop in zip(self._starts, stops, strict=True)
                if stop > start
            )

    def sources(self) -> frozenset[str | None]:
        """Everyone who sent bytes that are still here."""
        return frozenset(stretch.source for stretch in self.stretches())

    def begin(self, source: str) -> None:
        """From here on the bytes come from ``source``."""
        with self._lock:
            self._starts.append((self._size, source))

    def append(self, data: bytes) -> None:
        """Adds bytes; raises `WrongLength` when they are more than the blob has."""
        with self._lock:
            if self._size + len(data) > self.ref.size:
                raise WrongLength(f"more than the {self.ref.size} bytes of the blob")
            with storage_errors(self._folder.root):
                self._file.write(data)
            self._hash.update(data)
            self._size += len(data)

    def reset(self) -> None:
        """Drops the bytes."""
        with self._lock:
            self._restart()

    def set_aside(self) -> None:
        """Keeps a complete, wrong mixture for `liars`, and starts again from nothing."""
        suspects = self.stretches()
        with self._lock:
            if self._mixture is not None:
                self._mixture.close()
            self._mixture, self._suspects = self._file, suspects
            if self.path is not None:
                self.path.unlink()
            self._file = self._fresh_file()
            self._restart()

    def liars(self) -> frozenset[str]:
        """Who sent wrong bytes into the mixture that was set aside, now that all bytes are right."""
        with self._lock:
            mixture = self._mixture
            if mixture is None:
                return frozenset()
            return frozenset(
                stretch.source
                for stretch in self._suspects
                if stretch.source is not None and not _same(mixture, self._file, stretch)
            )

    def content(self) -> bytes:
        """All bytes of a part that is kept in memory."""
        if not isinstance(self._file, io.BytesIO):
            raise TypeError("the part is on disk")
        return self._file.getvalue()

    def sync(self) -> None:
        """Makes the bytes durable."""
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Leaves the bytes for a later attempt; does nothing after `discard`."""
        self._close(kept=self.path is not None and self._size > 0)

    def discard(self) -> None:
        """Forgets the bytes; they are of no use, or have become a blob."""
        self._close(kept=False)

    def _close(self, *, kept: bool) -> None:
        with self._lock:
            try:
                if self._mixture is not None:
                    self._mixture.close()
                self._file.close()
            finally:
                self._folder.closed(self, kept=kept)

    def _fresh_file(self) -> BinaryIO:
        return io.BytesIO() if self.path is None else _open_alone(self.path)

    def _restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()
        self._size = 0
        self._starts = [(0, None)]

    def _recover(self) -> None:
        """Reads what an earlier attempt left."""
        self._file.seek(0)
        while chunk := self._file.read(MIB):
            self._hash.update(chunk)
            self._size += len(chunk)
        if self._size > self.ref.size:
            self._restart()


class PartFolder:
    """All parts of one store, open ones and those left by earlier attempts.

    An open part takes the size of its blob from the quota, one left behind its file's size.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._open: dict[Hash32, int] = {}
        self._idle: dict[Hash32, int] = {}  # oldest first
        root.mkdir(parents=True, exist_ok=True)
        self._load()

    @property
    def reserved_bytes(self) -> int:
        """What all parts take of the quota."""
        with self._lock:
            return sum(self._open.values()) + sum(self._idle.values())

    def reserved(self, digest: Hash32) -> int:
        """What one part takes of the quota."""
        with self._lock:
            return self._open.get(digest, self._idle.get(digest, 0))

    def idle_bytes(self, *, keep: Hash32 | None) -> int:
        """What `drop_idle` could free."""
        with self._lock:
            return sum(size for digest, size in self._idle.items() if digest != keep)

    def drop_idle(self, wanted: int, *, keep: Hash32 | None) -> int:
        """Drops parts that nobody has open until ``wanted`` bytes are free; returns how many are."""
        freed = 0
        with self._lock:
            for digest in [digest for digest in self._idle if digest != keep]:
                if freed >= wanted:
                    break
                freed += self._idle.pop(digest)
                self._path(digest).unlink(missing_ok=True)
        return freed

    def claim(self, ref: BlobRef) -> None:
        """Reserves a part for one download; raises `DownloadBusy` when another one has it."""
        with self._lock:
            if ref.digest in self._open:
                raise DownloadBusy(f"blob {ref.digest.hex()} is being fetched already")
            self._idle.pop(ref.digest, None)
            self._open[ref.digest] = ref.size

    def open(self, ref: BlobRef) -> Part:
        """Opens or makes the part that was claimed; raises `DownloadBusy`."""
        try:
            return Part(self, ref, None if ref.size <= SMALL_BYTES else self._path(ref.digest))
        except BaseException:
            with self._lock:
                del self._open[ref.digest]
            raise

    def closed(self, part: Part, *, kept: bool) -> None:
        """A part is no longer open."""
        digest = part.ref.digest
        with self._lock:
            if self._open.pop(digest, None) is None:
                return
            if kept:
                self._idle[digest] = part.size
            elif part.path is not None:
                part.path.unlink(missing_ok=True)

    def _load(self) -> None:
        found = []
        for digest, path in digest_files(self.root.glob("*.part")):
            state = path.stat()
            if state.st_mtime < time.time() - _KEEP_S:
                path.unlink()
            else:
                found.append((state.st_mtime_ns, digest, state.st_size))
        self._idle = {digest: size for _, digest, size in sorted(found)}

    def _path(self, digest: Hash32) -> Path:
        return self.root / f"{digest.hex()}.part"


def _open_alone(path: Path) -> BinaryIO:
    """Opens for reading and appending, alone among all processes."""
    file = path.open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise DownloadBusy(f"another process is fetching {path.stem}") from error
        raise
    return file


def _same(first: BinaryIO, second: BinaryIO, stretch: Stretch) -> bool:
    first.seek(stretch.start)
    second.seek(stretch.start)
    left = stretch.stop - stretch.start
    while left:
        size = min(left, MIB)
        if first.read(size) != second.read(size):
            return False
        left -= size
    return True
