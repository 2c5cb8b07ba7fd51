"""Documents out of one file: plain text, JSON lines or Parquet, a piece at a time."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from protocol.canonical import MAX_DEPTH, nesting
from syntience.compression import open_stream
from syntience.errors import DataMissing

DIVIDER = "<|endoftext|>"
"""Separates the documents of one plain text."""
MOST_BYTES = 1 << 30
"""Of one document: it is held as a whole, and its tokens take many times its size."""
_READ_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"

Reader = Callable[[Path, BinaryIO, str], Iterator[str]]
"""(the file's name, the file, the field with the text) to documents."""


def _read_text(path: Path, raw: BinaryIO, field: str) -> Iterator[str]:
    """Plain text has no fields. Line ends stay as they are, so that a document's digest is that of its bytes."""
    line = 1
    with open_stream(path, raw) as file:
        for document in _split(path, file):
            yield _decoded(document, path, line)
            line += document.count(b"\n")


def _split(path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The pieces between dividers; `tail` is what may be the beginning of one."""
    divider, parts, size = DIVIDER.encode(), list[bytes](), 0
    tail = file.read(len(_BOM))
    tail = b"" if tail == _BOM else tail
    while chunk := file.read(_READ_BYTES):
        first, *others = (tail + chunk).split(divider)
        if others:
            yield b"".join([*parts, first])
            yield from others[:-1]
            parts, size, first = [], 0, others[-1]
        cut = max(0, len(first) - len(divider) + 1)
        parts.append(first[:cut])
        tail, size = first[cut:], size + cut
        if size > MOST_BYTES:
            raise DataMissing(
                f"{path} has a document of more than {MOST_BYTES >> 20} MiB",
                f"divide its documents by {DIVIDER}",
            )
    yield b"".join([*parts, tail])


def _read_json_lines(path: Path, raw: BinaryIO, field: str) -> Iterator[str]:
    with open_stream(path, raw) as file:
        number = 0
        while line := file.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES:
                raise DataMissing(
                    f"{path}, line {number} is longer than {MOST_BYTES >> 20} MiB",
                    "put each document on a line of its own",
                )
            text = _decoded(line.removeprefix(_BOM) if number == 1 else line, path, number)
            if text.strip():
                yield _field_of(text, line, field, f"{path}, line {number}")


def _field_of(text: str, line: bytes, field: str, where: str) -> str:
    try:
        if line.count(b"[") + line.count(b"{") > MAX_DEPTH and nesting(line) > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        record = json.loads(text)
    except ValueError as error:
        raise DataMissing(
            f"{where} is not JSON ({error})", "put one JSON object on each line"
        ) from error
    value = record.get(field) if isinstance(record, dict) else None
    if not isinstance(value, str):
        raise DataMissing(
            f"{where} has no string `{field}`",
            "name the field that holds the text with --field",
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataMissing(
            f"{where} holds half of a character (a lone surrogate, {value[error.start]!r})",
            "write the text again with whole characters",
        ) from error
    return value


def _read_parquet(path: Path, raw: BinaryIO, field: str) -> Iterator[str]:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise DataMissing(
            f"reading {path} needs pyarrow", "install it: pip install 'syntience[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(raw) as table:
            if field not in table.schema_arrow.names:
                raise DataMissing(
                    f"{path} has no column `{field}`",
                    "name the column that holds the text with --field",
                )
            kind = table.schema_arrow.field(field).type
            if kind not in (arrow.string(), arrow.large_string()):
                raise DataMissing(
                    f"the column `{field}` of {path} holds {kind}, not text",
                    "name the column that holds the text with --field",
                )
            for batch in table.iter_batches(batch_size=1024, columns=[field]):
                yield from (text for text in batch.column(0).to_pylist() if text is not None)
    except arrow.ArrowException as error:
        raise DataMissing(
            f"{path} is not a Parquet file ({error})", "check where it comes from"
        ) from error


def _decoded(data: bytes, path: Path, line: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        raise DataMissing(
            f"{path}, line {line + before.count(bytes([10]))} is not UTF-8 text "
            f"(byte {len(before) - before.rfind(bytes([10])) - 1})",
            "convert it, for example with iconv",
        ) from error


read_plain_text: Reader = _read_text
READERS: Mapping[str, Reader] = {
    ".txt": _read_text,
    ".md": _read_text,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".parquet": _read_parquet,
}
