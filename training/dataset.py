"""A prepared data set on disk: fixed-length samples of tokens, memory-mapped, with a Merkle root over them.

    manifest.json          the `DataSpec` in canonical JSON
    tokenizer.json         the tokenizer, as `tokenizers` reads it
    tokens-00000.bin …     samples one after the other, SHARD_SAMPLES a file, little-endian uint16 (uint32 above 65,536 words)
    leaves.bin             32 bytes a sample: the tree's leaf hashes, kept so that proofs need no rehash
    nodes.bin              32 bytes for 1,024 samples: the tree's nodes above as many leaves (`trees`)
    sources.bin            16 bytes a sample: the document in which it begins, and the token of it (`sources`)
    documents.bin          40 bytes a document: sha-256 of its text, and its first token's place in the stream

A sample is `context + 1` tokens. Samples [0, train_samples) train; the rest is held out and never assigned.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.ids import Hash32
from protocol.merkle import depth_of
from protocol.spec import DataSpec
from training.errors import DatasetError
from training.sources import DOCUMENT, DOCUMENTS_PER_LEAF, SOURCE, SOURCES_PER_LEAF
from training.trees import GROUP, GroupedTree, RecordTree

MANIFEST, TOKENIZER, LEAVES, NODES = "manifest.json", "tokenizer.json", "leaves.bin", "nodes.bin"
SOURCES, DOCUMENTS = "sources.bin", "documents.bin"
FORMAT = 2
"""Moves with anything that gives the same text another root or other files."""
SHARD_SAMPLES = 1 << 16
REMEDY = "prepare the data set again, or fetch an intact copy"
_OPEN_SHARDS = 64
"""Each holds a file descriptor."""


def shard_name(number: int) -> str:
    """File name of a shard of tokens."""
    return f"tokens-{number:05d}.bin"


def file_sizes(spec: DataSpec) -> dict[str, int]:
    """Every file of a data set whose size follows from its spec, and that size in bytes."""
    total = spec.total_samples
    shards = {
        shard_name(number): min(SHARD_SAMPLES, total - first)
        * spec.sample_tokens
        * spec.token_bytes
        for number, first in enumerate(range(0, total, SHARD_SAMPLES))
    }
    return shards | {
        LEAVES: 32 * total,
        NODES: 32 * -(-total // GROUP),
        SOURCES: SOURCE.itemsize * total,
        DOCUMENTS: DOCUMENT.itemsize * spec.documents,
    }


class TokenDataset:
    """Read access to a prepared data set, in memory that does not grow with the samples but for 32 bytes in a thousand.

    Open it with `open`, which checks the files' sizes and the root of the tree's nodes. A leaf hash is checked against the
    nodes when it is first asked for; `verification.verify` checks everything.
    """

    def __init__(self, folder: Path, spec: DataSpec, tree: GroupedTree) -> None:
        self.folder, self.spec, self._tree = folder, spec, tree
        self._sample_bytes = spec.sample_tokens * spec.token_bytes
        self._dtype = "<u2" if spec.token_bytes == 2 else "<u4"
        self._shard = lru_cache(maxsize=_OPEN_SHARDS)(self._map_shard)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Raises DatasetError if a file is missing, has the wrong size, or the tree's nodes don't give the root."""
        spec = read_manifest(folder)
        for name, size in file_sizes(spec).items():
            _require_size(folder / name, size)
        leaves = np.memmap(folder / LEAVES, np.dtype("V32"), mode="r")
        nodes = read_file(folder / NODES)
        tree = GroupedTree(
            spec.total_samples,
            [nodes[i : i + 32] for i in range(0, len(nodes), 32)],
            read=lambda first, last: leaves[first:last].tolist(),
            where=str(folder / LEAVES),
        )
        if tree.root != spec.dataset_root:
            raise DatasetError(
                f"the hashes in {folder / NODES} don't give the root of its manifest", REMEDY
            )
        return cls(folder, spec, tree)

    @property
    def root(self) -> Hash32:
        """Root of the tree over all samples."""
        return self.spec.dataset_root

    @property
    def train_samples(self) -> int:
        """How many samples may be assigned; they come first."""
        return self.spec.train_samples

    @property
    def total_samples(self) -> int:
        """Training and held-out samples together."""
        return self.spec.total_samples

    @property
    def depth(self) -> int:
        """Depth of the tree, the length of every proof."""
        return depth_of(self.spec.total_samples)

    def sample_bytes(self, index: int) -> bytes:
        """The leaf's data: the sample's tokens as they are stored."""
        self._check(index)
        return self._bytes(index, index + 1)

    def blocks(self) -> Iterator[tuple[int, bytes, Sequence[bytes]]]:
        """All samples in order, GROUP at a time: the first one's number, their bytes, their leaf hashes from the file.

        Raises DatasetError where the hashes are damaged.
        """
        for first in range(0, self.total_samples, GROUP):
            last = min(first + GROUP, self.total_samples)
            yield first, self._bytes(first, last), self._tree.group(first // GROUP)

    def sample(self, index: int) -> NDArray[np.int64]:
        """(L+1,) token ids."""
        return np.frombuffer(self.sample_bytes(index), self._dtype).astype(np.int64)

    def samples(self, indices: Iterable[int]) -> NDArray[np.int64]:
        """(N, L+1) token ids, in the order asked for."""
        rows = [self.sample(index) for index in indices]
        return np.stack(rows) if rows else np.zeros((0, self.spec.sample_tokens), np.int64)

    def leaf_hash(self, index: int) -> Hash32:
        """Leaf hash of one sample, from the file; raises DatasetError where that is damaged."""
        self._check(index)
        return self._tree.leaf(index)

    def proof(self, index: int) -> tuple[Hash32, ...]:
        """Siblings bottom-up that prove `leaf_hash(index)` against `root`."""
        self._check(index)
        return self._tree.proof(index)

    @cached_property
    def sources(self) -> RecordTree:
        """A `SOURCE` record for each sample."""
        return RecordTree(self.folder / SOURCES, SOURCE, per_leaf=SOURCES_PER_LEAF)

    @cached_property
    def documents(self) -> RecordTree:
        """A `DOCUMENT` record for each document."""
        return RecordTree(self.folder / DOCUMENTS, DOCUMENT, per_leaf=DOCUMENTS_PER_LEAF)

    def _bytes(self, first: int, last: int) -> bytes:
        """Samples [first, last), a shard after the other."""
        parts, size = [], self._sample_bytes
        while first < last:
            shard, place = divmod(first, SHARD_SAMPLES)
            count = min(last - first, SHARD_SAMPLES - place)
            parts.append(bytes(self._shard(shard)[place * size : (place + count) * size]))
            first += count
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _map_shard(self, number: int) -> memoryview:
        return np.memmap(self.folder / shard_name(number), np.uint8, mode="r").data

    def _check(self, index: int) -> None:
        if not 0 <= index < self.spec.total_samples:
            raise IndexError(f"no sample {index} among {self.spec.total_samples}")


def read_manifest(folder: Path) -> DataSpec:
    """The spec of the data set in `folder`; raises DatasetError."""
    return parse_manifest(folder / MANIFEST)


def parse_manifest(path: Path) -> DataSpec:
    """The spec in a manifest file; raises DatasetError."""
    try:
        spec = record.from_json(DataSpec, canonical.loads(read_file(path)))
    except Rejected as error:
        raise DatasetError(f"{path} is damaged ({error})", REMEDY) from error
    if (
        spec.token_bytes not in (2, 4)
        or spec.sample_tokens < 2
        or spec.documents < 1
        or not 0 < spec.train_samples < spec.total_samples
    ):
        raise DatasetError(f"{path} holds impossible values", REMEDY)
    return spec


def read_file(path: Path) -> bytes:
    """A small file's content; raises DatasetError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(
            f"can't read {path} ({error.strerror})",
            "prepare the data set first, or check its folder",
        ) from error


def _require_size(path: Path, expected: int) -> None:
    found = path.stat().st_size if path.is_file() else -1
    if found != expected:
        state = "is missing" if found < 0 else f"has {found} bytes, expected {expected}"
        raise DatasetError(f"{path} {state}", REMEDY)
