"""Chunks of payloads shared with the Solidity tests: `python -m tests.training.vectors` writes them anew.

Each case says whether an encoder can have written the chunk. Keys are camelCase as in Solidity; bytes are 0x-prefixed hex.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from protocol.merkle import MerkleTree, leaf_hash
from tests.training.samples import SMALL, random_payload

PATH = Path(__file__).parents[1] / "vectors" / "chunks.json"
CHUNK = SMALL.chunk
# All ways in which the two fields are padded, for every width of a code.
SHAPES = ((2, 1), (2, 3), (2, 4), (2, 6), (1, 3), (1, 8), (4, 3), (8, 5))
MIN_SCALE_BITS, MAX_SCALE_BITS, STEP = 0x2B800000, 0x53800000, 1 << 17


def leaf_of(
    indices: Sequence[int],
    codes: Sequence[int],
    scale_bits: int,
    *,
    bits: int = 2,
    ratio: int = 0,
    index_padding: int = 0,
    code_padding: int = 0,
) -> bytes:
    """A chunk from its parts; the paddings go into the bits above the last value of each field."""
    k = len(indices)
    index_field = sum(value << 12 * place for place, value in enumerate(indices))
    code_field = sum(value << bits * place for place, value in enumerate(codes))
    index_field |= index_padding << 12 * k
    code_field |= code_padding << bits * k
    return (
        index_field.to_bytes((12 * k + 7) // 8, "little")
        + code_field.to_bytes((bits * k + 7) // 8, "little")
        + struct.pack("<IB", scale_bits, ratio)
    )


def cases_of(bits: int, k: int) -> list[tuple[str, bytes, bool]]:
    """(name, chunk, canonical) for chunks that keep k values."""
    leaf = partial(leaf_of, bits=bits)
    one, levelled = 0x3F800000, 0 if bits == 1 else 12
    up = [5 * i + 3 for i in range(k)]
    codes = [(i + 1) % (1 << bits) for i in range(k)]
    zeros, empty = [0] * k, list(range(k))
    last = [CHUNK - k + i for i in range(k)]
    cases = [
        ("plain", leaf(up, codes, one), True),
        ("ratio", leaf(up, codes, one, ratio=levelled), True),
        ("first indices", leaf(empty, codes, one), True),
        ("last indices", leaf(last, codes, one), True),
        ("index beyond the chunk", leaf([*last[:-1], CHUNK], codes, one), False),
        ("least scale", leaf(up, codes, MIN_SCALE_BITS), True),
        ("largest scale", leaf(up, codes, MAX_SCALE_BITS), True),
        ("zeros", leaf(empty, zeros, 0), True),
        ("scale below the least", leaf(up, codes, MIN_SCALE_BITS - STEP), False),
        ("scale above the largest", leaf(up, codes, MAX_SCALE_BITS + STEP), False),
        ("scale of seven bits", leaf(up, codes, one + STEP // 2), False),
        ("scale of all bits", leaf(up, codes, one + 1), False),
        ("subnormal scale", leaf(up, codes, 1), False),
        ("infinite scale", leaf(up, codes, 0x7F800000), False),
        ("scale minus infinity", leaf(up, codes, 0xFF800000), False),
        ("quiet NaN", leaf(up, codes, 0x7FC00000), False),
        ("signalling NaN", leaf(up, codes, 0xFF800001), False),
        ("negative scale", leaf(up, codes, 0xBF800000), False),
        ("scale -0", leaf(empty, zeros, 0x80000000), False),
        ("ratio of sixteen", leaf(up, codes, one, ratio=16), False),
        ("zeros with a ratio", leaf(empty, zeros, 0, ratio=1), False),
        ("zeros with a code", leaf(empty, [*zeros[1:], 1], 0), False),
        ("zeros with other indices", leaf([i + 1 for i in empty], zeros, 0), False),
    ]
    if bits == 1:
        cases.append(("ratio without levels", leaf(up, codes, one, ratio=1), False))
    if k > 1:
        cases += [
            ("duplicate index", leaf([up[0], *up[:-1]], codes, one), False),
            ("duplicate last index", leaf([*up[:-1], up[-2]], codes, one), False),
            ("unsorted", leaf(up[::-1], codes, one), False),
        ]
    for bit in range(-12 * k % 8):
        padded = leaf(up, codes, one, index_padding=1 << bit)
        cases.append((f"index padding {bit}", padded, False))
    for bit in range(-bits * k % 8):
        cases.append((f"code padding {bit}", leaf(up, codes, one, code_padding=1 << bit), False))
        padded = leaf(empty, zeros, 0, code_padding=1 << bit)
        cases.append((f"zeros, code padding {bit}", padded, False))
    return cases


def _tree() -> object:
    """A payload whose chunk 1 is bad, and the proof that it stands under the root."""
    bad = next(leaf for name, leaf, _ in cases_of(2, 3) if name == "duplicate index")
    payload = random_payload(1)
    leaves = payload.leaves()
    leaves[1] = bad
    tree = MerkleTree([leaf_hash(leaf) for leaf in leaves])
    return {
        "payloadRoot": _hexed(tree.root),
        "badChunk": 1,
        "badLeaf": _hexed(bad),
        "badProof": [_hexed(sibling) for sibling in tree.proof(1)],
        "goodChunk": 2,
        "goodLeaf": _hexed(leaves[2]),
        "goodProof": [_hexed(sibling) for sibling in tree.proof(2)],
    }


def _hexed(data: bytes) -> str:
    return "0x" + data.hex()


def render() -> str:
    """The file's text as it must be committed."""
    cases = [
        (f"{bits} bits, k = {k}: {name}", _hexed(leaf), bits, k, canonical)
        for bits, k in SHAPES
        for name, leaf, canonical in cases_of(bits, k)
    ]
    # In columns: a Solidity test reads each with one call.
    names = ("name", "leaf", "bits", "kept", "canonical")
    columns = dict(zip(names, zip(*cases, strict=True), strict=True))
    document = {"cases": columns, "size": CHUNK, "tree": _tree()}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(render())
