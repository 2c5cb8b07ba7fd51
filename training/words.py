"""A model's tokenizer and the tokens that begin and end a text, and how they lie in a folder of `transformers`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer

from training.dataset import TOKENIZER
from training.json_files import json_text, read_json_object
from training.tokenizer import parse_tokenizer

TOKENIZER_CONFIG = "tokenizer_config.json"
GENERATION_CONFIG, SPECIAL_TOKENS = "generation_config.json", "special_tokens_map.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A tokenizer, and the tokens that begin and end a text; often they are one.

    Attributes:
        json: tokenizer.json.
        start, end: as the vocabulary spells them; None if there is none.
    """

    json: bytes
    start: str | None
    end: str | None

    def tokenizer(self) -> Tokenizer:
        """Ready to encode, cutting and padding nothing; raises DatasetError."""
        return parse_tokenizer(self.json, name=TOKENIZER)


def read_words(folder: Path, config: Mapping[str, object]) -> Words | None:
    """The tokenizer in a model's folder, if it is there as `tokenizers` writes it; raises OperatorError.

    Args:
        folder: the model's.
        config: what its config.json says.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        return None
    words = Words(json=path.read_bytes(), start=None, end=None)
    tokenizer = words.tokenizer()
    names = (TOKENIZER_CONFIG, GENERATION_CONFIG)
    sources = [read_json_object(folder / name) for name in names if (folder / name).is_file()]
    sources.append(dict(config))
    return replace(
        words,
        start=_named("bos_token", sources, tokenizer),
        end=_named("eos_token", sources, tokenizer),
    )


def words_files(words: Words | None, *, context: int) -> dict[str, bytes]:
    """The files by which `transformers` generates and finds the tokenizer."""
    files = {
        GENERATION_CONFIG: json_text({**special_ids(words), "max_new_tokens": -(-context // 2)})
    }
    if words is None:
        return files
    named = {"bos_token": words.start, "eos_token": words.end}
    special = {name: token for name, token in named.items() if token is not None}
    settings: dict[str, object] = {
        **special,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return files | {
        TOKENIZER: words.json,
        TOKENIZER_CONFIG: json_text(settings),
        SPECIAL_TOKENS: json_text(dict(special)),
    }


def special_ids(words: Words | None) -> dict[str, int | None]:
    """Numbers of the tokens that begin and end a text, as configurations name them."""
    tokenizer = None if words is None else words.tokenizer()

    def number(token: str | None) -> int | None:
        return None if tokenizer is None or token is None else tokenizer.token_to_id(token)

    start, end = (None, None) if words is None else (words.start, words.end)
    return {"bos_token_id": number(start), "eos_token_id": number(end)}


def _named(name: str, sources: Sequence[Mapping[str, object]], tokenizer: Tokenizer) -> str | None:
    """The first source's token that the vocabulary has: written out, as an object, or by number."""
    for source in sources:
        token = source.get(name) or source.get(f"{name}_id")
        if isinstance(token, list) and token:
            token = token[0]
        if isinstance(token, Mapping):
            token = token.get("content")
        if isinstance(token, int):
            token = tokenizer.id_to_token(token)
        if isinstance(token, str) and tokenizer.token_to_id(token) is not None:
            return token
    return None
