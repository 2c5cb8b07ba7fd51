"""Files that we write for people: whole or not at all, and a clear word when they can't be written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from syntience.errors import UnwritableOutput


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces the file in one step, after its content is on disk.

    Raises:
        UnwritableOutput: the folder can't be made or written, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).chmod(0o644)
            Path(draft).replace(path)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(draft).unlink()
            raise
    except OSError as error:
        raise _unwritable(path, error) from error


def require_writable(path: Path) -> None:
    """Checks early that `write_atomically` will be able to write this file.

    Raises:
        UnwritableOutput: it won't.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UnwritableOutput:
    return UnwritableOutput(
        f"can't write {path} ({error.strerror or error})",
        "choose a place that this user may write and that has room",
    )
