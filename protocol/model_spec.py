"""What is trained: the project's own Llama, or a causal language model of the library `transformers`.

Both give names and shapes of tensors, a vocabulary and a context; everything else in a run works on those alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from protocol import canonical, record
from protocol.errors import Rejected

MAX_CONFIG_CHARS = 1 << 16
"""An architecture's configuration takes 1 to 3 thousand characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaSpec:
    """A Llama: RMSNorm, rotary positions, SwiGLU. `init_seed` fixes the weights of a run that starts from nothing."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    context: int
    rope_theta: str
    norm_eps: str
    tie_embeddings: bool
    init_seed: int

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "layers",
            "heads",
            "kv_heads",
            "context",
        ):
            _check(getattr(self, name) > 0, f"model.{name} is not positive")
        _check(self.hidden_size % self.heads == 0, "model.heads does not divide hidden_size")
        _check(
            self.hidden_size // self.heads % 2 == 0,
            "a head's size is odd: it has no pairs to rotate",
        )
        _check(self.heads % self.kv_heads == 0, "model.kv_heads does not divide heads")
        for name in ("rope_theta", "norm_eps"):
            text = getattr(self, name)
            _check(_is_positive(text), f"model.{name} is no positive decimal number: {text!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformersSpec:
    """A causal language model that `transformers` builds by itself; its weights come from a checkpoint.

    Attributes:
        architecture: the class that the library makes of `config`, such as ``GPT2LMHeadModel``.
        config: what `PretrainedConfig.to_dict` says, less what does not shape the computation, as JSON with sorted keys and
            no spaces; numbers as Python writes them.
        vocab_size: tokens that it knows; those of the data set may be fewer.
        context: tokens that a sample trains on, at most what the architecture can.
    """

    architecture: str
    config: str
    vocab_size: int
    context: int

    def __post_init__(self) -> None:
        _check(self.architecture.isidentifier(), "model.architecture is no name of a class")
        for name in ("vocab_size", "context"):
            _check(getattr(self, name) > 0, f"model.{name} is not positive")
        self.settings()

    def settings(self) -> dict[str, object]:
        """`config`, parsed; raises `Rejected`."""
        _check(len(self.config) <= MAX_CONFIG_CHARS, "model.config is too long")
        deepest = canonical.nesting(self.config.encode())
        _check(deepest <= canonical.MAX_DEPTH, "model.config is nested too deeply")
        try:
            settings = json.loads(self.config)
            canonical_text = config_text(settings)
        except ValueError as error:
            raise Rejected(f"run spec: model.config is no JSON ({error})") from error
        _check(isinstance(settings, dict), "model.config is no JSON object")
        _check(canonical_text == self.config, "model.config is not in its one form")
        _check(isinstance(settings.get("model_type"), str), "model.config has no model_type")
        return dict(settings)


ModelSpec: TypeAlias = LlamaSpec | TransformersSpec
_KINDS: Sequence[type[ModelSpec]] = (LlamaSpec, TransformersSpec)


def read_model_spec(value: canonical.Json) -> ModelSpec:
    """A model of either kind from its JSON; raises `Rejected`."""
    return record.from_json(record.closest(_KINDS, value), value)


def config_text(settings: object) -> str:
    """The one form of a configuration. Floats may stand in it: nothing but its own text is ever hashed."""
    return json.dumps(
        settings, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _is_positive(text: str) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    return number.is_finite() and number > 0


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Rejected(f"run spec: {otherwise}")
