"""Causal language models of the library `transformers`, as modules of the project: tokens in, logits out, nothing random.

The library is imported when it is first needed: that takes seconds. Only its own architectures count: no code out of a checkpoint
is ever run, and no pickled weights are read. Every run of one spec wants the same version of the library, as it wants the same torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from protocol.errors import Rejected
from protocol.model_spec import ModelSpec, TransformersSpec, config_text
from training.errors import ModelError

UNBOUNDED_CONTEXT = 2048
"""Of an architecture that has no longest context of its own, unless another one is asked for."""
_REMEDY = "choose another model, one that transformers' AutoModelForCausalLM knows"
_IRRELEVANT = frozenset(
    {
        "_name_or_path",
        "architectures",
        "dtype",
        "id2label",
        "label2id",
        "output_attentions",
        "output_hidden_states",
        "problem_type",
        "return_dict",
        "torch_dtype",
        "transformers_version",
        "use_cache",
    }
)
"""What a configuration holds besides the computation."""
_PROBE_TOKENS = 8


@cache
def library() -> ModuleType:
    """The module `transformers`; raises ModelError if it is not installed."""
    try:
        module = importlib.import_module("transformers")
    except ImportError as error:
        raise ModelError(
            f"this model needs the library transformers ({error})",
            "install it: pip install 'syntience[transformers]'",
        ) from error
    module.utils.logging.disable_progress_bar()
    return module


def version_for(model: ModelSpec) -> str | None:
    """Of the library, if this model is computed by it."""
    return str(library().__version__) if isinstance(model, TransformersSpec) else None


def build(model: TransformersSpec) -> nn.Module:
    """The model on (B, T) token ids, giving (B, T, V) logits. Its parameters hold nothing useful yet; no generator moves.

    Raises:
        ModelError: the installed library can't build it.
    """
    with torch.random.fork_rng(devices=[]):
        network = _construct(model)
    return _quiet(network)


def tensor_shapes(model: TransformersSpec) -> Mapping[str, tuple[int, ...]]:
    """Shape of every parameter, tied ones once, without making any; raises ModelError."""
    with torch.device("meta"):
        network = _construct(model)
    return {name: tuple(tensor.shape) for name, tensor in network.named_parameters()}


def load(folder: Path, *, context: int | None = None) -> tuple[TransformersSpec, nn.Module]:
    """A checkpoint in a folder as `save_pretrained` writes it, in fp32, and its spec.

    Args:
        context: of the spec; the longest that there is by default.

    Raises:
        ModelError: no causal language model of the library's own, or no whole checkpoint of it in safetensors.
    """
    config = _read_config(folder)
    try:
        network, report = library().AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # hundreds of architectures, each with its own errors
        raise ModelError(f"can't load the model in {folder} ({error})", _REMEDY) from error
    lacking = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if lacking:
        raise ModelError(
            f"{folder} lacks {len(lacking)} tensors of a {type(network).__name__}, such as {lacking[0]}",
            "get the whole checkpoint of a language model",
        )
    network = _quiet(network)
    spec = _spec_of(network, context)
    _check_state(network)
    _check_causal(network, spec)
    return spec, network


def save(network: nn.Module, folder: Path) -> None:
    """Writes the weights in safetensors and the configuration, as the library does."""
    network.config.use_cache = True  # type: ignore[union-attr]
    network.save_pretrained(folder)  # type: ignore[operator]  # a PreTrainedModel's method


def _read_config(folder: Path) -> Any:
    try:
        return library().AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # as above
        raise ModelError(f"can't read the configuration in {folder} ({error})", _REMEDY) from error


def _construct(model: TransformersSpec) -> nn.Module:
    settings = model.settings()
    try:
        config = library().AutoConfig.for_model(**settings)
        network = library().AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except Exception as error:  # hundreds of architectures, each with its own errors
        raise ModelError(
            f"transformers {library().__version__} can't build a {model.architecture} ({error})",
            "install the version that the run's other nodes use",
        ) from error
    built, longest = type(network).__name__, _longest_context(config)
    if built != model.architecture:
        raise ModelError(f"the configuration is of a {built}, not a {model.architecture}", _REMEDY)
    if model.vocab_size != _vocabulary(config):
        raise ModelError(f"the vocabulary has {_vocabulary(config)} words", _REMEDY)
    if longest is not None and model.context > longest:
        raise ModelError(
            f"a {built} of this configuration sees {longest} tokens, not {model.context}",
            "use a shorter context",
        )
    return network  # type: ignore[no-any-return]


def _quiet(network: nn.Module) -> nn.Module:
    """Without dropout and caches, giving logits alone."""
    network.config.use_cache = False  # type: ignore[union-attr]
    network.register_forward_hook(_logits)
    return network.eval()


def _logits(_network: nn.Module, _inputs: tuple[Any, ...], output: Any) -> Tensor:
    logits: Tensor = output.logits
    return logits


def _spec_of(network: Any, context: int | None) -> TransformersSpec:
    config = network.config
    longest = _longest_context(config) or UNBOUNDED_CONTEXT
    try:
        return TransformersSpec(
            architecture=type(network).__name__,
            config=config_text(_relevant(config.to_dict())),
            vocab_size=_vocabulary(config),
            context=min(longest, context or longest),
        )
    except (Rejected, TypeError, ValueError) as error:
        raise ModelError(f"its configuration fits in no spec ({error})", _REMEDY) from error


def _relevant(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What shapes the computation, in the configurations inside this one too."""
    if settings.get("quantization_config"):
        raise ValueError("its weights are quantised")
    return {
        str(name): _relevant(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in _IRRELEVANT
    }


def _vocabulary(config: Any) -> int:
    return int(config.get_text_config().vocab_size)


def _longest_context(config: Any) -> int | None:
    longest = getattr(config.get_text_config(), "max_position_embeddings", None)
    return int(longest) if longest else None


def _check_state(network: nn.Module) -> None:
    """The run agrees on trainable fp32 parameters and on nothing else."""
    named = dict(network.named_parameters(remove_duplicate=False))
    others = sorted(network.state_dict().keys() - named.keys())
    fixed = sorted(name for name, each in named.items() if not each.requires_grad)
    strange = sorted(name for name, each in named.items() if each.dtype != torch.float32)
    for names, what in (
        (others, "state that is not trained"),
        (fixed, "parameters that are not trained"),
        (strange, "parameters that are not fp32"),
    ):
        if names:
            raise ModelError(
                f"a {type(network).__name__} has {what}, such as {names[0]}; a run could not agree on it",
                _REMEDY,
            )


def _check_causal(network: nn.Module, spec: TransformersSpec) -> None:
    """A later token must not show in earlier logits: some architectures are causal only if their configuration says so."""
    length = min(_PROBE_TOKENS, spec.context)
    one = torch.arange(1, length + 1) % spec.vocab_size
    other = one.clone()
    other[-1] = (other[-1] + 1) % spec.vocab_size
    try:
        with torch.inference_mode():
            logits = network(torch.stack([one, other]))
    except Exception as error:  # as above
        raise ModelError(
            f"a {spec.architecture} of this kind computes nothing ({error})", _REMEDY
        ) from error
    if logits.shape[:2] != (2, length) or not torch.allclose(
        logits[0, :-1], logits[1, :-1], rtol=1e-3, atol=1e-4
    ):
        raise ModelError(f"{spec.architecture} sees later tokens: it is not causal", _REMEDY)
