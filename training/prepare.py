"""From text to a data set, the same bytes on every machine.

The documents are read in a stream, twice: once to train a byte-level BPE (unless a tokenizer is given), once to encode them. Joined
by the end-of-text token they are cut into samples and shuffled; the last ones are held out. A remainder shorter than a sample
is dropped. Documents without visible text are left out.

All work is done in a folder `.NAME.partial` beside the result (`workplace`), which the same call takes up again after a kill at
any moment; the result gets its name in one step when it is complete.

What fixes the result: the documents in their order, the arguments, and the version of `tokenizers` (pinned by the lock file).
Neither the number of workers nor an interruption shows in it. An interrupted preparation goes on only with the same documents:
each is compared by its digest with the one that was encoded.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from protocol import canonical, record
from protocol.canonical import Json
from protocol.ids import Hash32
from protocol.spec import DataSpec
from training.dataset import DOCUMENTS, FORMAT, MANIFEST, TOKENIZER, read_file, read_manifest
from training.encoders import Encoding, encode_in_order
from training.errors import DatasetError
from training.samples import Cut, Text, write_samples
from training.tokenizer import (
    BYTES,
    TRAIN_BYTES,
    end_token_of,
    read_tokenizer,
    train_tokenizer,
    vocabulary_size,
)
from training.watch import Watch, unwatched
from training.workplace import TRAINED, TokenStream, Workplace, sync_folder

BATCH_BYTES = 4 << 20
BATCH_DOCUMENTS = 4096
"""A batch is encoded by one process and put on disk as a whole."""
FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTokenizer:
    """A `tokenizer.json`, and what its end of text is called (found by itself if it has a usual name)."""

    path: Path
    end_token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What does not show in the result: processes that encode, text in a batch of theirs, and who watches."""

    workers: int = 1
    batch_bytes: int = BATCH_BYTES
    watch: Watch = unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """What a tokenizer was trained on: so many documents, with this digest of their digests."""

    documents: int
    digest: Hash32


def prepare_dataset(  # noqa: PLR0913 - each is one choice of the run's author
    documents: Iterable[str],
    out: Path,
    *,
    vocab_size: int | None = None,
    tokenizer: GivenTokenizer | None = None,
    context: int,
    heldout_fraction: float = 0.05,
    seed: int = 0,
    name: str = "text",
    pace: Pace | None = None,
) -> DataSpec:
    """Writes the data set to the folder `out`, which must not exist, and returns its spec.

    Args:
        documents: read twice, so no iterator.
        out: the folder to make.
        vocab_size: of the tokenizer to train; or else
        tokenizer: one that there is.
        context: tokens in a sample, less one.
        heldout_fraction: of the samples.
        seed: of their order.
        name: of the data set.
        pace: how fast.

    Raises:
        DatasetError: too little text, a vocabulary that is too small, an `out` that exists, no room, or an interrupted
            preparation that can't be gone on with.
        TypeError: documents that can be read only once.
    """
    if iter(documents) is documents:
        raise TypeError("the documents are read twice: give a list, not an iterator")
    if (vocab_size is None) == (tokenizer is None):
        raise TypeError("give either vocab_size or tokenizer")
    partial = out.with_name(f".{out.name}.partial")
    _check(out, partial, context, heldout_fraction)
    words = _given_words(tokenizer) if tokenizer is not None else _trained_words(vocab_size or 0)
    cut = Cut(name=name, context=context, heldout_fraction=heldout_fraction, seed=seed)
    pace = pace or Pace()
    try:
        with Workplace(partial, words.request) as workplace:
            training = _settle_tokenizer(workplace, words, documents, pace.watch)
            encoding = _encoding(workplace, words)
            stream = TokenStream(workplace, encoding.dtype)
            fresh = _fresh(documents, stream, training, partial)
            _encode(_batches(fresh, pace.batch_bytes), stream, encoding, pace)
            if stream.done.tokens < 2 * (context + 1):
                shutil.rmtree(partial)
                raise DatasetError(
                    f"the text gives {stream.done.tokens} tokens, less than two samples of {context + 1}",
                    "use more text or a shorter context",
                )
            spec = _finish(workplace, stream, encoding, cut, pace.watch, out)
    except OSError as error:
        raise DatasetError(
            f"can't write {out} ({error.strerror or error})",
            "check that the disk has room and the folder is free, and run the same command again",
        ) from error
    return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """Where the tokens come from: a tokenizer to train, or one that was given (`content`).

    `request`: what an interrupted preparation must have in common with this one besides the text.
    """

    size: int
    end_token: str | None
    content: bytes | None
    request: Json


def _trained_words(size: int) -> _Words:
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
    return _Words(size=size, end_token=None, content=None, request=request)


def _given_words(given: GivenTokenizer) -> _Words:
    content, tokenizer = read_file(given.path), read_tokenizer(given.path)
    request: Json = {
        "end_token": end_token_of(tokenizer, given.end_token),
        "format": FORMAT,
        "tokenizer": hashlib.sha256(content).hexdigest(),
        "tokenizers": metadata.version("tokenizers"),
    }
    return _Words(
        size=vocabulary_size(tokenizer),
        end_token=given.end_token,
        content=content,
        request=request,
    )


def _settle_tokenizer(
    workplace: Workplace, words: _Words, documents: Iterable[str], watch: Watch
) -> _Training:
    """Puts the tokenizer into the workplace, unless it is there."""
    found = workplace.read(TRAINED)
    if found is not None:
        return record.from_json(_Training, canonical.loads(found))
    digest, content, head = hashlib.sha256(), words.content, 0
    if content is None:

        def beginning() -> Iterator[str]:
            nonlocal head
            for head, (text, document) in enumerate(_beginning(documents), start=1):
                digest.update(hashlib.sha256(document).digest())
                if head % BATCH_DOCUMENTS == 0:
                    watch("train the tokenizer", head, None)
                yield text

        content = train_tokenizer(beginning(), words.size).to_str().encode()
    training = _Training(documents=head, digest=Hash32(digest.digest()))
    workplace.write(TOKENIZER, content)
    workplace.write(TRAINED, canonical.dumps(record.to_json(training)))
    return training


def _encoding(workplace: Workplace, words: _Words) -> Encoding:
    file = workplace.folder / TOKENIZER
    return Encoding(
        tokenizer_file=file,
        end_token=end_token_of(read_tokenizer(file), words.end_token),
        dtype="<u2" if words.size <= 1 << 16 else "<u4",
    )


def _visible(documents: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The documents that count, and their UTF-8 bytes."""
    return ((text, text.encode()) for text in documents if text.strip())


def _beginning(documents: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The first TRAIN_BYTES of the documents."""
    size = 0
    for text, document in _visible(documents):
        yield text, document
        size += len(document)
        if size >= TRAIN_BYTES:
            return


def _fresh(
    documents: Iterable[str], stream: TokenStream, training: _Training, partial: Path
) -> Iterator[bytes]:
    """The documents that are not in the stream yet; raises DatasetError if those that are, or were trained on, have changed."""
    known, trained, number = stream.digests(), hashlib.sha256(), 0
    for number, (_, document) in enumerate(_visible(documents), start=1):
        if number <= max(len(known), training.documents):
            digest = hashlib.sha256(document).digest()
            if number <= len(known) and digest != bytes(known[number - 1]):
                raise _changed(number, partial)
            if number <= training.documents:
                trained.update(digest)
            if number == training.documents and trained.digest() != training.digest:
                raise _changed(number, partial)
        if number > len(known):
            yield document
    if number < max(len(known), training.documents):
        raise _changed(number + 1, partial)


def _batches(documents: Iterable[bytes], most_bytes: int) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document)
        if size >= most_bytes or len(batch) == BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _encode(
    batches: Iterable[list[bytes]], stream: TokenStream, encoding: Encoding, pace: Pace
) -> None:
    pace.watch("encode", stream.done.tokens, None)
    with closing(encode_in_order(batches, encoding, workers=pace.workers)) as results:
        for batch, encoded in results:
            stream.append(encoded, [hashlib.sha256(document).digest() for document in batch])
            pace.watch("encode", stream.done.tokens, None)


def _finish(
    workplace: Workplace,
    stream: TokenStream,
    encoding: Encoding,
    cut: Cut,
    watch: Watch,
    out: Path,
) -> DataSpec:
    """Cuts the stream, gives the result its name and removes the workplace."""
    facts: dict[str, Json] = {
        "context": cut.context,
        "documents": stream.done.documents,
        "heldout": str(cut.heldout_fraction),
        "name": cut.name,
        "seed": cut.seed,
        "tokens": stream.done.tokens,
    }
    folder = workplace.folder / f"set-{hashlib.sha256(canonical.dumps(facts)).hexdigest()[:16]}"
    for other in set(workplace.folder.glob("set-*")) - {folder}:
        shutil.rmtree(other)
    if not (folder / MANIFEST).exists():
        text = Text(
            tokens=stream.tokens(),
            starts=stream.starts(),
            documents_file=workplace.folder / DOCUMENTS,
            tokenizer=read_file(encoding.tokenizer_file),
            end_token=encoding.end_token,
        )
        write_samples(text, cut, folder, watch=watch)
    spec = read_manifest(folder)
    workplace.write(FINISHED, b"")
    folder.rename(out)
    sync_folder(out.parent)
    shutil.rmtree(workplace.folder)
    return spec


def _changed(number: int, partial: Path) -> DatasetError:
    return DatasetError(
        f"the text has changed since its preparation began (up to document {number})",
        f"remove {partial} to start again, or bring the old text back",
    )


def _check(out: Path, partial: Path, context: int, heldout_fraction: float) -> None:
    if out.exists():
        if (partial / FINISHED).exists():
            shutil.rmtree(partial, ignore_errors=True)
        raise DatasetError(f"{out} exists", "choose another folder or remove this one")
    if context < 1 or not 0 < heldout_fraction < 1:
        raise DatasetError(
            f"context {context} or held-out fraction {heldout_fraction} is out of range",
            "use a context of at least 1 and a fraction in (0, 1)",
        )
