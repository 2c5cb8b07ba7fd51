"""The data set of a devnet: made once for each text and vocabulary, found again by content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from protocol import canonical
from protocol.spec import DataSpec
from syntience import corpus, documents
from syntience.devnet.presets import Preset
from training.dataset import MANIFEST, TokenDataset
from training.prepare import prepare_dataset

_HELDOUT = 0.05


def prepare_data(
    preset: Preset, text: Path | None, *, cache_dir: Path, work: Path
) -> tuple[Path, DataSpec]:
    """The prepared data set's folder and spec.

    Args:
        preset: names the vocabulary and the context.
        text: the user's own text; None takes the default corpus.
        cache_dir: where the default corpus is kept.
        work: where prepared data sets are kept.

    Raises:
        OperatorError: no text, too little of it, or no room.
    """
    if text is None:
        name, texts = corpus.NAME, corpus.fetch_default_corpus(cache_dir)
    else:
        name, texts = text.stem, documents.load_documents(text)
    folder = work / "datasets" / f"{name}-{_key(preset, name, texts)[:16]}"
    if not (folder / MANIFEST).exists():
        prepare_dataset(
            texts,
            folder,
            vocab_size=preset.vocab_size,
            context=preset.model.context,
            heldout_fraction=_HELDOUT,
            name=name,
        )
    return folder, TokenDataset.open(folder).spec


def _key(preset: Preset, name: str, texts: Sequence[str]) -> str:
    """A digest of everything that the data set follows from."""
    facts: dict[str, canonical.Json] = {
        "context": preset.model.context,
        "heldout": str(_HELDOUT),
        "name": name,
        "texts": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
        "tokenizers": metadata.version("tokenizers"),
        "vocab": preset.vocab_size,
    }
    return hashlib.sha256(canonical.dumps(facts)).hexdigest()
