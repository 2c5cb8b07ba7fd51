"""Blobs by digest in a folder: whole or absent, within a quota.

    blobs/ab/ab12…   a blob under its sha-256
    pins/ab12…       an empty marker: this blob is never evicted, also while it is not here yet
    parts/           downloads under way, kept across restarts (see `parts`)
    scratch/         temporary files, emptied at start

Invariants: a file under ``blobs/`` was complete and synced before it got its name. Bytes are
compared with their digest before they leave: on every `get`, and once per start before streaming;
a blob that rotted is dropped and counts as missing (a pin on it stays). Blobs, partial files and
writes under way together stay within the quota; when they would not, idle partial files go first,
then unpinned blobs, oldest first. Thread-safe. A folder belongs to one process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from protocol.hashing import sha256
from protocol.ids import Hash32
from protocol.submission import BlobRef
from transport.errors import BlobMissing, StorageFull
from transport.files import (
    move_durably,
    storage_errors,
    sync_folder,
    write_atomically,
    write_chunks_atomically,
)
from transport.limits import MIB
from transport.names import digest_files
from transport.parts import Part, PartFolder

logger = logging.getLogger(__name__)


def blob_path(root: Path, digest: Hash32) -> Path:
    """Where a store in `root` keeps a blob."""
    name = digest.hex()
    return root / "blobs" / name[:2] / name


class FolderStore:
    """A content-addressed store in one folder.

    Args:
        root: the folder, made if absent.
        quota_bytes: most bytes that blobs and partial files may take together.
    """

    def __init__(self, root: Path, quota_bytes: int) -> None:
        if quota_bytes <= 0:
            raise ValueError("quota_bytes must be positive")
        self.root = root
        self.quota_bytes = quota_bytes
        self._blobs = root / "blobs"
        self._pins = root / "pins"
        self._scratch = root / "scratch"
        self._lock = threading.RLock()
        self._sizes: dict[Hash32, int] = {}  # oldest first
        self._checked: set[Hash32] = set()
        self._writing_bytes = 0
        with storage_errors(root):
            for folder in (self._blobs, self._pins, self._scratch):
                folder.mkdir(parents=True, exist_ok=True)
            for leftover in self._scratch.iterdir():
                leftover.unlink()
            self._pinned = {digest for digest, _ in digest_files(self._pins.iterdir())}
            self._parts = PartFolder(root / "parts")
            self._load()

    def put(self, data: bytes) -> BlobRef:
        """Stores bytes durably; storing what is held, undamaged, makes it the newest.

        Raises:
            StorageFull: the quota is taken by what may not be dropped.
        """
        ref = BlobRef(digest=Hash32(sha256(data)), size=len(data))
        if self._refresh(ref.digest):
            return ref
        with self._room_for(ref.size):
            with storage_errors(self.root):
                write_atomically(self._path(ref.digest), data, scratch=self._scratch)
            self._enter(ref)
        return ref

    def put_file(self, path: Path, *, chunk_bytes: int = MIB) -> BlobRef:
        """Stores a copy of a file, which no other process changes meanwhile, a chunk at a time.

        Raises:
            StorageFull: the quota is taken by what may not be dropped.
            StorageBroken: the file can't be read.
        """
        with storage_errors(path), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
            ref = BlobRef(digest=Hash32(digest), size=file.tell())
            file.seek(0)
            if self._refresh(ref.digest):
                return ref
            with self._room_for(ref.size):
                with storage_errors(self.root):
                    write_chunks_atomically(
                        self._path(ref.digest),
                        iter(lambda: file.read(chunk_bytes), b""),
                        scratch=self._scratch,
                    )
                self._enter(ref)
        return ref

    def get(self, digest: Hash32) -> bytes | None:
        """The whole blob, compared with its digest; None if it is not here."""
        try:
            with storage_errors(self.root), self._open_file(digest) as file:
                data = file.read()
        except BlobMissing:
            return None
        if sha256(data) != digest:
            self._drop_damaged(digest)
            return None
        return data

    def has(self, digest: Hash32) -> bool:
        """Whether the blob is held."""
        with self._lock:
            return digest in self._sizes

    def size(self, digest: Hash32) -> int | None:
        """The blob's size in bytes; None if it is not here."""
        with self._lock:
            return self._sizes.get(digest)

    def open(self, digest: Hash32) -> BufferedReader:
        """The blob as an open file, which stays readable when the blob is evicted meanwhile.

        The first opening since the start reads it all to compare it with the digest.

        Raises:
            BlobMissing: not held, or damaged and therefore dropped.
        """
        with storage_errors(self.root):
            file = self._open_file(digest)
            with self._lock:
                checked = digest in self._checked
            if not checked:
                if hashlib.file_digest(file, "sha256").digest() != digest:
                    file.close()
                    self._drop_damaged(digest)
                    raise BlobMissing(f"blob {digest.hex()} was damaged on disk and is dropped")
                file.seek(0)
                with self._lock:
                    self._checked.add(digest)
        return file

    def stream(self, digest: Hash32, *, chunk_bytes: int = MIB) -> Iterator[bytes]:
        """The blob in chunks; raises `BlobMissing`."""
        with self.open(digest) as file:
            while chunk := file.read(chunk_bytes):
                yield chunk

    def delete(self, digest: Hash32) -> bool:
        """Drops a blob, pinned or not, and its pin; returns whether it was held."""
        self.unpin(digest)
        with self._lock, storage_errors(self.root):
            return self._drop(digest)

    def pin(self, digest: Hash32) -> None:
        """Keeps a blob, held or still to come, from eviction, also after a restart."""
        with self._lock, storage_errors(self.root):
            if digest not in self._pinned:
                (self._pins / digest.hex()).touch()
                sync_folder(self._pins)
                self._pinned.add(digest)

    def unpin(self, digest: Hash32) -> None:
        """Lets a blob be evicted again."""
        with self._lock, storage_errors(self.root):
            if digest in self._pinned:
                (self._pins / digest.hex()).unlink(missing_ok=True)
                self._pinned.discard(digest)

    def pinned(self) -> frozenset[Hash32]:
        """Every pinned digest, held or not."""
        with self._lock:
            return frozenset(self._pinned)

    def digests(self) -> list[Hash32]:
        """What is held, oldest first."""
        with self._lock:
            return list(self._sizes)

    @property
    def used_bytes(self) -> int:
        """Bytes of blobs, partial files and writes under way."""
        with self._lock:
            return self._held_bytes + self._parts.reserved_bytes + self._writing_bytes

    def part(self, ref: BlobRef) -> Part:
        """Opens the partial file of a blob, with what an earlier attempt left in it.

        Reads what is there, so call it off the event loop. `Part.close` it, or `adopt` it.

        Raises:
            DownloadBusy: another download of the same blob has it open.
            StorageFull: the blob does not fit.
        """
        with storage_errors(self.root):
            with self._lock:
                self._make_room(ref.size - self._parts.reserved(ref.digest), keep=ref.digest)
                self._parts.claim(ref)
            return self._parts.open(ref)

    def adopt(self, part: Part) -> BlobRef:
        """Turns a complete part whose digest is right into a blob."""
        ref = part.ref
        if part.digest() != ref.digest:
            raise ValueError("a part is adopted only when its digest is right")
        if part.path is None:
            data = part.content()
            part.discard()
            return self.put(data)
        with storage_errors(self.root):
            part.sync()
            move_durably(part.path, self._path(ref.digest))
            with self._lock:
                part.discard()
                self._enter(ref)
        return ref

    def _load(self) -> None:
        found = [
            (path.stat().st_mtime_ns, digest, path.stat().st_size)
            for digest, path in digest_files(self._blobs.glob("??/*"))
        ]
        self._sizes = {digest: size for _, digest, size in sorted(found)}
        self._held_bytes = sum(self._sizes.values())

    def _path(self, digest: Hash32) -> Path:
        return blob_path(self.root, digest)

    def _open_file(self, digest: Hash32) -> BufferedReader:
        with self._lock:
            if digest not in self._sizes:
                raise BlobMissing(f"blob {digest.hex()} is not held")
            try:
                return self._path(digest).open("rb")
            except FileNotFoundError as error:
                self._drop(digest)
                raise BlobMissing(f"the file of blob {digest.hex()} is gone") from error

    def _refresh(self, digest: Hash32) -> bool:
        """Makes an undamaged blob the newest; returns False if there is none."""
        if not self._is_intact(digest):
            return False
        with self._lock:
            if digest not in self._sizes:
                return False
            try:
                now = time.time_ns()
                os.utime(self._path(digest), ns=(now, now))
            except FileNotFoundError:
                self._drop(digest)
                return False
            self._sizes[digest] = self._sizes.pop(digest)
            return True

    def _is_intact(self, digest: Hash32) -> bool:
        """Whether the blob is held and undamaged; one that is damaged is dropped."""
        try:
            with storage_errors(self.root), self._open_file(digest) as file:
                found = hashlib.file_digest(file, "sha256").digest()
        except BlobMissing:
            return False
        if found != digest:
            self._drop_damaged(digest)
        return found == digest

    def _enter(self, ref: BlobRef) -> None:
        with self._lock:
            self._held_bytes += ref.size - self._sizes.pop(ref.digest, 0)
            self._sizes[ref.digest] = ref.size
            self._checked.add(ref.digest)

    def _drop(self, digest: Hash32) -> bool:
        self._path(digest).unlink(missing_ok=True)
        self._checked.discard(digest)
        size = self._sizes.pop(digest, None)
        self._held_bytes -= size or 0
        return size is not None

    def _drop_damaged(self, digest: Hash32) -> None:
        logger.warning("blob %s was damaged on disk and is dropped", digest.hex())
        with self._lock, storage_errors(self.root):
            self._drop(digest)

    @contextmanager
    def _room_for(self, size: int) -> Iterator[None]:
        with self._lock:
            self._make_room(size)
            self._writing_bytes += size
        try:
            yield
        finally:
            with self._lock:
                self._writing_bytes -= size

    def _make_room(self, size: int, keep: Hash32 | None = None) -> None:
        excess = self.used_bytes + size - self.quota_bytes
        if excess <= 0:
            return
        idle = self._parts.idle_bytes(keep=keep)
        loose = [digest for digest in self._sizes if digest not in self._pinned]
        if idle + sum(self._sizes[digest] for digest in loose) < excess:
            raise StorageFull(
                f"{size} more bytes do not fit into the store's quota of {self.quota_bytes}",
                "raise the quota, or wait until pinned blobs are released",
            )
        excess -= self._parts.drop_idle(excess, keep=keep)
        for digest in loose:
            if excess <= 0:
                break
            excess -= self._sizes[digest]
            self._drop(digest)
