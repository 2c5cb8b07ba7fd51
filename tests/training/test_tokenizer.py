"""Any tokenizer.json: its end of text, its gaps, and what it can't do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from tests.training.texts import contents, documents
from training.dataset import TokenDataset
from training.errors import DatasetError
from training.prepare import Pace, prepare_dataset
from training.tokenizer import (
    encode_documents,
    end_token_of,
    load_tokenizer,
    read_tokenizer,
    train_tokenizer,
    vocabulary_size,
)
from training.verification import verify
from training.vocabulary import GivenTokenizer


def saved(tokenizer: Tokenizer, path: Path) -> Path:
    tokenizer.save(str(path))
    return path


def words(*, end: str = "</s>", highest: int = 5) -> Tokenizer:
    tokenizer = Tokenizer(WordLevel({"one": 0, "two": 1, "[UNK]": 2, "far": highest}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens([AddedToken(end)])
    return tokenizer


def test_prepare__trained_tokenizer_given_again__gives_the_same_samples(tmp_path: Path) -> None:
    trained = prepare_dataset(documents(), tmp_path / "a", vocab_size=300, context=16)
    given = GivenTokenizer(path=tmp_path / "a" / "tokenizer.json")
    for workers in (1, 2):
        out = tmp_path / f"b{workers}"
        spec = prepare_dataset(
            documents(),
            out,
            tokenizer=given,
            context=16,
            pace=Pace(workers=workers, batch_bytes=900),
        )
        assert spec == trained
        assert contents(out) == contents(tmp_path / "a")


def test_prepare__tokenizer_that_adds_cuts_and_pads__adds_cuts_and_pads_nothing(
    tmp_path: Path,
) -> None:
    tokenizer = words()
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = TemplateProcessing("</s> $A", special_tokens=[("</s>", end)])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=50)
    path = saved(tokenizer, tmp_path / "tokenizer.json")
    spec = prepare_dataset(
        ["one two one two far"] * 40,
        tmp_path / "set",
        tokenizer=GivenTokenizer(path=path),
        context=5,
    )
    assert spec.end_token == end
    assert (tmp_path / "set" / "tokenizer.json").read_bytes() == path.read_bytes()
    dataset = verify(tmp_path / "set", spec.dataset_root)
    assert dataset.sample(0).tolist() == [0, 1, 0, 1, 5, end]


@pytest.mark.parametrize(("highest", "token_bytes"), [(65_535, 2), (65_536, 4)])
def test_prepare__large_ids__take_four_bytes(
    tmp_path: Path, highest: int, token_bytes: int
) -> None:
    """The end of text fills a gap: what counts is the largest id."""
    path = saved(words(highest=highest), tmp_path / "tokenizer.json")
    tokenizer = read_tokenizer(path)
    spec = prepare_dataset(
        ["far one"] * 40, tmp_path / "set", tokenizer=GivenTokenizer(path=path), context=2
    )
    assert vocabulary_size(tokenizer) >= highest + 1
    assert spec.token_bytes == (2 if vocabulary_size(tokenizer) <= 65_536 else 4)
    assert spec.token_bytes == token_bytes
    assert TokenDataset.open(tmp_path / "set").sample(0).max() == vocabulary_size(tokenizer) - 1


def test_end_token__no_usual_name__wants_to_be_named(tmp_path: Path) -> None:
    tokenizer = words(end="<stop>")
    with pytest.raises(DatasetError, match=r"no known end of text: name the token .* --end-token"):
        end_token_of(tokenizer)
    with pytest.raises(DatasetError, match="no token '<halt>'"):
        end_token_of(tokenizer, "<halt>")
    assert end_token_of(tokenizer, "<stop>") == tokenizer.token_to_id("<stop>")
    path = saved(tokenizer, tmp_path / "tokenizer.json")
    with pytest.raises(DatasetError, match="no known end of text"):
        prepare_dataset(["one"], tmp_path / "set", tokenizer=GivenTokenizer(path=path), context=2)
    assert [each.name for each in tmp_path.iterdir()] == ["tokenizer.json"]


def test_end_token__several__takes_the_likeliest() -> None:
    tokenizer = words(end="<eos>")
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>")])
    assert end_token_of(tokenizer) == tokenizer.token_to_id("<|endoftext|>")


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\ud83d"])
def test_read__no_tokenizer__says_so(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(DatasetError, match="is no tokenizer"):
        read_tokenizer(path)
    with pytest.raises(DatasetError, match="can't read"):
        prepare_dataset(
            ["one"], tmp_path / "set", tokenizer=GivenTokenizer(path=tmp_path / "no"), context=2
        )


@pytest.mark.parametrize("workers", [1, 2])
def test_prepare__character_that_the_tokenizer_does_not_know__says_which_document(
    tmp_path: Path, workers: int
) -> None:
    tokenizer = Tokenizer(WordLevel({"one": 0, "</s>": 1}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    path = saved(tokenizer, tmp_path / "tokenizer.json")
    with pytest.raises(DatasetError, match="can't encode a document that begins 'two'"):
        prepare_dataset(
            ["one"] * 20 + ["two"],
            tmp_path / "set",
            tokenizer=GivenTokenizer(path=path),
            context=2,
            pace=Pace(workers=workers),
        )


def test_encode__documents__are_ended_and_measured() -> None:
    tokenizer = train_tokenizer(documents(), 300)
    texts = [*documents(2), "ü 🙂"]
    encoded = encode_documents(tokenizer, texts, end_token=0, dtype="<u2")
    ends = encoded.lengths.cumsum().tolist()
    pieces = [encoded.tokens[a:b].tolist() for a, b in zip([0, *ends], ends, strict=False)]
    assert [tokenizer.decode(piece[:-1]) for piece in pieces] == texts
    assert {piece[-1] for piece in pieces} == {0}
    assert encode_documents(tokenizer, [], end_token=0, dtype="<u2").tokens.size == 0


def test_load__data_set__is_its_own(tmp_path: Path) -> None:
    prepare_dataset(documents(), tmp_path / "a", vocab_size=300, context=16)
    assert load_tokenizer(TokenDataset.open(tmp_path / "a")).get_vocab_size() == 300
