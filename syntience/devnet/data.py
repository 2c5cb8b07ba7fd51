"""The data set of a devnet: made once for each text and vocabulary, found again by content."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

from protocol import canonical
from protocol.spec import DataSpec
from syntience import corpus
from syntience.devnet.presets import Preset
from syntience.documents import Documents, ListedDocuments, open_documents
from training.dataset import FORMAT, MANIFEST, TokenDataset
from training.prepare import prepare_dataset
from training.vocabulary import GivenTokenizer

_HELDOUT = 0.05


def prepare_data(
    preset: Preset,
    text: Path | None,
    *,
    cache_dir: Path,
    work: Path,
    tokenizer: GivenTokenizer | None = None,
) -> tuple[Path, DataSpec]:
    """The prepared data set's folder and spec.

    Args:
        preset: names the vocabulary and the context.
        text: the user's own text; None takes the default corpus.
        cache_dir: where the default corpus is kept.
        work: where prepared data sets are kept.
        tokenizer: the model's own; None trains one.

    Raises:
        OperatorError: no text, too little of it, or no room.
    """
    documents: Documents
    if text is None:
        documents = ListedDocuments(corpus.NAME, corpus.fetch_default_corpus(cache_dir))
    else:
        documents = open_documents(text, cache_dir=cache_dir)
    folder = work / "datasets" / f"{documents.name}-{_key(preset, documents, tokenizer)[:16]}"
    if not (folder / MANIFEST).exists():
        prepare_dataset(
            documents,
            folder,
            vocab_size=preset.vocab_size if tokenizer is None else None,
            tokenizer=tokenizer,
            context=preset.model.context,
            heldout_fraction=_HELDOUT,
            name=documents.name,
        )
    return folder, TokenDataset.open(folder).spec


def _key(preset: Preset, documents: Documents, tokenizer: GivenTokenizer | None) -> str:
    """A digest of everything that the data set follows from."""
    digest = hashlib.sha256()
    for document in documents:
        digest.update(hashlib.sha256(document.encode()).digest())
    facts: dict[str, canonical.Json] = {
        "context": preset.model.context,
        "format": FORMAT,
        "heldout": str(_HELDOUT),
        "name": documents.name,
        "texts": digest.hexdigest(),
        "tokenizers": metadata.version("tokenizers"),
        "vocab": preset.vocab_size,
    }
    if tokenizer is not None:
        facts["tokenizer"] = hashlib.sha256(tokenizer.path.read_bytes()).hexdigest()
        facts["end"] = tokenizer.end_token
    return hashlib.sha256(canonical.dumps(facts)).hexdigest()
