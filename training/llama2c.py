"""llama2.c's files (github.com/karpathy/llama2.c): a Llama in the legacy format, and its tokenizer.

    model      7 int32: dim, hidden_dim, layers, heads, kv_heads, vocabulary (negative: the head is not tied), context;
               then fp32: tok_embeddings, attention norms of all layers, wq, wk, wv, wo, feed-forward norms, w1, w2, w3, the last
               norm, cos and sin tables (context, head_dim / 2), and the head, if it is not tied
    tokenizer  int32: longest piece; then for each piece fp32 score, int32 bytes, the bytes

All little-endian. There the pairs that rotary positions turn are neighbours (2i, 2i+1); in Hugging Face's layout, ours, they are
(i, i + E/2), so the rows of wq and wk are sorted anew. Stories are divided by the token `<s>`, which begins each.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import ByteFallback, Fuse, Strip
from tokenizers.decoders import Sequence as Decoders
from tokenizers.models import BPE
from tokenizers.normalizers import Prepend
from tokenizers.processors import TemplateProcessing

from protocol.errors import Rejected
from protocol.model_spec import LlamaSpec
from training.errors import ModelError
from training.parameters import Parameters, shapes

START = "<s>"
_SPECIAL = ("<unk>", START, "</s>")
_BYTE_PIECES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_HEADER = struct.Struct("<7i")
_NEWER = 0x616B3432
"""What files of later versions begin with."""
_ROPE_THETA, _NORM_EPS = 10_000, "0.00001"
_ROPE_ERROR = 1e-3
_MAX_PIECE_BYTES = 1 << 10
_MAX_PIECES = 1 << 20
_MODEL_REMEDY = "give a .bin that llama2.c's export.py wrote with --version 0"
_TOKENIZER_REMEDY = "give a tokenizer .bin of llama2.c that belongs to the model"


def read_llama2c(path: Path) -> tuple[LlamaSpec, Parameters]:
    """The model in a file; raises ModelError. Its size is compared with its header before anything is made."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
        size = path.stat().st_size
    except OSError as error:
        raise ModelError(f"can't read {path} ({error.strerror})", "check the path") from error
    spec = _spec(path, header)
    expected = _HEADER.size + 4 * _numbers(spec)
    if size != expected:
        raise ModelError(f"{path} has {size:,} bytes, its header says {expected:,}", _MODEL_REMEDY)
    params = _tensors(spec, np.fromfile(path, "<f4", offset=_HEADER.size), path)
    if not all(np.isfinite(tensor).all() for tensor in params.values()):
        raise ModelError(f"{path} holds NaN or infinity", _MODEL_REMEDY)
    return spec, params


def read_llama2c_tokenizer(path: Path, vocab_size: int) -> Tokenizer:
    """The tokenizer in a file, which encodes what llama2.c's own does: merges by score, bytes for unknown characters.

    Raises:
        ModelError: no such file, or not of a vocabulary of this size.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"can't read {path} ({error.strerror})", "check the path") from error
    pieces = _pieces(data, vocab_size, path)
    vocabulary = {piece: number for number, (piece, _) in enumerate(pieces)}
    if len(vocabulary) < vocab_size:
        raise ModelError(f"{path} holds a piece twice", _TOKENIZER_REMEDY)
    tokenizer = Tokenizer(
        BPE(
            vocab=vocabulary,
            merges=_merges(pieces),
            unk_token=_SPECIAL[0],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    tokenizer.normalizer = Prepend(" ")
    tokenizer.decoder = Decoders([ByteFallback(), Fuse(), Strip(" ", 1, 0)])
    tokenizer.post_processor = TemplateProcessing(
        single=f"{START} $A",
        pair=f"{START} $A {START} $B",
        special_tokens=[(START, vocabulary[START])],
    )
    tokenizer.add_special_tokens(list(_SPECIAL))
    return tokenizer


def _spec(path: Path, header: bytes) -> LlamaSpec:
    if len(header) < _HEADER.size:
        raise ModelError(f"{path} is too short for a model", _MODEL_REMEDY)
    dim, hidden, layers, heads, kv_heads, vocabulary, context = _HEADER.unpack(header)
    if dim == _NEWER:
        raise ModelError(f"{path} is of a later version of llama2.c's format", _MODEL_REMEDY)
    try:
        return LlamaSpec(
            vocab_size=abs(vocabulary),
            hidden_size=dim,
            intermediate_size=hidden,
            layers=layers,
            heads=heads,
            kv_heads=kv_heads,
            context=context,
            rope_theta=str(_ROPE_THETA),
            norm_eps=_NORM_EPS,
            tie_embeddings=vocabulary > 0,
            init_seed=0,
        )
    except (Rejected, ZeroDivisionError) as error:
        raise ModelError(f"{path} is no model of llama2.c ({error})", _MODEL_REMEDY) from error


def _numbers(spec: LlamaSpec) -> int:
    """How many the file holds after its header."""
    dim, head_dim = spec.hidden_size, spec.hidden_size // spec.heads
    layer = 2 * dim * (1 + dim + spec.kv_heads * head_dim) + 3 * dim * spec.intermediate_size
    vocabularies = 1 if spec.tie_embeddings else 2
    return (
        dim * (vocabularies * spec.vocab_size + 1) + spec.layers * layer + spec.context * head_dim
    )


def _tensors(spec: LlamaSpec, numbers: NDArray[np.float32], path: Path) -> Parameters:
    """Cuts the file's numbers and names them as Hugging Face does."""
    layers, dim, hidden = spec.layers, spec.hidden_size, spec.intermediate_size
    head_dim = dim // spec.heads
    kv_dim = spec.kv_heads * head_dim
    place = 0

    def take(*shape: int) -> NDArray[np.float32]:
        nonlocal place
        first, place = place, place + int(np.prod(shape))
        return numbers[first:place].reshape(shape)

    params = {"model.embed_tokens.weight": take(spec.vocab_size, dim)}
    stacked = {
        "input_layernorm": take(layers, dim),
        "self_attn.q_proj": _sort_pairs(take(layers, dim, dim), spec.heads),
        "self_attn.k_proj": _sort_pairs(take(layers, kv_dim, dim), spec.kv_heads),
        "self_attn.v_proj": take(layers, kv_dim, dim),
        "self_attn.o_proj": take(layers, dim, dim),
        "post_attention_layernorm": take(layers, dim),
        "mlp.gate_proj": take(layers, hidden, dim),
        "mlp.down_proj": take(layers, dim, hidden),
        "mlp.up_proj": take(layers, hidden, dim),
    }
    for layer in range(layers):
        for name, tensors in stacked.items():
            params[f"model.layers.{layer}.{name}.weight"] = tensors[layer]
    params["model.norm.weight"] = take(dim)
    _check_rotation(take(spec.context, head_dim // 2), head_dim, path)
    take(spec.context, head_dim // 2)
    if not spec.tie_embeddings:
        params["lm_head.weight"] = take(spec.vocab_size, dim)
    return {name: np.ascontiguousarray(params[name], np.float32) for name in shapes(spec)}


def _sort_pairs(weights: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Of (layers, heads * E, D) the rows of each head: the even ones first, then the odd ones."""
    layers, rows, dim = weights.shape
    pairs = weights.reshape(layers, heads, rows // heads // 2, 2, dim)
    return pairs.swapaxes(2, 3).reshape(layers, rows, dim)


def _check_rotation(cos: NDArray[np.float32], head_dim: int, path: Path) -> None:
    """The file's own table tells which angles the model was trained with."""
    frequencies = _ROPE_THETA ** (-np.arange(0, head_dim, 2) / head_dim)
    expected = np.cos(np.outer(np.arange(len(cos)), frequencies))
    if not np.abs(cos - expected).max() <= _ROPE_ERROR:
        raise ModelError(f"{path} has rotary angles of another base than 10,000", _MODEL_REMEDY)


def _pieces(data: bytes, vocab_size: int, path: Path) -> list[tuple[str, float]]:
    """Every piece with its score."""
    problem = ModelError(
        f"{path} is no tokenizer of {vocab_size} pieces",
        _TOKENIZER_REMEDY,
    )
    if not len(_SPECIAL) + len(_BYTE_PIECES) <= vocab_size <= _MAX_PIECES:
        raise problem
    found: list[tuple[str, float]] = []
    place = 4
    try:
        while len(found) < vocab_size:
            score, length = struct.unpack_from("<fi", data, place)
            place += 8
            if not 0 < length <= _MAX_PIECE_BYTES or place + length > len(data):
                raise problem
            found.append((data[place : place + length].decode(), score))
            place += length
    except (struct.error, UnicodeDecodeError) as error:
        raise problem from error
    expected = [*_SPECIAL, *_BYTE_PIECES]
    # The file writes the two that divide texts as they are printed, a line of their own.
    first = [(piece.strip("\n"), score) for piece, score in found[: len(_SPECIAL)]]
    pieces = first + found[len(_SPECIAL) :]
    if place != len(data) or [piece for piece, _ in pieces[: len(expected)]] != expected:
        raise problem
    return pieces


def _merges(pieces: list[tuple[str, float]]) -> list[tuple[str, str]]:
    """Every way to make a piece of two others, the highest score first: the order in which they are merged."""
    ordinary = pieces[len(_SPECIAL) + len(_BYTE_PIECES) :]
    known = {piece for piece, _ in ordinary}
    found = [
        (-score, piece[:cut], piece[cut:])
        for piece, score in ordinary
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
    return [(left, right) for _, left, right in sorted(found, key=lambda merge: merge[0])]
