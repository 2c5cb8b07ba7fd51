"""The model's parameters as plain fp32 arrays: names, shapes, the first values of a Llama and the checkpoint format.

Names are Hugging Face's (`model.layers.0.self_attn.q_proj.weight`), so a checkpoint loads into `LlamaForCausalLM` as it is.
The initial values are part of the run: every machine must compute the same bits, so they come from an integer counter
generator and one IEEE multiplication each; no library function with its own rounding takes part.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from protocol.model_spec import LlamaSpec, ModelSpec
from training import foreign
from training.errors import BlobError

Parameters: TypeAlias = "dict[str, NDArray[np.float32]]"
Shape: TypeAlias = tuple[int, ...]

# Uniform on (-BOUND, BOUND) has the deviation 0.02 that Llama starts from: BOUND = 0.02 * sqrt(3).
INIT_BOUND = 0.034641016151377546
# safetensors' JSON header costs about 100 bytes a tensor; a blob may be this much larger than its numbers.
MAX_HEADER_BYTES_PER_TENSOR = 512


@lru_cache(maxsize=16)
def shapes(model: ModelSpec) -> Mapping[str, Shape]:
    """Every tensor's shape, sorted by name (the order of all trees and payloads)."""
    found = _llama_shapes(model) if isinstance(model, LlamaSpec) else foreign.tensor_shapes(model)
    return MappingProxyType(dict(sorted(found.items())))


def _llama_shapes(model: LlamaSpec) -> dict[str, Shape]:
    head_dim = model.hidden_size // model.heads
    kv_size = model.kv_heads * head_dim
    found: dict[str, Shape] = {
        "model.embed_tokens.weight": (model.vocab_size, model.hidden_size),
        "model.norm.weight": (model.hidden_size,),
    }
    if not model.tie_embeddings:
        found["lm_head.weight"] = (model.vocab_size, model.hidden_size)
    for layer in range(model.layers):
        prefix = f"model.layers.{layer}"
        found |= {
            f"{prefix}.input_layernorm.weight": (model.hidden_size,),
            f"{prefix}.post_attention_layernorm.weight": (model.hidden_size,),
            f"{prefix}.self_attn.q_proj.weight": (model.hidden_size, model.hidden_size),
            f"{prefix}.self_attn.k_proj.weight": (kv_size, model.hidden_size),
            f"{prefix}.self_attn.v_proj.weight": (kv_size, model.hidden_size),
            f"{prefix}.self_attn.o_proj.weight": (model.hidden_size, model.hidden_size),
            f"{prefix}.mlp.gate_proj.weight": (
                model.intermediate_size,
                model.hidden_size,
            ),
            f"{prefix}.mlp.up_proj.weight": (
                model.intermediate_size,
                model.hidden_size,
            ),
            f"{prefix}.mlp.down_proj.weight": (
                model.hidden_size,
                model.intermediate_size,
            ),
        }
    return found


def parameter_count(model: ModelSpec) -> int:
    """How many numbers the model has."""
    return sum(int(np.prod(shape)) for shape in shapes(model).values())


def initial_parameters(model: LlamaSpec) -> Parameters:
    """theta_1 of a run: norms are one, everything else uniform with deviation 0.02, keyed by (seed, tensor name)."""
    return {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else _uniform(model.init_seed, name, shape)
        for name, shape in shapes(model).items()
    }


def zeros(model: ModelSpec) -> Parameters:
    """Zeros in every tensor."""
    return {name: np.zeros(shape, np.float32) for name, shape in shapes(model).items()}


def l2_norm(tensors: Iterable[NDArray[np.float32]]) -> float:
    """L2 norm over all numbers of all tensors, summed in fp64. For people and tolerances: other machines may round differently."""
    return math.sqrt(sum(float(np.square(tensor, dtype=np.float64).sum()) for tensor in tensors))


def _uniform(seed: int, name: str, shape: Shape) -> NDArray[np.float32]:
    """SplitMix64 (Steele et al. 2014) in counter mode: value i is a function of the key and i alone."""
    key = hashlib.sha256(b"syntience.init.v1" + seed.to_bytes(8, "little") + name.encode()).digest()
    state = np.uint64(int.from_bytes(key[:8], "little"))
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is meant
        z = state + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    # 24 random bits, centred: odd integers in (-2**24, 2**24), exact in fp64; then one product and one rounding to fp32.
    centred = (z >> np.uint64(40)).astype(np.float64) * 2.0 - (2.0**24 - 1.0)
    values: NDArray[np.float32] = (centred * (INIT_BOUND / 2.0**24)).astype(np.float32)
    return values.reshape(shape)


def to_blob(params: Parameters) -> bytes:
    """Safetensors bytes of a checkpoint."""
    return save_safetensors({name: np.ascontiguousarray(params[name]) for name in sorted(params)})


def from_blob(data: bytes, model: ModelSpec) -> Parameters:
    """The checkpoint in `data`. Raises BlobError unless names, shapes, dtype and values are exactly a model's."""
    return tensors_from_blob(data, shapes(model))


def tensors_from_blob(data: bytes, expected: Mapping[str, Shape]) -> Parameters:
    """Strict safetensors reader for bytes from a stranger: the size is checked before anything is parsed."""
    numbers = 4 * sum(int(np.prod(shape)) for shape in expected.values())
    limit = numbers + MAX_HEADER_BYTES_PER_TENSOR * (len(expected) + 1)
    if not numbers < len(data) <= limit:
        raise BlobError(f"{len(data)} bytes, expected about {numbers}")
    try:
        tensors = load_safetensors(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BlobError(f"not safetensors: {error}") from error
    if tensors.keys() != expected.keys():
        raise BlobError("the tensor names are not those of the model")
    for name, shape in expected.items():
        tensor = tensors[name]
        if tensor.dtype != np.float32 or tensor.shape != shape:
            raise BlobError(f"{name} is {tensor.dtype}{tensor.shape}, expected float32{shape}")
        if not np.isfinite(tensor).all():
            raise BlobError(f"{name} holds NaN or infinity")
    return {name: tensors[name] for name in expected}
