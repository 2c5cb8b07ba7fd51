"""Reads TensorBoard's event files with tensorboardX' protobuf classes and checksums, which know nothing of ours."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event


def events_in(data: bytes) -> Iterator[Any]:
    """Every event of a file's bytes; a wrong length or checksum fails."""
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at : at + 8])
        message = data[at + 12 : at + 12 + length]
        assert len(message) == length, "torn"
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked(message)
        yield Event.FromString(message)
        at += 16 + length


def masked(data: bytes) -> int:
    """tensorflow/core/lib/hash/crc32c.h: rotated right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def scalars_in(path: Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) of each tag, in the file's order."""
    found: dict[str, list[tuple[int, float]]] = {}
    first, *events = events_in(path.read_bytes())
    assert first.file_version == "brain.Event:2"
    for event in events:
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found
