"""Whether an encoder can have written the bytes of one chunk: what the contract that judges bad encodings computes.

It knows neither model nor codec: the length tells how many values are kept, and an index beyond the end of a short chunk passes.
"""

from __future__ import annotations

from itertools import pairwise

from training.layout import CODE_BITS, INDEX_BITS, SCALE_BYTES

MIN_SCALE_WORD = 0x2B80_0000
MAX_SCALE_WORD = 0x5380_0000
"""2^-40 and 2^40 as binary32: as unsigned words, positive numbers are ordered as they are and all else lies above."""


def is_canonical_chunk(chunk: bytes) -> bool:
    """k ascending 12-bit indices, k 2-bit codes, padding of zeros, a scale in range; or the one form of a chunk of zeros."""
    kept = kept_of(len(chunk))
    if kept == 0:
        return False
    index_bytes = _bytes_of(kept * INDEX_BITS)
    index_field = int.from_bytes(chunk[:index_bytes], "little")
    code_field = int.from_bytes(chunk[index_bytes:-SCALE_BYTES], "little")
    if index_field >> kept * INDEX_BITS or code_field >> kept * CODE_BITS:
        return False
    indices = [index_field >> INDEX_BITS * i & (1 << INDEX_BITS) - 1 for i in range(kept)]
    scale = int.from_bytes(chunk[-SCALE_BYTES:], "little")
    if scale == 0:
        return code_field == 0 and indices == list(range(kept))
    in_range = MIN_SCALE_WORD <= scale <= MAX_SCALE_WORD
    return in_range and all(low < high for low, high in pairwise(indices))


def kept_of(length: int) -> int:
    """How many values a chunk of so many bytes keeps; 0 if no chunk is so long."""
    fields = length - SCALE_BYTES
    kept = max(0, fields * 8 // (INDEX_BITS + CODE_BITS))
    fits = _bytes_of(kept * INDEX_BITS) + _bytes_of(kept * CODE_BITS) == fields
    return kept if fits else 0


def _bytes_of(bits: int) -> int:
    return (bits + 7) // 8
