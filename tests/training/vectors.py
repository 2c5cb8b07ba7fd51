"""Chunks of payloads shared with the Solidity tests: `python -m tests.training.vectors` writes them anew.

Each case says whether an encoder can have written the chunk. The contract doesn't know a chunk's size, so no case is wrong for
an index beyond it. Keys are camelCase as in Solidity; bytes are 0x-prefixed hex.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from protocol.merkle import MerkleTree, leaf_hash
from protocol.spec import CodecSpec
from tests.training.samples import SMALL, random_payload

PATH = Path(__file__).parents[1] / "vectors" / "chunks.json"
CHUNK = SMALL.chunk
KS = (1, 3, 4, 6)  # all ways in which the two fields are padded
MIN_SCALE_BITS, MAX_SCALE_BITS = 0x2B800000, 0x53800000


def codec_of(k: int) -> CodecSpec:
    """A codec whose first chunk keeps k values."""
    return replace(SMALL, k=k)


def leaf_of(
    indices: Sequence[int],
    codes: Sequence[int],
    scale_bits: int,
    *,
    index_padding: int = 0,
    code_padding: int = 0,
) -> bytes:
    """A chunk from its parts; the paddings go into the bits above the last value of each field."""
    k = len(indices)
    index_field = sum(value << 12 * place for place, value in enumerate(indices))
    code_field = sum(value << 2 * place for place, value in enumerate(codes))
    index_field |= index_padding << 12 * k
    code_field |= code_padding << 2 * k
    return (
        index_field.to_bytes((12 * k + 7) // 8, "little")
        + code_field.to_bytes((2 * k + 7) // 8, "little")
        + struct.pack("<I", scale_bits)
    )


def cases_of(k: int) -> list[tuple[str, bytes, bool]]:
    """(name, chunk, canonical) for chunks that keep k values."""
    one = 0x3F800000
    up = [5 * i + 3 for i in range(k)]
    codes = [(i + 1) % 4 for i in range(k)]
    zeros, empty = [0] * k, list(range(k))
    cases = [
        ("plain", leaf_of(up, codes, one), True),
        ("first indices", leaf_of(empty, codes, one), True),
        ("last indices", leaf_of([CHUNK - k + i for i in range(k)], codes, one), True),
        ("least scale", leaf_of(up, codes, MIN_SCALE_BITS), True),
        ("largest scale", leaf_of(up, codes, MAX_SCALE_BITS), True),
        ("zeros", leaf_of(empty, zeros, 0), True),
        ("scale below the least", leaf_of(up, codes, MIN_SCALE_BITS - 1), False),
        ("scale above the largest", leaf_of(up, codes, MAX_SCALE_BITS + 1), False),
        ("subnormal scale", leaf_of(up, codes, 1), False),
        ("infinite scale", leaf_of(up, codes, 0x7F800000), False),
        ("scale minus infinity", leaf_of(up, codes, 0xFF800000), False),
        ("quiet NaN", leaf_of(up, codes, 0x7FC00000), False),
        ("signalling NaN", leaf_of(up, codes, 0xFF800001), False),
        ("negative scale", leaf_of(up, codes, 0xBF800000), False),
        ("scale -0", leaf_of(empty, zeros, 0x80000000), False),
        ("zeros with a code", leaf_of(empty, [*zeros[1:], 1], 0), False),
        ("zeros with other indices", leaf_of([i + 1 for i in empty], zeros, 0), False),
    ]
    if k > 1:
        cases += [
            ("duplicate index", leaf_of([up[0], *up[:-1]], codes, one), False),
            ("duplicate last index", leaf_of([*up[:-1], up[-2]], codes, one), False),
            ("unsorted", leaf_of(up[::-1], codes, one), False),
        ]
    for bit in range(-12 * k % 8):
        cases.append(
            (f"index padding {bit}", leaf_of(up, codes, one, index_padding=1 << bit), False)
        )
    for bit in range(-2 * k % 8):
        cases.append((f"code padding {bit}", leaf_of(up, codes, one, code_padding=1 << bit), False))
        cases.append(
            (f"zeros, code padding {bit}", leaf_of(empty, zeros, 0, code_padding=1 << bit), False)
        )
    return cases


def with_first_chunk(leaf: bytes, k: int) -> bytes:
    """A payload that is canonical but for its first chunk, which is this."""
    return leaf + random_payload(1, codec=codec_of(k)).to_bytes()[len(leaf) :]


def _tree() -> object:
    """A payload whose chunk 1 is bad, and the proof that it stands under the root."""
    bad = next(leaf for name, leaf, _ in cases_of(3) if name == "duplicate index")
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
        {"name": f"k = {k}: {name}", "leaf": _hexed(leaf), "kept": k, "canonical": canonical}
        for k in KS
        for name, leaf, canonical in cases_of(k)
    ]
    return json.dumps({"cases": cases, "tree": _tree()}, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(render())
