"""Ways to break a payload: blind ones, and ones that know its parts and keep the rest consistent, so that they reach the decoder's depths.

The coded stream behind the header: three lengths, tables of frequencies, words of two coder states, raw bits (docs/protocol.md).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from training.layout import HEADER_BYTES

_LENGTHS = struct.Struct("<III")
_NUMBERS, _TOTAL, _LONGEST_RUN = 87, 4096, 15
_BITS_AT = 5
"""Where the header says how many bits a value has."""
_EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """Honest payloads to break: `own` of the run that is attacked, `foreign` of other models and codecs."""

    own: Sequence[bytes]
    foreign: Sequence[bytes]


Mutator = Callable[[random.Random, bytes, Stock], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A payload in parts."""

    header: bytes
    tables: bytes
    words: bytes
    raw: bytes

    @staticmethod
    def parse(data: bytes) -> Stream | None:
        """The parts, if the lengths are right."""
        if len(data) < HEADER_BYTES + _LENGTHS.size:
            return None
        tables, words, raw = _LENGTHS.unpack_from(data, HEADER_BYTES)
        at = HEADER_BYTES + _LENGTHS.size
        if at + tables + words + raw != len(data):
            return None
        return Stream(
            header=data[:HEADER_BYTES],
            tables=data[at : at + tables],
            words=data[at + tables : at + tables + words],
            raw=data[at + tables + words :],
        )

    def to_bytes(self) -> bytes:
        """The payload, with lengths that fit."""
        lengths = _LENGTHS.pack(len(self.tables), len(self.words), len(self.raw))
        return self.header + lengths + self.tables + self.words + self.raw

    def frequencies(self) -> list[list[int]]:
        """The three tables: gaps, levels, scales. Raises ValueError if they are none."""
        levels = 1 << max(0, self.header[_BITS_AT] - 1) % 8
        left, found = int.from_bytes(self.tables, "little"), []
        for symbols in (_NUMBERS, levels, _NUMBERS + 2):
            table: list[int] = []
            while len(table) < symbols:
                length, left = left & 15, left >> 4
                if length:
                    low = left & (1 << length - 1) - 1
                    table.append(1 << length - 1 | low)
                    left >>= length - 1
                else:
                    table += [0] * (1 + (left & 15))
                    left >>= 4
            if len(table) > symbols:
                raise ValueError("a run of absent symbols goes past the end")
            found.append(table)
        return found


def packed_tables(tables: Sequence[Sequence[int]]) -> bytes:
    """Frequencies as the stream holds them, whatever they are."""
    held = bits = 0

    def put(value: int, width: int) -> None:
        nonlocal held, bits
        held |= value << bits
        bits += width

    for table in tables:
        at = 0
        while at < len(table):
            length = table[at].bit_length()
            put(length, 4)
            if length:
                put(table[at] - (1 << length - 1), length - 1)
                at += 1
                continue
            run = 0
            while run < _LONGEST_RUN and at + run + 1 < len(table) and not table[at + run + 1]:
                run += 1
            put(run, 4)
            at += run + 1
    return held.to_bytes((bits + 7) // 8, "little")


# ---------------------------------------------------------------- blind


def flip_bits(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """One to eight bits anywhere."""
    broken = bytearray(data)
    for _i in range(rng.randint(1, 8) if data else 0):
        broken[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(broken)


def overwrite(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """A field of 1, 2 or 4 bytes becomes an extreme."""
    size = rng.choice((1, 2, 4))
    at = rng.randrange(len(data) + 1)
    value = rng.choice(_EXTREMES) & (1 << 8 * size) - 1
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def cut(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Ends early."""
    return data[: rng.randrange(len(data) + 1)]


def insert(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Bytes too many, in the middle or at the end."""
    at = rng.choice((rng.randrange(len(data) + 1), len(data)))
    return data[:at] + rng.randbytes(rng.choice((1, 2, 4, rng.randint(1, 64)))) + data[at:]


def remove(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Bytes too few, in the middle."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 2, 4, rng.randint(1, 64))) :]


def splice(rng: random.Random, data: bytes, stock: Stock) -> bytes:
    """Begins as this one, goes on as another."""
    other = rng.choice(stock.own)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[rng.choice((at, rng.randrange(len(other) + 1))) :]


def noise(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Chance, with or without the right header."""
    return data[: rng.choice((0, 4, HEADER_BYTES))] + rng.randbytes(rng.randint(0, 2 * len(data)))


# ---------------------------------------------------------------- with knowledge


def another_header(rng: random.Random, data: bytes, stock: Stock) -> bytes:
    """Another run's payload: as it is, below our header, or its header above our stream."""
    other = rng.choice(stock.foreign)
    ours, theirs = data[:HEADER_BYTES], other[:HEADER_BYTES]
    return rng.choice((other, ours + other[HEADER_BYTES:], theirs + data[HEADER_BYTES:]))


def header_field(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """A byte of magic, version, bits, reserved or fingerprint."""
    at = rng.randrange(HEADER_BYTES)
    return data[:at] + bytes([rng.choice((0, 1, 2, 3, 4, 8, 255))]) + data[at + 1 :]


def lengths(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Lengths that lie: extremes, some off, or moved from one part to another so that the sum stays."""
    if len(data) < HEADER_BYTES + _LENGTHS.size:
        return data
    said = list(_LENGTHS.unpack_from(data, HEADER_BYTES))
    which, other = rng.sample(range(3), 2)
    off = rng.choice((-2, -1, 1, 2, 3, 4, -4, 1 << 16, rng.randint(-300, 300)))
    said[which] = rng.choice((said[which] + off, rng.choice(_EXTREMES), len(data)))
    if rng.random() < 0.5:
        said = list(_LENGTHS.unpack_from(data, HEADER_BYTES))
        said[which] += off
        said[other] -= off
    head = _LENGTHS.pack(*(length % (1 << 32) for length in said))
    return data[:HEADER_BYTES] + head + data[HEADER_BYTES + _LENGTHS.size :]


def frequencies(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Other frequencies, most of which add up: the same words then say something else."""
    stream = Stream.parse(data)
    if stream is None:
        return data
    try:
        tables = stream.frequencies()
    except ValueError:
        return data
    table = rng.choice(tables)
    to, source = rng.randrange(len(table)), rng.randrange(len(table))
    kind = rng.randrange(5)
    if kind == 0:
        moved = rng.randint(0, table[source])
        table[source] -= moved
        table[to] += moved
    elif kind == 1:
        table[to], table[source] = table[source], table[to]
    elif kind == 2:
        table[:] = [0] * len(table)
        table[to] = _TOTAL
    elif kind == 3:
        table[to] = rng.choice((0, 1, _TOTAL - 1, _TOTAL, _TOTAL + 1, (1 << 15) - 1))
    else:
        rng.shuffle(table)
    return replace(stream, tables=packed_tables(tables)).to_bytes()


def states(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Where the two coder states begin."""
    stream = Stream.parse(data)
    if stream is None:
        return data
    begin = [rng.choice((*_EXTREMES, 1 << 16, rng.getrandbits(32))) for _i in range(2)]
    halves = [half for state in begin for half in (state >> 16, state & 0xFFFF)]
    kept = stream.words[:4] if rng.random() < 0.5 else b""
    words = (kept + struct.pack("<4H", *halves))[:8] + stream.words[8:]
    return replace(stream, words=words).to_bytes()


def words(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Words changed, lost or added, the lengths right."""
    stream = Stream.parse(data)
    if stream is None:
        return data
    at = 2 * rng.randrange(len(stream.words) // 2 + 1)
    fresh = rng.choice((b"", b"\0\0", b"\xff\xff", rng.randbytes(2), rng.randbytes(8), b"\0"))
    after = stream.words[at + rng.choice((0, 2, len(fresh))) :]
    return replace(stream, words=stream.words[:at] + fresh + after).to_bytes()


def raw_bits(rng: random.Random, data: bytes, _: Stock) -> bytes:
    """Raw bits changed, lost or added, the lengths right."""
    stream = Stream.parse(data)
    if stream is None:
        return data
    raw = bytearray(stream.raw)
    kind = rng.randrange(4)
    if kind == 0 and raw:
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    elif kind == 1 and raw:
        raw[-1] ^= 0x80 >> rng.randrange(8)
    elif kind == 2:
        raw += bytes(rng.randint(1, 9))
    else:
        del raw[rng.randrange(len(raw) + 1) :]
    return replace(stream, raw=bytes(raw)).to_bytes()


MUTATORS: tuple[Mutator, ...] = (
    flip_bits,
    overwrite,
    cut,
    insert,
    remove,
    splice,
    noise,
    another_header,
    header_field,
    lengths,
    frequencies,
    states,
    words,
    raw_bits,
)


def mutated(rng: random.Random, stock: Stock) -> bytes:
    """An honest payload, broken in one to three ways."""
    data = rng.choice(stock.own)
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(MUTATORS)(rng, data, stock)
    return data
