"""Which tokens begin and end a text, in all the ways in which folders say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.dataset import TOKENIZER
from training.errors import DatasetError
from training.json_files import json_text
from training.tokenizer import END_OF_TEXT, train_tokenizer
from training.words import (
    GENERATION_CONFIG,
    TOKENIZER_CONFIG,
    Words,
    read_words,
    special_ids,
    words_files,
)

CONTENT = train_tokenizer(["a cat, a dog"], 300).to_str().encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / TOKENIZER).write_bytes(CONTENT)
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "generation", "config", "end"),
    [
        ({"eos_token": END_OF_TEXT}, {}, {}, END_OF_TEXT),
        ({"eos_token": {"content": "!", "lstrip": False}}, {}, {}, "!"),
        ({"eos_token": None}, {"eos_token_id": 1}, {"eos_token_id": 2}, "!"),
        ({}, {"eos_token_id": [2, 1]}, {}, '"'),
        ({}, {}, {"eos_token_id": 2}, '"'),
        ({"eos_token": "no such word"}, {}, {"eos_token_id": 1}, "!"),
        ({"eos_token": "no such word"}, {"eos_token_id": 999}, {}, None),
        ({}, {}, {}, None),
        ({}, {"eos_token_id": 0}, {}, END_OF_TEXT),
    ],
)
def test_read_words__end_of_text__is_the_first_that_the_vocabulary_has(
    folder: Path,
    settings: dict[str, object],
    generation: dict[str, object],
    config: dict[str, object],
    end: str | None,
) -> None:
    (folder / TOKENIZER_CONFIG).write_bytes(json_text(settings))
    (folder / GENERATION_CONFIG).write_bytes(json_text(generation))
    words = read_words(folder, config)
    assert words is not None
    assert (words.start, words.end) == (None, end)


def test_read_words__no_tokenizer__is_none(tmp_path: Path) -> None:
    assert read_words(tmp_path, {}) is None


def test_words_files__read_again__are_the_same_words(folder: Path) -> None:
    words = Words(json=CONTENT, start="!", end=END_OF_TEXT)
    for name, content in words_files(words, context=8).items():
        (folder / name).write_bytes(content)
    assert read_words(folder, {}) == words
    assert special_ids(words) == {"bos_token_id": 1, "eos_token_id": 0}
    assert special_ids(None) == {"bos_token_id": None, "eos_token_id": None}


def test_words__no_tokenizer_s_bytes__are_refused() -> None:
    with pytest.raises(DatasetError, match="no tokenizer"):
        Words(json=b"{}", start=None, end=None).tokenizer()
