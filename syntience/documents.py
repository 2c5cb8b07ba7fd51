"""The user's own text as documents, read in a stream: a file, a folder of files, or a data set of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from syntience.compression import COMPRESSIONS, kind_of, stem_of
from syntience.errors import DataMissing
from syntience.hub import PREFIX, is_saved, open_named, open_saved
from syntience.readers import READERS, read_plain_text

FIELD = "text"
"""The field of a JSON line and the column of a table that hold the text, unless another is named."""


class Documents(Protocol):
    """Documents that can be read as often as one likes, always in the same order.

    `position` tells how far the reading under way has come, of `size` in all: bytes on disk, or rows.
    """

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def position(self) -> int: ...

    def __iter__(self) -> Iterator[str]: ...


class ListedDocuments:
    """Documents in memory."""

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self.name, self.size, self.position = name, len(texts), 0
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        for number, text in enumerate(self._texts, start=1):
            self.position = number
            yield text


class FileDocuments:
    """The documents of some files, one file after the other."""

    def __init__(self, name: str, files: Sequence[Path], *, field: str) -> None:
        self.name, self._files, self._field = name, files, field
        self.size, self.position = sum(file.stat().st_size for file in files), 0

    def __iter__(self) -> Iterator[str]:
        before = 0
        for path in self._files:
            reader = READERS.get(kind_of(path), read_plain_text)
            try:
                with path.open("rb") as raw:
                    for text in reader(path, raw, self._field):
                        yield text
                        self.position = before + (0 if raw.closed else raw.tell())
            except OSError as error:
                raise DataMissing(
                    f"can't read {path} ({error.strerror or error})", "check its permissions"
                ) from error
            before += path.stat().st_size
            self.position = before


def open_documents(place: Path | str, *, field: str = FIELD, cache_dir: Path) -> Documents:
    """The documents at a path or, as `hf:NAME[:CONFIG]:SPLIT`, of a data set of the hub.

    A folder is searched through all its levels, in the order of the names; files of other kinds and hidden ones are skipped.

    Args:
        place: where they are.
        field: the field or column that holds the text, where there are several.
        cache_dir: where data sets of the hub are kept.

    Raises:
        DataMissing: no such path, or nothing in it that can be read. Reading raises it for what can't be read as its name says.
    """
    if str(place).startswith(PREFIX):
        return open_named(str(place), field=field, cache_dir=cache_dir)
    path = Path(place)
    if path.is_dir() and is_saved(path):
        return open_saved(path, field=field)
    name = path.resolve().name if path.is_dir() else stem_of(path)[0]
    return FileDocuments(name, _files(path), field=field)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataMissing(
            f"there is no file or folder {path}", "give the path of your text with --data"
        )
    inside = sorted(path.rglob("*"), key=lambda file: file.relative_to(path).parts)
    files = [
        file
        for file in inside
        if file.is_file()
        and kind_of(file) in READERS
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]
    if not files:
        raise DataMissing(
            f"the folder {path} holds no text files",
            f"put files in it that end with {', '.join(READERS)}, or these with {' or '.join(COMPRESSIONS)}",
        )
    return files
