"""The codec's kernels once more, slow and obvious: what training/kernels/codec.c is held against.

Selection and quantisation in plain Python floats (fp64, as the kernel's), the canonical form bit by bit, and a reader of the
transport bytes that knows rANS only by its definition.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.training.transform_reference import slow_transform
from training.codec import LEVEL_UNIT, MAX_SCALE, MIN_SCALE, RATIOS
from training.layout import HEADER_BYTES, ChunkLayout

INDEX_BITS = 12
TOTAL_BITS = 12
EXACT, TOP_BITS = 7, 3
NUMBERS = EXACT + 10 * 8
EMPTY, NEW_RATIO = NUMBERS, NUMBERS + 1
SCALE_BASE, SCALE_CODES, SCALE_SHIFT = (127 - 40) << 6, (80 << 6) + 1, 17


def chunk_values(flat: NDArray[np.float32], layout: ChunkLayout, chunk: int) -> NDArray[np.float32]:
    """The values of one chunk, row by row."""
    start, stride, rows, cols = (
        int(layout.table[chunk][f]) for f in ("start", "stride", "rows", "cols")
    )
    return np.concatenate(
        [flat[start + r * stride : start + r * stride + cols] for r in range(rows)]
    )


def slow_top(row: Sequence[float], k: int) -> list[int]:
    """The definition: largest magnitudes first, the lowest index among equals; reported ascending."""
    return sorted(sorted(range(len(row)), key=lambda i: (-abs(row[i]), i))[:k])


def level_of(ratio: int, level: int, levels: int) -> float:
    """A level between ratio / 16 and 1, rounded to 1/1024."""
    if levels == 1:
        return 1.0
    low = ratio * LEVEL_UNIT // RATIOS
    steps = levels - 1
    return (low + ((LEVEL_UNIT - low) * level + steps // 2) // steps) / LEVEL_UNIT


def nearest_scale(exact: float) -> float:
    """Six bits of mantissa, ties to even, 0 below the least, never above the most."""
    if exact >= float(MAX_SCALE):
        return float(MAX_SCALE)
    bits = struct.unpack("<I", struct.pack("<f", exact))[0]
    low, step = bits & (1 << SCALE_SHIFT) - 1, 1 << SCALE_SHIFT
    bits -= low
    half = step // 2
    if low > half or (low == half and bits >> SCALE_SHIFT & 1):
        bits += step
    value = float(struct.unpack("<f", struct.pack("<I", bits))[0])
    return 0.0 if value < float(MIN_SCALE) else value


def best_split(magnitudes: Sequence[float], low: float) -> tuple[float, int]:
    """Two levels: what the best scale takes off the squared error, and how many get the upper one."""
    ordered = sorted(magnitudes, reverse=True)
    sums = [0.0]
    for value in ordered:
        sums.append(sums[-1] + value)
    best, split, k = -1.0, 0, len(ordered)
    for j in range(k + 1):
        dot = low * sums[k] + (1.0 - low) * sums[j]
        square = low * low * k + (1.0 - low * low) * j
        gain = dot * dot / square if square > 0.0 else 0.0
        if gain > best:
            best, split = gain, j
    return best, split


def split_scale(magnitudes: Sequence[float], low: float, split: int) -> float:
    """The best scale of such a split."""
    ordered = sorted(magnitudes, reverse=True)
    total = above = 0.0
    for place, value in enumerate(ordered):
        total += value
        if place < split:
            above = total
    dot = low * total + (1.0 - low) * above
    square = low * low * len(ordered) + (1.0 - low * low) * split
    return dot / square if square > 0.0 else 0.0


def nearest_level(magnitude: float, table: Sequence[float], scale: float) -> int:
    """The level nearest to magnitude / scale; the lower of two as near."""
    level = 0
    while level + 1 < len(table) and 2.0 * magnitude > scale * (table[level] + table[level + 1]):
        level += 1
    return level


def fit_scale(magnitudes: Sequence[float], table: Sequence[float]) -> tuple[float, float]:
    """(scale, gain) after four rounds of nearest levels and least-squares scale."""
    ordered = sorted(magnitudes, reverse=True)
    scale, gain = ordered[0], 0.0
    for _ in range(4):
        dot = square = 0.0
        for value in ordered:
            level = table[nearest_level(value, table, scale)]
            dot += value * level
            square += level * level
        if square <= 0.0:
            return 0.0, gain
        scale, gain = dot / square, dot * dot / square
    return scale, gain


@dataclass
class SlowUpdate:
    """What the kernel should give."""

    indices: list[int]
    codes: list[int]
    scales: list[float]
    ratios: list[int]


def slow_encode(flat: NDArray[np.float32], layout: ChunkLayout) -> SlowUpdate:
    """The whole of `codec.encode_flat`."""
    if layout.transform == "dct":
        flat = slow_transform(flat, layout, inverse=False)
    made = SlowUpdate([], [], [], [])
    for first, last in layout.tensor_chunks.values():
        kept = []
        for chunk in range(first, last):
            row = chunk_values(flat, layout, chunk).tolist()
            places = slow_top(row, int(layout.table["k"][chunk]))
            kept.append((places, [row[place] for place in places]))
        ratio = _best_ratio([[abs(value) for value in values] for _, values in kept], layout.levels)
        for places, values in kept:
            _quantise(made, places, values, ratio, layout.levels)
    return made


def _best_ratio(chunks: list[list[float]], levels: int) -> int:
    if levels == 1:
        return 0
    gains = []
    for ratio in range(RATIOS):
        table = [level_of(ratio, level, levels) for level in range(levels)]
        total = 0.0
        for magnitudes in chunks:
            total += (
                best_split(magnitudes, table[0])[0]
                if levels == 2
                else fit_scale(magnitudes, table)[1]
            )
        gains.append(total)
    return gains.index(max(gains))


def _quantise(
    made: SlowUpdate, places: list[int], values: list[float], ratio: int, levels: int
) -> None:
    magnitudes = [abs(value) for value in values]
    table = [level_of(ratio, level, levels) for level in range(levels)]
    if levels == 1:
        total = 0.0
        for value in sorted(magnitudes, reverse=True):
            total += value
        exact = total / len(values)
        chosen = [0] * len(values)
    elif levels == 2:
        _, split = best_split(magnitudes, table[0])
        exact = split_scale(magnitudes, table[0], split)
        upper = set(sorted(range(len(values)), key=lambda i: (-magnitudes[i], i))[:split])
        chosen = [int(i in upper) for i in range(len(values))]
    else:
        exact, _ = fit_scale(magnitudes, table)
        scale = nearest_scale(exact)
        chosen = [nearest_level(value, table, scale) for value in magnitudes]
    scale = nearest_scale(exact)
    if scale == 0.0:
        places, chosen, values, ratio = (
            list(range(len(values))),
            [0] * len(values),
            [0.0] * len(values),
            0,
        )
    made.indices += places
    made.codes += [
        level << 1 | (scale != 0.0 and bool(np.signbit(value)))
        for level, value in zip(chosen, values, strict=True)
    ]
    made.scales.append(scale)
    made.ratios.append(ratio)


def slow_leaf(
    indices: Sequence[int], codes: Sequence[int], scale: float, ratio: int, bits: int
) -> bytes:
    """One leaf of the canonical form."""

    def packed(numbers: Sequence[int], width: int) -> bytes:
        whole = sum(number << width * place for place, number in enumerate(numbers))
        return whole.to_bytes(-(-len(numbers) * width // 8), "little")

    return packed(indices, INDEX_BITS) + packed(codes, bits) + struct.pack("<fB", scale, ratio)


class SlowReader:
    """Reads the transport bytes of an honest sender."""

    def __init__(self, data: bytes, layout: ChunkLayout) -> None:
        self._layout = layout
        body = data[HEADER_BYTES:]
        head, words, raw = struct.unpack("<III", body[:12])
        tables = _Bits(body[12 : 12 + head])
        sizes = (NUMBERS, layout.levels, NUMBERS + 2)
        self._tables = [tables.table(size) for size in sizes]
        stream = body[12 + head : 12 + head + words]
        self._words = list(struct.unpack(f"<{words // 2}H", stream))
        self._raw = _Bits(body[12 + head + words :])
        assert len(body) == 12 + head + words + raw
        self._states = [self._words.pop(0) << 16 | self._words.pop(0) for _ in range(2)]

    def read(self) -> SlowUpdate:
        """The update."""
        made = SlowUpdate([], [], [], [])
        last, ratio, bits = SCALE_CODES // 2, 0, self._layout.bits
        for k in self._layout.table["k"].tolist():
            symbol = self._symbol(2)
            if symbol == EMPTY:
                made.indices += range(k)
                made.codes += [0] * k
                made.scales.append(0.0)
                made.ratios.append(0)
                continue
            if symbol == NEW_RATIO:
                ratio = self._raw.take(4)
                symbol = self._symbol(2)
            number = self._number(symbol)
            last = (last + (-((number + 1) // 2) if number & 1 else number // 2)) % SCALE_CODES
            word = (last + SCALE_BASE) << SCALE_SHIFT
            made.scales.append(float(struct.unpack("<f", struct.pack("<I", word))[0]))
            made.ratios.append(ratio)
            place = -1
            for _ in range(k):
                place += 1 + self._number(self._symbol(0))
                sign = self._raw.take(1)
                made.indices.append(place)
                made.codes.append((self._symbol(1) << 1 if bits > 1 else 0) | sign)
        assert self._states == [1 << 16] * 2
        assert not self._words
        return made

    def _symbol(self, alphabet: int) -> int:
        which = int(alphabet != 0)
        state, table = self._states[which], self._tables[alphabet]
        slot = state % (1 << TOTAL_BITS)
        symbol = start = 0
        while slot >= start + table[symbol]:
            start += table[symbol]
            symbol += 1
        frequency = table[symbol]
        state = frequency * (state >> TOTAL_BITS) + slot - start
        if state < 1 << 16:
            state = state << 16 | self._words.pop(0)
        self._states[which] = state
        return symbol

    def _number(self, symbol: int) -> int:
        if symbol < EXACT:
            return symbol
        low_bits, top = divmod(symbol - EXACT, 1 << TOP_BITS)
        return ((top + (1 << TOP_BITS)) << low_bits | self._raw.take(low_bits)) - 1


class _Bits:
    """A stream of bits, low bit first."""

    def __init__(self, data: bytes) -> None:
        self._left = int.from_bytes(data, "little")

    def take(self, bits: int) -> int:
        value = self._left % (1 << bits)
        self._left >>= bits
        return value

    def table(self, symbols: int) -> list[int]:
        found: list[int] = []
        while len(found) < symbols:
            length = self.take(4)
            if length == 0:
                found += [0] * (1 + self.take(4))
            else:
                found.append(1 << length - 1 | self.take(length - 1))
        return found


def slow_is_canonical(leaf: bytes, size: int, bits: int) -> bool:
    """Whether an encoder can have written this chunk of at most `size` values."""
    tail = 5
    for k in range(1, size + 2):
        index_bytes, code_bytes = -(-k * INDEX_BITS // 8), -(-k * bits // 8)
        if index_bytes + code_bytes + tail == len(leaf):
            break
    else:
        return False
    index_field = int.from_bytes(leaf[:index_bytes], "little")
    code_field = int.from_bytes(leaf[index_bytes : index_bytes + code_bytes], "little")
    if index_field >> k * INDEX_BITS or code_field >> k * bits:
        return False
    indices = [index_field >> INDEX_BITS * i & (1 << INDEX_BITS) - 1 for i in range(k)]
    word, ratio = struct.unpack("<IB", leaf[-tail:])
    if word == 0:
        return ratio == 0 and code_field == 0 and indices == list(range(k))
    scale = struct.unpack("<f", leaf[-tail:-1])[0]
    if not float(MIN_SCALE) <= scale <= float(MAX_SCALE) or nearest_scale(scale) != scale:
        return False
    if ratio >= RATIOS or (bits == 1 and ratio):
        return False
    ascending = all(first < second for first, second in itertools.pairwise(indices))
    return ascending and indices[-1] < size
