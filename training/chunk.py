"""Whether an encoder can have written the bytes of one chunk: what the contract that judges bad encodings computes.

It knows no model: the length tells how many values are kept, and an index beyond the end of a chunk at a tensor's edge passes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from training.layout import INDEX_BITS, MAX_SCALE, MIN_SCALE, RATIOS, SCALE_SHIFT, TAIL_BYTES

# As unsigned words, positive numbers are ordered as they are and all else lies above.
_LEAST, _MOST = (int(scale.view(np.uint32)) for scale in (MIN_SCALE, MAX_SCALE))
_UNUSED_MANTISSA = (1 << SCALE_SHIFT) - 1


def is_canonical_chunk(chunk: bytes, *, size: int, bits: int) -> bool:
    """k ascending indices, k codes, padding of zeros, a scale and a ratio in range; or the one form of a chunk of zeros.

    Args:
        chunk: its bytes in canonical form.
        size: values in a full chunk.
        bits: of a value's code.
    """
    kept = kept_of(len(chunk), bits)
    if kept == 0:
        return False
    index_bytes = _bytes_of(kept * INDEX_BITS)
    index_field = int.from_bytes(chunk[:index_bytes], "little")
    code_field = int.from_bytes(chunk[index_bytes:-TAIL_BYTES], "little")
    if index_field >> kept * INDEX_BITS or code_field >> kept * bits:
        return False
    indices = [index_field >> INDEX_BITS * i & (1 << INDEX_BITS) - 1 for i in range(kept)]
    scale, ratio = int.from_bytes(chunk[-TAIL_BYTES:-1], "little"), chunk[-1]
    if scale == 0:
        return ratio == 0 and code_field == 0 and indices == list(range(kept))
    if not _LEAST <= scale <= _MOST or scale & _UNUSED_MANTISSA:
        return False
    if ratio >= RATIOS or (bits == 1 and ratio):
        return False
    return indices[-1] < size and all(low < high for low, high in pairwise(indices))


def kept_of(length: int, bits: int) -> int:
    """How many values a chunk of so many bytes keeps; 0 if no chunk is so long."""
    fields = length - TAIL_BYTES
    most = max(0, fields * 8 // (INDEX_BITS + bits))
    for kept in (most, most - 1):
        if kept > 0 and _bytes_of(kept * INDEX_BITS) + _bytes_of(kept * bits) == fields:
            return kept
    return 0


def _bytes_of(bits: int) -> int:
    return (bits + 7) // 8
