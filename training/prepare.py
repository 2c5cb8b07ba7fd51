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
from pathlib import Path

from protocol import canonical
from protocol.canonical import Json
from protocol.spec import DataSpec
from training.dataset import DOCUMENTS, MANIFEST, read_file, read_manifest
from training.encoders import Encoding, encode_in_order
from training.errors import DatasetError
from training.samples import Cut, Text, write_samples
from training.vocabulary import (
    GivenTokenizer,
    Training,
    encoding_in,
    given_vocabulary,
    settle_tokenizer,
    trained_vocabulary,
    visible,
)
from training.watch import Watch, unwatched
from training.workplace import TokenStream, Workplace, sync_folder

BATCH_BYTES = 4 << 20
BATCH_DOCUMENTS = 4096
"""A batch is encoded by one process and put on disk as a whole."""
FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What does not show in the result: processes that encode, text in a batch of theirs, and who watches."""

    workers: int = 1
    batch_bytes: int = BATCH_BYTES
    watch: Watch = unwatched


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
    words = (
        given_vocabulary(tokenizer)
        if tokenizer is not None
        else trained_vocabulary(vocab_size or 0)
    )
    cut = Cut(name=name, context=context, heldout_fraction=heldout_fraction, seed=seed)
    pace = pace or Pace()
    try:
        with Workplace(partial, words.request) as workplace:
            training = settle_tokenizer(workplace, words, documents, pace.watch)
            encoding = encoding_in(workplace, words)
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


def _fresh(
    documents: Iterable[str], stream: TokenStream, training: Training, partial: Path
) -> Iterator[bytes]:
    """The documents that are not in the stream yet; raises DatasetError if those that are, or were trained on, have changed."""
    known, trained, number = stream.digests(), hashlib.sha256(), 0
    for number, (_, document) in enumerate(visible(documents), start=1):
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
    _clear(workplace.folder)
    return spec


def _clear(partial: Path) -> None:
    """Removes the workplace of a finished preparation, the mark that it is finished last."""
    for path in partial.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != FINISHED:
            path.unlink()
    shutil.rmtree(partial)


def _changed(number: int, partial: Path) -> DatasetError:
    return DatasetError(
        f"the text has changed since its preparation began (up to document {number})",
        f"remove {partial} to start again, or bring the old text back",
    )


def _check(out: Path, partial: Path, context: int, heldout_fraction: float) -> None:
    if out.exists():
        if (partial / FINISHED).exists():
            _clear(partial)
        raise DatasetError(f"{out} exists", "choose another folder or remove this one")
    if context < 1 or not 0 < heldout_fraction < 1:
        raise DatasetError(
            f"context {context} or held-out fraction {heldout_fraction} is out of range",
            "use a context of at least 1 and a fraction in (0, 1)",
        )
