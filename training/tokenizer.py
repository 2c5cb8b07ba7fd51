"""Tokenizers: trained on the text, or any `tokenizer.json`; and what one of them makes of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from training.dataset import TOKENIZER, TokenDataset
from training.errors import DatasetError

END_OF_TEXT = "<|endoftext|>"
BYTES = 256
"""Words that a byte-level vocabulary holds before its first merge."""
END_TOKENS = (
    END_OF_TEXT,
    "<|end_of_text|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "</s>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
)
"""What the end of text is called, the likeliest name first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """tokens: of some documents, one after the other, each ended · lengths (D,): tokens of each, its end included."""

    tokens: NDArray[np.generic]
    lengths: NDArray[np.int64]


def train_tokenizer(documents: Iterable[str], vocab_size: int) -> Tokenizer:
    """Byte-level BPE; the end-of-text token has id 0. Every text can be encoded and comes back unchanged."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer=trainer)
    return tokenizer


def load_tokenizer(dataset: TokenDataset) -> Tokenizer:
    """The data set's own tokenizer."""
    return Tokenizer.from_file(str(dataset.folder / TOKENIZER))


def read_tokenizer(path: Path) -> Tokenizer:
    """A `tokenizer.json` that neither cuts nor pads; raises DatasetError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DatasetError(f"can't read {path} ({error.strerror})", "check the path") from error
    return parse_tokenizer(content, name=str(path))


def parse_tokenizer(content: bytes, *, name: str) -> Tokenizer:
    """What a `tokenizer.json` of this name says, neither cutting nor padding; raises DatasetError."""
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:  # `tokenizers` raises nothing narrower
        raise DatasetError(
            f"{name} is no tokenizer ({error})",
            "give a tokenizer.json as the library `tokenizers` writes it",
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """One more than the largest token id; some vocabularies have gaps."""
    return int(max(tokenizer.get_vocab().values(), default=-1)) + 1


def end_token_of(tokenizer: Tokenizer, name: str | None = None) -> int:
    """Id of the token that ends a document: the one with this name, or the first of END_TOKENS that there is.

    Raises:
        DatasetError: there is none.
    """
    for candidate in (name,) if name is not None else END_TOKENS:
        token = tokenizer.token_to_id(candidate)
        if token is not None:
            return int(token)
    raise DatasetError(
        f"the tokenizer has no token {name!r}"
        if name
        else "the tokenizer has no known end of text",
        "name the token that ends a document with --end-token",
    )


def encode_documents(
    tokenizer: Tokenizer, texts: Sequence[str], *, end_token: int, dtype: str
) -> Encoded:
    """Each document by itself, so that how they are grouped plays no part; raises DatasetError."""
    end, parts = np.array([end_token], dtype), []
    for ids in _token_ids(tokenizer, texts):
        parts += [np.array(ids, dtype), end]
    lengths = np.array([len(part) + 1 for part in parts[::2]], np.int64)
    tokens = np.concatenate(parts) if parts else np.zeros(0, dtype)
    return Encoded(tokens=tokens, lengths=lengths)


def _token_ids(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[int]]:
    # One at a time: given more, the library would take all cores, whatever the number of workers.
    for text in texts:
        try:
            yield tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        except Exception as error:  # `tokenizers` raises nothing narrower
            raise DatasetError(
                f"the tokenizer can't encode a document that begins {text[:40]!r} ({error})",
                "use a tokenizer that knows every character, such as a byte-level one",
            ) from error
