"""From the token stream to the files of a data set, a shard at a time.

Where a sample comes from is computed from its place (`shuffle`), so memory holds a thousand samples and the tree's nodes. A shard that is
on disk is not cut again after an interruption; the manifest is written last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.ids import Hash32
from protocol.merkle import MerkleTree
from protocol.spec import DataSpec
from training.dataset import (
    DOCUMENTS,
    LEAVES,
    MANIFEST,
    NODES,
    SHARD_SAMPLES,
    SOURCES,
    TOKENIZER,
    shard_name,
)
from training.roots import leaf_hashes
from training.shuffle import Shuffle
from training.sources import DOCUMENT, DOCUMENTS_PER_LEAF, SOURCE, SOURCES_PER_LEAF
from training.trees import GROUP, RecordTree, group_height, group_nodes
from training.watch import Watch
from training.workplace import write_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What there is to cut.

    Attributes:
        tokens: (T,) the stream.
        starts: (D,) the place of each document's first token.
        documents_file: the records of the documents.
        tokenizer: content of the tokenizer's file.
        end_token: ends each document.
    """

    tokens: NDArray[np.generic]
    starts: NDArray[np.uint64]
    documents_file: Path
    tokenizer: bytes
    end_token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How: into samples of `context + 1` tokens, shuffled by `seed`, the last `heldout_fraction` of them held out."""

    name: str
    context: int
    heldout_fraction: float
    seed: int


def write_samples(text: Text, cut: Cut, folder: Path, *, watch: Watch) -> DataSpec:
    """Fills the folder, or what is missing of it; returns the data set's spec. There are at least two samples."""
    length = cut.context + 1
    total = len(text.tokens) // length
    folder.mkdir(exist_ok=True)
    shutil.copyfile(text.documents_file, folder / DOCUMENTS)
    with (folder / LEAVES).open("wb") as leaves, (folder / SOURCES).open("wb") as sources:
        hashes = _write_shards(text, cut, folder, leaves=leaves, sources=sources, watch=watch)
        nodes = group_nodes(hashes, leaves=total)
    (folder / NODES).write_bytes(b"".join(nodes))
    (folder / TOKENIZER).write_bytes(text.tokenizer)
    for name in (DOCUMENTS, LEAVES, SOURCES, NODES, TOKENIZER):
        _sync(folder / name)
    spec = DataSpec(
        name=cut.name,
        tokenizer_digest=Hash32(hashlib.sha256(text.tokenizer).digest()),
        dataset_root=MerkleTree(nodes, height=group_height(total)).root,
        sources_root=RecordTree(folder / SOURCES, SOURCE, per_leaf=SOURCES_PER_LEAF).root,
        documents_root=RecordTree(folder / DOCUMENTS, DOCUMENT, per_leaf=DOCUMENTS_PER_LEAF).root,
        documents=len(text.starts),
        end_token=text.end_token,
        train_samples=total - max(1, int(total * cut.heldout_fraction)),
        total_samples=total,
        sample_tokens=length,
        token_bytes=text.tokens.itemsize,
    )
    write_whole(folder / MANIFEST, (canonical.dumps(record.to_json(spec)),))
    return spec


def _write_shards(
    text: Text, cut: Cut, folder: Path, *, leaves: BinaryIO, sources: BinaryIO, watch: Watch
) -> Iterator[bytes]:
    """Yields every sample's leaf hash in order, and writes shards, leaf hashes and sources."""
    length = cut.context + 1
    total = len(text.tokens) // length
    pieces, shuffle = text.tokens[: total * length].reshape(total, length), Shuffle(total, cut.seed)
    size = length * text.tokens.itemsize
    for number, first in enumerate(range(0, total, SHARD_SAMPLES)):
        watch("write", first, total)
        last = min(first + SHARD_SAMPLES, total)
        chosen = shuffle(np.arange(first, last, dtype=np.uint64))
        path = folder / shard_name(number)
        if not path.exists():
            parts = (chosen[i : i + GROUP] for i in range(0, len(chosen), GROUP))
            write_whole(path, (pieces[part].tobytes() for part in parts))
        sources.write(_sources_of(chosen * np.uint64(length), text.starts).tobytes())
        with path.open("rb") as shard:
            while block := shard.read(GROUP * size):
                hashes = leaf_hashes(block[i : i + size] for i in range(0, len(block), size))
                leaves.write(b"".join(hashes))
                yield from hashes
    watch("write", total, total)


def _sources_of(places: NDArray[np.uint64], starts: NDArray[np.uint64]) -> NDArray[np.void]:
    """(n,) SOURCE records of what begins at these places of the stream."""
    sources = np.empty(len(places), SOURCE)
    documents = np.searchsorted(starts, places, side="right") - 1
    sources["document"] = documents
    sources["offset"] = places - starts[documents]
    return sources


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
