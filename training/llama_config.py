"""The project's Llama and `LlamaForCausalLM`'s config.json, one from the other."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from protocol.errors import Rejected
from protocol.model_spec import LlamaSpec

ARCHITECTURE = "LlamaForCausalLM"
_PLAIN: Mapping[str, object] = {
    "attention_bias": False,
    "hidden_act": "silu",
    "mlp_bias": False,
    "pretraining_tp": 1,
    "quantization_config": None,
    "rope_scaling": None,
}
"""What our Llama is like. A configuration may leave these out; with another value it is another architecture."""
_ROPE_THETA = 10_000.0
_NORM_EPS = 1e-6
"""What a configuration that doesn't say means."""


def llama_config(model: LlamaSpec) -> dict[str, object]:
    """What config.json says of a model of ours, for readers old and new."""
    theta = float(model.rope_theta)
    return {
        "architectures": [ARCHITECTURE],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "dtype": "float32",
        "head_dim": model.hidden_size // model.heads,
        "hidden_act": "silu",
        "hidden_size": model.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": model.intermediate_size,
        "max_position_embeddings": model.context,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.layers,
        "num_key_value_heads": model.kv_heads,
        "rms_norm_eps": float(model.norm_eps),
        "rope_parameters": {"rope_theta": theta, "rope_type": "default"},
        "rope_theta": theta,
        "tie_word_embeddings": model.tie_embeddings,
        "vocab_size": model.vocab_size,
    }


def llama_spec(config: Mapping[str, object]) -> LlamaSpec | None:
    """The spec of a configuration, or None if it is not of a Llama as ours is; raises `Rejected` for impossible numbers."""
    if config.get("model_type") != "llama" or config.get("architectures") != [ARCHITECTURE]:
        return None
    if any(config.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return None
    rope = config.get("rope_parameters") or dict[str, object]()
    if not isinstance(rope, Mapping) or rope.get("rope_type", "default") != "default":
        return None
    if rope.keys() - {"rope_type", "rope_theta"}:
        return None
    hidden, heads = _whole(config, "hidden_size"), _whole(config, "num_attention_heads")
    if config.get("head_dim") not in (None, hidden // max(heads, 1)):
        return None
    theta = rope.get("rope_theta", config.get("rope_theta", _ROPE_THETA))
    kv_heads = config.get("num_key_value_heads")
    return LlamaSpec(
        vocab_size=_whole(config, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_whole(config, "intermediate_size"),
        layers=_whole(config, "num_hidden_layers"),
        heads=heads,
        kv_heads=heads if kv_heads is None else _whole(config, "num_key_value_heads"),
        context=_whole(config, "max_position_embeddings"),
        rope_theta=_decimal(theta),
        norm_eps=_decimal(config.get("rms_norm_eps", _NORM_EPS)),
        tie_embeddings=config.get("tie_word_embeddings", False) is True,
        init_seed=0,
    )


def _whole(config: Mapping[str, object], name: str) -> int:
    value = config.get(name)
    if type(value) is not int:
        raise Rejected(f"config.json has no whole number {name}")
    return value


def _decimal(value: object) -> str:
    """The shortest decimal that reads as this number."""
    if type(value) not in (int, float):
        raise Rejected(f"{value!r} in config.json is no number")
    return format(Decimal(repr(value)).normalize(), "f")
