"""Files that may be compressed, read in a stream: gzip by the suffix `.gz`, Zstandard by `.zst`."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from syntience.errors import DataMissing

_READ_BYTES = 1 << 16


class _Zstandard(io.RawIOBase):
    """The content of one or more frames. The library's own reader takes a file that was cut off for a whole one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._rest, self._ready = file, b"", memoryview(b"")
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._inside = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._file.read(_READ_BYTES)
            if not data:
                if self._inside:
                    raise EOFError("it ends within a frame")
                return 0
            self._ready = memoryview(self._frame.decompress(data))
            self._rest, self._inside = self._frame.unused_data, not self._frame.eof
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._ready))
        target[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _open_gzip(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile(fileobj=file))


def _open_zstandard(file: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Zstandard(file), _READ_BYTES))


_OPENERS = {".gz": _open_gzip, ".zst": _open_zstandard}
COMPRESSIONS = tuple(_OPENERS)
_NAMES: Mapping[str, str] = {".gz": "gzip", ".zst": "Zstandard"}


def kind_of(path: Path) -> str:
    """The suffix, in small letters, that says what is inside: `.jsonl` for `a.JSONL.gz`."""
    return stem_of(path)[1]


def stem_of(path: Path) -> tuple[str, str]:
    """A file's name without suffixes, and the suffix that says what is inside."""
    inner = path.with_suffix("") if path.suffix.lower() in _OPENERS else path
    return inner.stem, inner.suffix.lower()


@contextmanager
def open_stream(path: Path, raw: BinaryIO) -> Iterator[BinaryIO]:
    """What is inside `raw`, the opened file of this name; its position stays that in the file on disk.

    Raises:
        DataMissing: it is damaged, cut off, or not compressed as its name says.
    """
    suffix = path.suffix.lower()
    try:
        yield _OPENERS[suffix](raw) if suffix in _OPENERS else raw
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise DataMissing(
            f"{path} is no whole {_NAMES.get(suffix, 'file')} file ({error})",
            "fetch or compress it again",
        ) from error
