"""llama2.c's encoder and forward pass, line by line as `run.c` has them, and a writer of its legacy format."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
SPECIAL = (b"<unk>", b"\n<s>\n", b"\n</s>\n")
BYTES = tuple(f"<0x{byte:02X}>".encode() for byte in range(256))


def write_tokenizer(path: Path, pieces: Sequence[tuple[bytes, float]]) -> None:
    """The special pieces, all bytes, then these."""
    everything = [*((piece, 0.0) for piece in (*SPECIAL, *BYTES)), *pieces]
    body = b"".join(struct.pack("<fi", score, len(piece)) + piece for piece, score in everything)
    longest = max(len(piece) for piece, _ in everything)
    path.write_bytes(struct.pack("<i", longest) + body)


def read_pieces(path: Path) -> list[tuple[bytes, float]]:
    """All pieces with their scores."""
    data, place, found = path.read_bytes(), 4, []
    while place < len(data):
        score, length = struct.unpack_from("<fi", data, place)
        found.append((data[place + 8 : place + 8 + length], score))
        place += 8 + length
    return found


def encode(text: str, pieces: Sequence[tuple[bytes, float]]) -> list[int]:
    """`encode` of run.c without the token that begins a text: characters, then the best merge again and again."""
    index = {piece: number for number, (piece, _) in enumerate(pieces)}
    tokens = [index[b" "]] if text else []
    for character in text:
        raw = character.encode()
        tokens += [index[raw]] if raw in index else [byte + 3 for byte in raw]
    while True:
        best = None
        for place in range(len(tokens) - 1):
            joined = index.get(pieces[tokens[place]][0] + pieces[tokens[place + 1]][0])
            if joined is not None and (best is None or pieces[joined][1] > best[0]):
                best = (pieces[joined][1], place, joined)
        if best is None:
            return tokens
        _, place, joined = best
        tokens[place : place + 2] = [joined]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    dim: int = 16
    hidden: int = 24
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    vocabulary: int = 300
    context: int = 16
    tied: bool = True

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


def random_weights(shape: Shape, seed: int = 0) -> dict[str, Array]:
    """In the order of the file."""
    rng = np.random.default_rng(seed)
    dim, layers, hidden = shape.dim, shape.layers, shape.hidden
    kv_dim = shape.kv_heads * shape.head_dim
    sizes = {
        "tok_embeddings": (shape.vocabulary, dim),
        "rms_att": (layers, dim),
        "wq": (layers, dim, dim),
        "wk": (layers, kv_dim, dim),
        "wv": (layers, kv_dim, dim),
        "wo": (layers, dim, dim),
        "rms_ffn": (layers, dim),
        "w1": (layers, hidden, dim),
        "w2": (layers, dim, hidden),
        "w3": (layers, hidden, dim),
        "rms_final": (dim,),
    }
    weights = {
        name: (rng.standard_normal(size) * 0.3).astype(np.float32) for name, size in sizes.items()
    }
    angles = np.outer(
        np.arange(shape.context),
        10_000.0 ** (-np.arange(0, shape.head_dim, 2) / shape.head_dim),
    )
    weights["cos"], weights["sin"] = (
        np.cos(angles).astype(np.float32),
        np.sin(angles).astype(np.float32),
    )
    if not shape.tied:
        weights["wcls"] = rng.standard_normal((shape.vocabulary, dim)).astype(np.float32)
    return weights


def write_model(path: Path, shape: Shape, weights: Mapping[str, Array]) -> None:
    """The legacy format."""
    sign = 1 if shape.tied else -1
    header = struct.pack(
        "<7i", shape.dim, shape.hidden, shape.layers, shape.heads, shape.kv_heads,
        sign * shape.vocabulary, shape.context,
    )  # fmt: skip
    path.write_bytes(header + b"".join(each.tobytes() for each in weights.values()))


def forward(tokens: Sequence[int], shape: Shape, weights: Mapping[str, Array]) -> Array:
    """(T, V) logits, token by token with a cache of keys and values, pairs of neighbours rotated."""
    keys: list[list[Array]] = [[] for _ in range(shape.layers)]
    values: list[list[Array]] = [[] for _ in range(shape.layers)]
    found = []
    for position, token in enumerate(tokens):
        x = weights["tok_embeddings"][token].copy()
        for layer in range(shape.layers):
            normed = _norm(x, weights["rms_att"][layer])
            q = _rotate(weights["wq"][layer] @ normed, position, shape.heads, weights)
            keys[layer].append(
                _rotate(weights["wk"][layer] @ normed, position, shape.kv_heads, weights)
            )
            values[layer].append(weights["wv"][layer] @ normed)
            x = x + weights["wo"][layer] @ _attend(q, keys[layer], values[layer], shape)
            normed = _norm(x, weights["rms_ffn"][layer])
            gate, up = weights["w1"][layer] @ normed, weights["w3"][layer] @ normed
            x = x + weights["w2"][layer] @ (gate / (1 + np.exp(-gate)) * up)
        head = weights.get("wcls", weights["tok_embeddings"])
        found.append(head @ _norm(x, weights["rms_final"]))
    return np.stack(found)


def _norm(x: Array, gain: Array) -> Array:
    return gain * x / np.sqrt(np.mean(x * x) + np.float32(1e-5))


def _rotate(vector: Array, position: int, heads: int, weights: Mapping[str, Array]) -> Array:
    cos, sin = weights["cos"][position], weights["sin"][position]
    pairs = vector.reshape(heads, -1, 2)
    even, odd = pairs[..., 0], pairs[..., 1]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(-1)


def _attend(q: Array, keys: list[Array], values: list[Array], shape: Shape) -> Array:
    size, out = shape.head_dim, []
    for head in range(shape.heads):
        at = slice(*(size * (head // (shape.heads // shape.kv_heads) + end) for end in (0, 1)))
        scores = np.array([q[head * size : (head + 1) * size] @ key[at] for key in keys])
        weights = np.exp(scores / np.sqrt(size) - (scores / np.sqrt(size)).max())
        out.append(
            sum(w * value[at] for w, value in zip(weights / weights.sum(), values, strict=True))
        )
    return np.concatenate(out)
