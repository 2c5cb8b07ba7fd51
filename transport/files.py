"""Files that are either whole or absent, whenever the process is killed."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from transport.errors import StorageBroken, StorageFull

_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turns the operating system's refusals into errors that say what the operator can do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull(
                f"no space left for {folder}", "free some disk space or move the folder"
            ) from error
        raise StorageBroken(
            f"can't use {folder} ({error.strerror or error})",
            "check that the folder exists and that this user may write it",
        ) from error


def write_atomically(path: Path, data: bytes, *, scratch: Path) -> None:
    """Writes through a temporary file in ``scratch`` (same file system), fsync and rename."""
    write_chunks_atomically(path, (data,), scratch=scratch)


def write_chunks_atomically(path: Path, chunks: Iterable[bytes], *, scratch: Path) -> None:
    """The same for what comes in pieces."""
    with tempfile.NamedTemporaryFile(dir=scratch, delete=False) as file:
        temporary = Path(file.name)
        try:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
            move_durably(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def move_durably(source: Path, target: Path) -> None:
    """Renames, making the target's folder if need be, and makes the rename survive a power cut."""
    if not target.parent.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(target.parent.parent)
    source.replace(target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """fsync of a folder: names in it are on disk afterwards."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
