"""TensorBoard's event files, without TensorBoard: scalars alone, written as its readers expect them.

A file is a row of TFRecords; each frames a protobuf message `tensorflow.Event`, of which a scalar needs four fields:

    record   length u64 | masked CRC-32C of it | message | masked CRC-32C of that         (all little-endian)
    Event    1 wall_time double | 2 step int64 | 3 file_version string | 5 Summary
    Summary  1 Value, repeated          Value    1 tag string | 2 simple_value float

(tensorflow/core/util/event.proto, summary.proto and lib/io/record_writer.h.) A home's file is named after it, so that it can
be written anew, whole, whenever somebody wants it; a reader ignores a record that a kill has torn.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from node.curves import EvaluationRow, TrainingRow
from syntience.curves.homes import TrainingReport
from syntience.files import write_atomically

_VERSION = "brain.Event:2"
_CASTAGNOLI = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protobuf."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Scalars of one step, by tag. `at` is unix time."""

    at: float
    step: int
    scalars: tuple[tuple[str, float], ...]


def events_of(row: TrainingRow | EvaluationRow) -> Iterator[Event]:
    """What TensorBoard shows of a row. Steps are rounds, but for `loss/step`, where they are inner steps of the run.

    What became of a miner's round comes last, in an event of its own: it is known later than the rest.
    """
    if isinstance(row, EvaluationRow):
        scalars = {
            "loss/heldout": row.heldout_loss,
            "rate/alpha": row.alpha,
            "round/accepted": row.accepted,
            "round/selected": row.selected,
            "bytes/fetched": row.fetched_bytes,
        }
    else:
        first = (row.round - 1) * len(row.losses) + 1
        for step, loss in enumerate(row.losses, start=first):
            yield Event(at=row.at, step=step, scalars=(("loss/step", loss),))
        scalars = {
            "loss/training": row.mean_loss,
            "rate/learning_rate": row.learning_rate,
            "codec/error": row.compression_error,
            "codec/ratio": row.ratio,
            "bytes/payload": row.payload_bytes,
            "speed/tokens_per_s": row.tokens_per_s,
            "speed/train_s": row.train_s,
            "speed/encode_s": row.encode_s,
        }
    yield Event(at=row.at, step=row.round, scalars=tuple(scalars.items()))
    if isinstance(row, TrainingRow) and row.accepted is not None:
        yield Event(at=row.at, step=row.round, scalars=(("round/was_accepted", row.accepted),))


def write_report(report: TrainingReport, folder: Path) -> list[Path]:
    """An event file for each home, in a folder of its name: TensorBoard calls that a run.

    Raises:
        UnwritableOutput: one can't be written.
    """
    written = []
    for home in report.homes:
        path = event_file(folder, home.name)
        write_events(path, [event for row in home.rows for event in events_of(row)])
        written.append(path)
    return written


def event_file(folder: Path, name: str) -> Path:
    """Where the events of a home lie; the middle of the name is what TensorBoard looks for."""
    return folder / name / f"events.out.tfevents.0000000000.{name}"


def write_events(path: Path, events: Sequence[Event]) -> None:
    """Writes the file anew, whole or not at all. Raises `UnwritableOutput`."""
    began = events[0].at if events else 0.0
    head = _record(_fixed64(1, began) + _bytes(3, _VERSION.encode()))
    write_atomically(path, head + encoded(events))


def encoded(events: Iterable[Event]) -> bytes:
    """The records of events, to be appended to a file that `write_events` made."""
    return b"".join(_record(_message(event)) for event in events)


def _message(event: Event) -> bytes:
    summary = b"".join(
        _bytes(1, _bytes(1, tag.encode()) + _fixed32(2, value)) for tag, value in event.scalars
    )
    return _fixed64(1, event.at) + _tag(2, _VARINT) + _varint(event.step) + _bytes(5, summary)


def _record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    return length + _masked(length) + message + _masked(message)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return struct.pack("<I", (rotated + _MASK_DELTA) & 0xFFFFFFFF)


def crc32c(data: bytes) -> int:
    """CRC-32 with Castagnoli's polynomial (RFC 3720, B.4), a byte at a time."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@cache
def _crc_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ _CASTAGNOLI * (value & 1)  # noqa: PLW2901 - eight steps of a register
        table.append(value)
    return tuple(table)


def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _varint(value: int) -> bytes:
    low = []
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*low, value])


def _fixed64(number: int, value: float) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<d", value)


def _fixed32(number: int, value: float) -> bytes:
    return _tag(number, _FIXED32) + struct.pack("<f", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(value)) + value
