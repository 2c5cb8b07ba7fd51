"""A model in a folder, as `transformers` writes and reads it. The project has no other form for models at rest.

    config.json, model.safetensors     fp32; larger models lie in several files with an index
    generation_config.json             which tokens begin and end a text
    tokenizer.json, tokenizer_config.json, special_tokens_map.json     if the tokenizer is known

The project's own Llama is read and written here; everything else by the library itself (`foreign`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as save_safetensors
from torch import nn

from protocol.errors import Rejected
from protocol.model_spec import LlamaSpec, ModelSpec
from training import foreign
from training.errors import ModelError
from training.flat_model import FlatModel
from training.json_files import json_text, read_json_object
from training.llama_config import llama_config, llama_spec
from training.parameters import Parameters, shapes
from training.words import Words, read_words, special_ids, words_files

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_HEAD, _EMBEDDINGS = "lm_head.weight", "model.embed_tokens.weight"
_DERIVED = "rotary_emb.inv_freq"
"""Old checkpoints hold a table that follows from the configuration."""
_REMEDY = (
    "give a folder as transformers' save_pretrained writes it, with its weights in safetensors"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredModel:
    """A model with its weights and, if it is known, its tokenizer."""

    model: ModelSpec
    params: Parameters
    words: Words | None


def read_model(folder: Path, *, context: int | None = None) -> StoredModel:
    """The model in a folder, in fp32.

    Args:
        context: the longest that is wanted; by default the longest that there is.

    Raises:
        ModelError: no causal language model, no whole one, or one that a run could not agree on.
    """
    config = read_json_object(folder / CONFIG)
    if config.get("auto_map"):
        raise ModelError(
            f"the model in {folder} brings its own code", "choose one that transformers has itself"
        )
    if not any((folder / name).is_file() for name in (WEIGHTS, INDEX)):
        raise ModelError(f"{folder} holds no weights in safetensors", _REMEDY)
    try:
        llama = llama_spec(config)
    except Rejected as error:
        raise ModelError(f"{folder / CONFIG} is no Llama's ({error})", _REMEDY) from error
    model: ModelSpec
    if llama is not None:
        model = replace(llama, context=min(llama.context, context or llama.context))
        params = _read_llama(folder, model)
    else:
        model, network = foreign.load(folder, context=context)
        params = _parameters_of(network, model)
    for name, tensor in params.items():
        if not np.isfinite(tensor).all():
            raise ModelError(f"{name} in {folder} holds NaN or infinity", "get an intact copy")
    return StoredModel(model=model, params=params, words=read_words(folder, config))


def write_model(
    stored: StoredModel, out: Path, *, extra: Mapping[str, bytes] | None = None
) -> None:
    """Writes the folder `out`, which must not exist; it appears whole or not at all.

    Args:
        extra: more files, such as the model card.

    Raises:
        ModelError: `out` exists or can't be written.
    """
    if out.exists():
        raise ModelError(f"{out} exists", "choose another folder or remove this one")
    partial: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        for name, content in _weights(stored, partial):
            (partial / name).write_bytes(content)
        for name, content in {
            **words_files(stored.words, context=stored.model.context),
            **(extra or {}),
        }.items():
            (partial / name).write_bytes(content)
        for path in partial.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        partial.chmod(0o755)
        partial.rename(out)
        partial = None
    except OSError as error:
        raise ModelError(
            f"can't write {out} ({error.strerror or error})",
            "check that the disk has room and the folder is free",
        ) from error
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def _weights(stored: StoredModel, folder: Path) -> Iterator[tuple[str, bytes]]:
    if isinstance(stored.model, LlamaSpec):
        yield CONFIG, json_text({**llama_config(stored.model), **special_ids(stored.words)})
        tensors = {name: np.ascontiguousarray(each) for name, each in stored.params.items()}
        yield WEIGHTS, save_safetensors(tensors, metadata={"format": "pt"})
        return
    flat = FlatModel(stored.model)
    flat.load(stored.params)
    foreign.save(flat.network, folder)


def _read_llama(folder: Path, model: LlamaSpec) -> Parameters:
    """Every tensor of a Llama of ours in fp32; shapes are compared before anything is read."""
    expected = shapes(model)
    places: dict[str, Path] = {}
    for path in _weight_files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                places |= dict.fromkeys(file.keys(), path)
        except (SafetensorError, OSError) as error:
            raise ModelError(f"can't read {path} ({error})", "get an intact copy") from error
    missing = sorted(expected.keys() - places.keys())
    strange = sorted(
        name
        for name in places.keys() - expected.keys()
        if not name.endswith(_DERIVED) and name != _HEAD
    )
    if missing or strange:
        raise ModelError(
            f"the tensors in {folder} are not those of its {CONFIG}: "
            f"missing {missing[:1] or 'none'}, unknown {strange[:1] or 'none'}",
            "get an intact copy",
        )
    params: Parameters = {}
    for name, shape in expected.items():
        with safe_open(places[name], framework="pt") as file:
            found = tuple(file.get_slice(name).get_shape())
            if found != shape:
                raise ModelError(f"{name} in {folder} is {found}, not {shape}", _REMEDY)
            params[name] = file.get_tensor(name).to(torch.float32).numpy()
    if model.tie_embeddings and _HEAD in places:
        with safe_open(places[_HEAD], framework="pt") as file:
            head = file.get_tensor(_HEAD).to(torch.float32).numpy()
        if not np.array_equal(head, params[_EMBEDDINGS]):
            raise ModelError(f"{_HEAD} in {folder} is not tied as {CONFIG} says", _REMEDY)
    return params


def _weight_files(folder: Path) -> list[Path]:
    if not (folder / INDEX).is_file():
        return [folder / WEIGHTS]
    parts = read_json_object(folder / INDEX).get("weight_map")
    if not isinstance(parts, dict):
        raise ModelError(f"{folder / INDEX} names no files", "get an intact copy")
    return [folder / Path(str(name)).name for name in sorted(set(parts.values()))]


def _parameters_of(network: nn.Module, model: ModelSpec) -> Parameters:
    named = dict(network.named_parameters())
    return {name: named[name].detach().numpy().copy() for name in shapes(model)}
