"""What a text costs a model: nats per token, and bits per byte, which models with different tokenizers have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from training.errors import ModelError
from training.evaluate import EVALUATION_BATCH
from training.flat_model import FlatModel
from training.model import token_losses
from training.model_folder import StoredModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLoss:
    """nats: of all predicted tokens · tokens: how many · bytes: of the text in UTF-8."""

    nats: float
    tokens: int
    bytes: int

    @property
    def per_token(self) -> float:
        """Mean loss in nats."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """e to the mean loss."""
        return math.exp(self.per_token)

    @property
    def bits_per_byte(self) -> float:
        """Of the text that was predicted."""
        return self.nats / math.log(2) / self.bytes


def text_loss(stored: StoredModel, documents: Iterable[str]) -> TextLoss:
    """The loss on documents, each by itself.

    A document begins with the token that begins texts (or ends them, where none begins them), and is cut into windows of the
    model's context: every token is predicted once, from what stands before it in its window. The first token is only predicted
    if there is such a token.

    Raises:
        ModelError: the model has no tokenizer, or one with more tokens than it knows; nothing to predict.
    """
    flat = FlatModel(stored.model)
    flat.load(stored.params)
    nats, tokens, size = 0.0, 0, 0
    windows: list[list[int]] = []
    for text, ids in _encoded(stored, documents):
        size += len(text.encode())
        step = stored.model.context
        windows += [ids[at : at + step + 1] for at in range(0, len(ids) - 1, step)]
    with torch.inference_mode():
        for batch in _batches(windows):
            losses = token_losses(flat.network, torch.tensor(batch))
            nats += float(losses.double().sum())
            tokens += losses.numel()
    if not tokens:
        raise ModelError("the text has nothing to predict", "give some text")
    return TextLoss(nats=nats, tokens=tokens, bytes=size)


def _encoded(stored: StoredModel, documents: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    """Each document with its tokens, the one that begins it included."""
    words = stored.words
    if words is None:
        raise ModelError("the model has no tokenizer", "give its tokenizer")
    tokenizer = words.tokenizer()
    start = words.start or words.end
    first = None if start is None else tokenizer.token_to_id(start)
    for text in documents:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if max(ids, default=0) >= stored.model.vocab_size:
            raise ModelError("the tokenizer is not this model's", "give the model's own")
        yield text, ids if first is None else [first, *ids]


def _batches(windows: list[list[int]]) -> Iterator[list[list[int]]]:
    """Windows of one length together."""
    ordered = sorted(windows, key=len)
    batch: list[list[int]] = []
    for window in ordered:
        if batch and (len(batch) == EVALUATION_BATCH or len(batch[0]) != len(window)):
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch
