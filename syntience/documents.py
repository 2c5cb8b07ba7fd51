"""The user's own text as documents: plain text, JSON lines or Parquet, a file or a folder of them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from protocol.canonical import MAX_DEPTH, nesting
from syntience.errors import DataMissing

DIVIDER = "<|endoftext|>"
"""Separates the documents of one plain text."""
FIELD = "text"
"""The field of a JSON line and the column of a Parquet file that hold the text."""


def load_documents(path: Path) -> list[str]:
    """All documents under a path; those without visible text are left out.

    A folder is searched through all its levels, in the order of the names; files of other kinds and hidden ones are skipped.

    Raises:
        DataMissing: no such path, a file that can't be read as its name says, or no text in any of them.
    """
    files = _files(path)
    documents = [d for d in chain.from_iterable(_read(file) for file in files) if d.strip()]
    if not documents:
        raise DataMissing(f"{path} holds no text", "give a file or folder with text in it")
    return documents


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
        and file.suffix.lower() in _READERS
        and not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]
    if not files:
        raise DataMissing(
            f"the folder {path} holds no text files",
            f"put files in it that end with {', '.join(_READERS)}",
        )
    return files


def _read(file: Path) -> Iterator[str]:
    reader = _READERS.get(file.suffix.lower(), _read_text)
    try:
        yield from reader(file)
    except UnicodeDecodeError as error:
        raise DataMissing(
            f"{file} is not UTF-8 text (byte {error.start})", "convert it, for example with iconv"
        ) from error
    except OSError as error:
        raise DataMissing(
            f"can't read {file} ({error.strerror or error})", "check its permissions"
        ) from error


def _read_text(file: Path) -> Iterator[str]:
    yield from file.read_text(encoding="utf-8-sig").split(DIVIDER)


def _read_json_lines(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                if nesting(line.encode()) > MAX_DEPTH:
                    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
                record = json.loads(line)
            except ValueError as error:
                raise DataMissing(
                    f"{file}, line {number} is not JSON ({error})",
                    "put one JSON object on each line",
                ) from error
            text = record.get(FIELD) if isinstance(record, dict) else None
            if not isinstance(text, str):
                raise DataMissing(
                    f"{file}, line {number} has no string `{FIELD}`",
                    f"name the field with the text `{FIELD}`",
                )
            yield text


def _read_parquet(file: Path) -> Iterator[str]:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise DataMissing(
            f"reading {file} needs pyarrow", "install it: pip install 'syntience[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(file) as table:
            if FIELD not in table.schema_arrow.names:
                raise DataMissing(
                    f"{file} has no column `{FIELD}`", f"name the column with the text `{FIELD}`"
                )
            for batch in table.iter_batches(columns=[FIELD]):
                yield from (text for text in batch.column(0).to_pylist() if isinstance(text, str))
    except arrow.ArrowException as error:
        raise DataMissing(
            f"{file} is not a Parquet file ({error})", "check where it comes from"
        ) from error


_READERS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    ".txt": _read_text,
    ".md": _read_text,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}
