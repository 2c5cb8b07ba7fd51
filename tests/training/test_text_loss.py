"""The loss of texts against a slow reading of the definition, token by token."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from tests.specs import MODEL
from training.errors import ModelError
from training.flat_model import FlatModel
from training.model_folder import StoredModel
from training.parameters import initial_parameters
from training.text_loss import TextLoss, text_loss
from training.tokenizer import END_OF_TEXT, train_tokenizer
from training.words import Words

TEXTS = ["the cat sat on the mat, and " * 4, "é", "a dog", "the mat sat on the cat. " * 9]
LLAMA = replace(MODEL, vocab_size=300)
TOKENIZER = train_tokenizer(TEXTS, 300)
WORDS = Words(json=TOKENIZER.to_str().encode(), start=None, end=END_OF_TEXT)
STORED = StoredModel(model=LLAMA, params=initial_parameters(LLAMA), words=WORDS)


def slow(stored: StoredModel, first: list[int]) -> tuple[float, int]:
    """Each token from those before it in its window, one forward pass for each."""
    flat = FlatModel(stored.model)
    flat.load(stored.params)
    nats, count, step = 0.0, 0, stored.model.context
    for text in TEXTS:
        ids = first + TOKENIZER.encode(text).ids
        for place in range(1, len(ids)):
            seen = ids[(place - 1) // step * step : place]
            with torch.inference_mode():
                logits = flat.network(torch.tensor([seen]))[0, -1].double()
            nats -= float(torch.log_softmax(logits, -1)[ids[place]])
            count += 1
    return nats, count


@pytest.mark.parametrize("end", [END_OF_TEXT, None])
def test_text_loss__several_texts__is_that_of_each_token_in_its_window(end: str | None) -> None:
    stored = replace(STORED, words=replace(WORDS, end=end))
    found = text_loss(stored, TEXTS)
    nats, count = slow(stored, [] if end is None else [0])
    assert found.tokens == count
    assert found.nats == pytest.approx(nats, rel=1e-5)
    assert found.bytes == sum(len(text.encode()) for text in TEXTS)


def test_text_loss__figures__follow_from_nats() -> None:
    loss = TextLoss(nats=8 * math.log(2), tokens=4, bytes=16)
    assert loss.per_token == pytest.approx(2 * math.log(2))
    assert loss.perplexity == pytest.approx(4)
    assert loss.bits_per_byte == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("stored", "texts", "message"),
    [
        (replace(STORED, words=None), TEXTS, "no tokenizer"),
        (STORED, [], "nothing to predict"),
        (
            replace(STORED, model=MODEL, params=initial_parameters(MODEL)),
            TEXTS,
            "not this model's",
        ),
    ],
)
def test_text_loss__nothing_that_can_be_computed__says_so(
    stored: StoredModel, texts: list[str], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        text_loss(stored, texts)
