"""A model to begin with, beside the data set that it is to be trained or examined on."""

from __future__ import annotations

from pathlib import Path

from protocol.errors import OperatorError
from training.dataset import TokenDataset
from training.model_folder import StoredModel, read_model
from training.tokenizer import load_tokenizer, vocabulary_size


def read_start(folder: Path, dataset: TokenDataset) -> StoredModel:
    """The model in a folder, with the data set's context; both must speak the same vocabulary.

    Raises:
        OperatorError: they don't, or the model can't be read.
    """
    stored = read_model(folder, context=dataset.spec.sample_tokens - 1)
    check_start(stored, dataset)
    return stored


def check_start(stored: StoredModel, dataset: TokenDataset) -> None:
    """Raises OperatorError unless the model knows the data set's tokens and sees whole samples."""
    context = dataset.spec.sample_tokens - 1
    tokenizer = load_tokenizer(dataset)
    if stored.model.context < context:
        raise OperatorError(
            f"the samples have {context} tokens of context, the model sees {stored.model.context}",
            "prepare the data set with a shorter --context",
        )
    if stored.words is not None and stored.words.tokenizer().get_vocab() != tokenizer.get_vocab():
        raise OperatorError(
            "the data set has other tokens than the model",
            "prepare it with the model's tokenizer.json",
        )
    if vocabulary_size(tokenizer) > stored.model.vocab_size:
        raise OperatorError(
            f"the data set has more tokens than the {stored.model.vocab_size} of the model",
            "prepare it with the model's own tokenizer",
        )
