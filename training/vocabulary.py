"""The vocabulary of a data set under preparation: trained on the beginning of its text, or given; settled once.

How many documents a tokenizer was trained on is kept with a digest of them, so that a preparation never goes on with text that would
have given another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from protocol import canonical, record
from protocol.canonical import Json
from protocol.ids import Hash32
from training.dataset import FORMAT, TOKENIZER, read_file
from training.encoders import Encoding
from training.errors import DatasetError
from training.tokenizer import (
    BYTES,
    end_token_of,
    read_tokenizer,
    train_tokenizer,
    vocabulary_size,
)
from training.watch import Watch
from training.workplace import TRAINED, Workplace

TRAIN_BYTES = 128 << 20
"""Of text that a tokenizer is trained on at most; the rest of a larger corpus is only encoded."""
_WATCH_EVERY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTokenizer:
    """A `tokenizer.json`, and what its end of text is called (found by itself if it has a usual name)."""

    path: Path
    end_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What a tokenizer was trained on: so many documents, with this digest of their digests."""

    documents: int
    digest: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Where the tokens come from: a tokenizer to train, or one that was given (`content`).

    `request`: what an interrupted preparation must have in common with this one besides the text.
    """

    size: int
    end_token: str | None
    content: bytes | None
    request: Json


def trained_vocabulary(size: int) -> Vocabulary:
    """To be trained; raises DatasetError for one that is too small."""
    if size <= BYTES:
        raise DatasetError(
            f"a vocabulary of {size} is too small",
            f"use more than {BYTES}: one word per byte and the end of text",
        )
    request: Json = {
        "format": FORMAT,
        "tokenizers": metadata.version("tokenizers"),
        "vocabulary": size,
    }
    return Vocabulary(size=size, end_token=None, content=None, request=request)


def given_vocabulary(given: GivenTokenizer) -> Vocabulary:
    """Read from its file; raises DatasetError if that is no tokenizer or has no end of text."""
    content, tokenizer = read_file(given.path), read_tokenizer(given.path)
    request: Json = {
        "end_token": end_token_of(tokenizer, given.end_token),
        "format": FORMAT,
        "tokenizer": hashlib.sha256(content).hexdigest(),
        "tokenizers": metadata.version("tokenizers"),
    }
    return Vocabulary(
        size=vocabulary_size(tokenizer),
        end_token=given.end_token,
        content=content,
        request=request,
    )


def settle_tokenizer(
    workplace: Workplace, words: Vocabulary, documents: Iterable[str], watch: Watch
) -> Training:
    """Puts the tokenizer into the workplace, unless it is there."""
    found = workplace.read(TRAINED)
    if found is not None:
        return record.from_json(Training, canonical.loads(found))
    digest, content, head = hashlib.sha256(), words.content, 0
    if content is None:

        def beginning() -> Iterator[str]:
            nonlocal head
            for head, (text, document) in enumerate(_beginning(documents), start=1):
                digest.update(hashlib.sha256(document).digest())
                if head % _WATCH_EVERY == 0:
                    watch("train the tokenizer", head, None)
                yield text

        content = train_tokenizer(beginning(), words.size).to_str().encode()
    training = Training(documents=head, digest=Hash32(digest.digest()))
    workplace.write(TOKENIZER, content)
    workplace.write(TRAINED, canonical.dumps(record.to_json(training)))
    return training


def encoding_in(workplace: Workplace, words: Vocabulary) -> Encoding:
    """How documents become tokens with the tokenizer that was settled on."""
    file = workplace.folder / TOKENIZER
    return Encoding(
        tokenizer_file=file,
        end_token=end_token_of(read_tokenizer(file), words.end_token),
        dtype="<u2" if words.size <= 1 << 16 else "<u4",
    )


def visible(documents: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The documents that count, and their UTF-8 bytes."""
    return ((text, text.encode()) for text in documents if text.strip())


def _beginning(documents: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The first TRAIN_BYTES of the documents."""
    size = 0
    for text, document in visible(documents):
        yield text, document
        size += len(document)
        if size >= TRAIN_BYTES:
            return
