"""From text to a data set, the same bytes on every machine.

A byte-level BPE is trained on all documents, which are then encoded, joined by the end-of-text token, cut into samples and
shuffled with a seeded generator; the last ones are held out. A remainder shorter than a sample is dropped. The folder appears
in one step when it is complete, so a killed preparation leaves nothing that looks like a data set.

What fixes the result: the documents in their order, the arguments, and the version of `tokenizers` (pinned by the lock file).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from protocol import canonical, record
from protocol.ids import Hash32
from protocol.merkle import leaf_hash
from protocol.spec import DataSpec
from training.dataset import (
    LEAVES,
    MANIFEST,
    SHARD_SAMPLES,
    TOKENIZER,
    TokenDataset,
    shard_name,
)
from training.errors import DatasetError
from training.roots import tree_root

END_OF_TEXT = "<|endoftext|>"
BYTES = 256  # words that a byte-level vocabulary holds before its first merge
ENCODE_BATCH = 64


def prepare_dataset(  # noqa: PLR0913 - each is one choice of the run's author
    documents: Iterable[str],
    out: Path,
    *,
    vocab_size: int,
    context: int,
    heldout_fraction: float = 0.05,
    seed: int = 0,
    name: str = "text",
) -> DataSpec:
    """Writes the data set to the folder `out`, which must not exist, and returns its spec.

    Raises DatasetError for text that is too short, a vocabulary that is too small, or an `out` that exists.
    """
    _check(out, vocab_size, context, heldout_fraction)
    texts = [document for document in documents if document.strip()]
    tokenizer = train_tokenizer(texts, vocab_size)
    token_bytes = 2 if vocab_size <= 1 << 16 else 4
    stream = _encode(tokenizer, texts, "<u2" if token_bytes == 2 else "<u4")
    samples = _cut(stream, context + 1, seed)
    heldout = max(1, int(len(samples) * heldout_fraction))
    if len(samples) < 2:
        raise DatasetError(
            f"the text gives {len(stream)} tokens, less than two samples of {context + 1}",
            "use more text or a shorter context",
        )
    leaves = [leaf_hash(sample.tobytes()) for sample in samples]
    tokenizer_json = tokenizer.to_str().encode()
    spec = DataSpec(
        name=name,
        tokenizer_digest=Hash32(hashlib.sha256(tokenizer_json).digest()),
        dataset_root=tree_root(leaves),
        train_samples=len(samples) - heldout,
        total_samples=len(samples),
        sample_tokens=context + 1,
        token_bytes=token_bytes,
    )
    _write(out, spec, tokenizer_json, samples, leaves)
    return spec


def train_tokenizer(documents: Sequence[str], vocab_size: int) -> Tokenizer:
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


def _encode(tokenizer: Tokenizer, documents: Sequence[str], dtype: str) -> NDArray[np.generic]:
    """The token stream: documents in order, an end-of-text token after each."""
    end = np.array([tokenizer.token_to_id(END_OF_TEXT)], dtype)
    parts: list[NDArray[np.generic]] = []
    for start in range(0, len(documents), ENCODE_BATCH):
        for encoding in tokenizer.encode_batch_fast(documents[start : start + ENCODE_BATCH]):
            parts += [np.array(encoding.ids, dtype), end]
    return np.concatenate(parts) if parts else np.zeros(0, dtype)


def _cut(stream: NDArray[np.generic], sample_tokens: int, seed: int) -> NDArray[np.generic]:
    """(N, L+1) samples in shuffled order."""
    total = len(stream) // sample_tokens
    samples = stream[: total * sample_tokens].reshape(total, sample_tokens)
    return samples[_permutation(total, seed)]


def _permutation(size: int, seed: int) -> list[int]:
    """Sorts by sha256(seed, i): simple, and the same wherever sha-256 is."""
    prefix = b"syntience.shuffle.v1" + seed.to_bytes(8, "little")
    return sorted(
        range(size),
        key=lambda i: hashlib.sha256(prefix + i.to_bytes(8, "little")).digest(),
    )


def _write(
    out: Path,
    spec: DataSpec,
    tokenizer_json: bytes,
    samples: NDArray[np.generic],
    leaves: Sequence[Hash32],
) -> None:
    partial: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        for file_name, content in _files(spec, tokenizer_json, samples, leaves):
            with (partial / file_name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        partial.chmod(0o755)
        partial.rename(out)
    except OSError as error:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)
        raise DatasetError(
            f"can't write {out} ({error.strerror})",
            "check that the disk has room and the folder is free",
        ) from error


def _files(
    spec: DataSpec,
    tokenizer_json: bytes,
    samples: NDArray[np.generic],
    leaves: Sequence[Hash32],
) -> Iterator[tuple[str, bytes]]:
    for number, first in enumerate(range(0, len(samples), SHARD_SAMPLES)):
        yield shard_name(number), samples[first : first + SHARD_SAMPLES].tobytes()
    yield LEAVES, b"".join(leaves)
    yield TOKENIZER, tokenizer_json
    yield MANIFEST, canonical.dumps(record.to_json(spec))


def _check(out: Path, vocab_size: int, context: int, heldout_fraction: float) -> None:
    if out.exists():
        raise DatasetError(f"{out} exists", "choose another folder or remove this one")
    if vocab_size <= BYTES:
        raise DatasetError(
            f"a vocabulary of {vocab_size} is too small",
            f"use more than {BYTES}: one word per byte and the end of text",
        )
    if context < 1 or not 0 < heldout_fraction < 1:
        raise DatasetError(
            f"context {context} or held-out fraction {heldout_fraction} is out of range",
            "use a context of at least 1 and a fraction in (0, 1)",
        )
