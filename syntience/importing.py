"""Models from elsewhere: a folder or a name of `transformers`, or a file of llama2.c."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from syntience.errors import ConfigError, DownloadFailed
from training.llama2c import START, read_llama2c, read_llama2c_tokenizer
from training.model_folder import CONFIG, StoredModel, read_model
from training.words import Words

_LLAMA2C = ".bin"
_WANTED = ("*.safetensors", "*.json")
"""Files of a repository that are fetched: never pickled weights, never code."""


def load_model(
    source: str, *, tokenizer: Path | None = None, context: int | None = None
) -> StoredModel:
    """The model that a source names.

    Args:
        source: a folder, a `.bin` of llama2.c, or a name on the Hugging Face Hub such as ``openai-community/gpt2``.
        tokenizer: of a `.bin`, llama2.c's own.
        context: the longest that is wanted.

    Raises:
        OperatorError: nothing there, or nothing that a run can train.
    """
    path = Path(source).expanduser()
    if path.is_file() and path.suffix == _LLAMA2C:
        model, params = read_llama2c(path)
        words = None
        if tokenizer is not None:
            vocabulary = read_llama2c_tokenizer(tokenizer, model.vocab_size)
            words = Words(json=vocabulary.to_str().encode(), start=START, end=START)
        model = replace(model, context=min(model.context, context or model.context))
        return StoredModel(model=model, params=params, words=words)
    if tokenizer is not None:
        raise ConfigError("--tokenizer is for a .bin of llama2.c", "leave it out")
    if path.is_dir() or path.exists():
        if not (path / CONFIG).is_file():
            raise ConfigError(
                f"{path} is neither a model's folder nor a .bin of llama2.c",
                f"give a folder with {CONFIG} in it",
            )
        return read_model(path, context=context)
    return read_model(_fetch(source), context=context)


def _fetch(name: str) -> Path:
    """A copy of a repository in the Hub's own cache."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise ConfigError(
            f"there is no file or folder {name}, and fetching a model by name needs huggingface_hub",
            "give a path, or install it: pip install 'syntience[transformers]'",
        ) from error
    try:
        return Path(hub.snapshot_download(name, allow_patterns=list(_WANTED)))
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise DownloadFailed(
            f"can't get the model {name} ({' '.join(str(error).split())[:200]})",
            "give the path of a folder, or a name that the Hugging Face Hub knows, such as openai-community/gpt2",
        ) from error
