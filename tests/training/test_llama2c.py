"""Files of llama2.c against its own encoder and forward pass, and everything that is no such file."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.real_data import real_file
from tests.training import llama2c_reference as reference
from tests.training.llama2c_reference import Shape
from training.errors import ModelError
from training.flat_model import FlatModel
from training.llama2c import read_llama2c, read_llama2c_tokenizer
from training.model_folder import StoredModel
from training.text_loss import text_loss
from training.words import Words

# Scores fall from the first piece on, as sentencepiece writes them; "aba" can be made in two ways.
PIECES = [
    (piece.encode(), -float(rank))
    for rank, piece in enumerate(
        [" a", "ab", "ba", "aba", "th", "the", " the", "éa", *" abceht.\né日"]
    )
]
VOCABULARY = 3 + 256 + len(PIECES)
MARKS = ("<unk>", "<s>", "</s>")


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tok") / "tok.bin"
    reference.write_tokenizer(path, PIECES)
    return path


def expect_the_same(path: Path, text: str) -> None:
    pieces = reference.read_pieces(path)
    tokenizer = read_llama2c_tokenizer(path, len(pieces))
    assert tokenizer.encode(text, add_special_tokens=False).ids == reference.encode(text, pieces)
    assert tokenizer.encode(text).ids == [1, *reference.encode(text, pieces)]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@given(st.text(st.sampled_from(" abceht.\né日x🙂"), max_size=30))
@settings(max_examples=200)
def test_tokenizer__any_text__encodes_as_llama2c(tokenizer_file: Path, text: str) -> None:
    expect_the_same(tokenizer_file, text)


@given(st.text(max_size=30).filter(lambda text: not any(mark in text for mark in MARKS)))
@settings(max_examples=100)
def test_tokenizer__the_real_one__encodes_as_llama2c(text: str) -> None:
    expect_the_same(real_file("tok512.bin"), text)


def test_tokenizer__real_text__encodes_as_llama2c() -> None:
    text = real_file("tinystories_valid_794k.txt").read_text()
    for place in range(0, 600_000, 60_000):
        expect_the_same(real_file("tok512.bin"), text[place : place + 500])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:4] + struct.pack("<fi", 0, -5) + data[12:],
        lambda data: data[:8] + struct.pack("<i", 1 << 30) + data[12:],
        lambda data: data.replace(b"<0x41>", b"<0x4x>"),
        lambda data: data.replace("éa".encode(), b"\xff\xfea"),
        lambda data: data.replace("日".encode(), b"the"),
        lambda data: b"",
    ],
)
def test_tokenizer__damaged_file__is_refused(tokenizer_file: Path, tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "damaged.bin"
    path.write_bytes(damage(tokenizer_file.read_bytes()))
    with pytest.raises(ModelError, match=re.escape(str(path))):
        read_llama2c_tokenizer(path, VOCABULARY)


def test_tokenizer__of_another_vocabulary__is_refused(tokenizer_file: Path) -> None:
    for size in (VOCABULARY - 1, VOCABULARY + 1, 3, -1, 1 << 40):
        with pytest.raises(ModelError, match="no tokenizer of"):
            read_llama2c_tokenizer(tokenizer_file, size)


@pytest.mark.parametrize("shape", [Shape(), Shape(tied=False), Shape(kv_heads=4, layers=1)])
def test_model__random_weights__computes_what_llama2c_computes(
    tmp_path: Path, shape: Shape
) -> None:
    weights = reference.random_weights(shape)
    path = tmp_path / "model.bin"
    reference.write_model(path, shape, weights)
    spec, params = read_llama2c(path)
    flat = FlatModel(spec)
    flat.load(params)
    tokens = np.random.default_rng(1).integers(0, shape.vocabulary, shape.context).tolist()
    with torch.inference_mode():
        logits = flat.network(torch.tensor([tokens]))[0].numpy()
    expected = reference.forward(tokens, shape, weights)
    assert np.abs(logits - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-4], "its header says"),
        (lambda data: data + b"\0" * 4, "its header says"),
        (lambda data: data[:20], "too short"),
        (lambda data: struct.pack("<i", 0x616B3432) + data[4:], "later version"),
        (lambda data: data[:8] + struct.pack("<i", (1 << 31) - 1) + data[12:], "its header says"),
        (lambda data: data[:12] + struct.pack("<i", 0) + data[16:], "heads is not positive"),
        (lambda data: data[:-4] + struct.pack("<f", 0.5), None),  # a sine: not checked, not used
        (lambda data: data[:28] + struct.pack("<f", float("nan")) + data[32:], "NaN"),
    ],
)
def test_model__damaged_file__is_refused(tmp_path: Path, damage, message: str | None) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "model.bin"
    reference.write_model(path, Shape(), reference.random_weights(Shape()))
    path.write_bytes(damage(path.read_bytes()))
    if message is None:
        read_llama2c(path)
        return
    with pytest.raises(ModelError, match=message):
        read_llama2c(path)


def test_model__trained_with_other_angles__is_refused(tmp_path: Path) -> None:
    weights = reference.random_weights(Shape())
    weights["cos"] = np.sqrt(np.abs(weights["cos"]))
    reference.write_model(tmp_path / "model.bin", Shape(), weights)
    with pytest.raises(ModelError, match="rotary angles"):
        read_llama2c(tmp_path / "model.bin")


def test_model__no_such_file__says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="can't read"):
        read_llama2c(tmp_path / "model.bin")


def test_model__stories260k__has_the_loss_that_it_was_trained_to() -> None:
    """On the validation text's first stories, each by itself as in its training; a loss of 1.3 was reported there."""
    spec, params = read_llama2c(real_file("stories260K.bin"))
    tokenizer = read_llama2c_tokenizer(real_file("tok512.bin"), spec.vocab_size)
    words = Words(json=tokenizer.to_str().encode(), start="<s>", end="<s>")
    text = real_file("tinystories_valid_794k.txt").read_text()[: 1 << 17]
    stories = re.split(r"\n\n(?=Once upon)", text)
    found = text_loss(StoredModel(model=spec, params=params, words=words), stories)
    assert found.per_token == pytest.approx(1.3, abs=0.1)
    assert found.bytes == sum(len(story.encode()) for story in stories)
