"""A prepared data set on disk: fixed-length samples of tokens, memory-mapped, with a Merkle root over them.

    manifest.json          the `DataSpec` in canonical JSON
    tokenizer.json         the byte-level BPE, as `tokenizers` writes it
    tokens-00000.bin …     samples one after the other, SHARD_SAMPLES a file, little-endian uint16 (uint32 above 65,536 words)
    leaves.bin             32 bytes a sample: the tree's leaf hashes, kept so that proofs need no rehash

A sample is `context + 1` tokens. Samples [0, train_samples) train; the rest is held out and never assigned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.ids import Hash32
from protocol.merkle import MerkleTree, depth_of, leaf_hash
from protocol.spec import DataSpec
from training.errors import DatasetError
from training.roots import tree_root

MANIFEST, TOKENIZER, LEAVES = "manifest.json", "tokenizer.json", "leaves.bin"
SHARD_SAMPLES = 1 << 16
REMEDY = "prepare the data set again, or fetch an intact copy"


def shard_name(number: int) -> str:
    """File name of a shard of tokens."""
    return f"tokens-{number:05d}.bin"


class TokenDataset:
    """Read access to a prepared data set. Open it with `open`, which checks sizes and the root of the cached leaf hashes."""

    def __init__(
        self,
        folder: Path,
        spec: DataSpec,
        leaves: bytes,
        shards: list[NDArray[np.uint8]],
    ) -> None:
        self.folder, self.spec = folder, spec
        self._leaves, self._shards = leaves, shards
        self._sample_bytes = spec.sample_tokens * spec.token_bytes
        self._dtype = "<u2" if spec.token_bytes == 2 else "<u4"

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Raises DatasetError if a file is missing, has the wrong size, or the leaf hashes don't give the root."""
        spec = read_manifest(folder)
        leaves = _read(folder / LEAVES)
        if len(leaves) != 32 * spec.total_samples:
            raise DatasetError(
                f"{folder / LEAVES} has {len(leaves)} bytes, expected {32 * spec.total_samples}",
                REMEDY,
            )
        dataset = cls(folder, spec, leaves, _map_shards(folder, spec))
        if tree_root(dataset.leaf_hashes) != spec.dataset_root:
            raise DatasetError(
                f"the leaf hashes in {folder / LEAVES} don't give the root of its manifest",
                REMEDY,
            )
        return dataset

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

    @property
    def leaf_hashes(self) -> list[Hash32]:
        """Every sample's leaf hash, in order."""
        return [self.leaf_hash(index) for index in range(self.spec.total_samples)]

    def sample_bytes(self, index: int) -> bytes:
        """The leaf's data: the sample's tokens as they are stored."""
        self._check(index)
        shard, place = divmod(index, SHARD_SAMPLES)
        start = place * self._sample_bytes
        return self._shards[shard][start : start + self._sample_bytes].tobytes()

    def sample(self, index: int) -> NDArray[np.int64]:
        """(L+1,) token ids."""
        return np.frombuffer(self.sample_bytes(index), self._dtype).astype(np.int64)

    def samples(self, indices: Iterable[int]) -> NDArray[np.int64]:
        """(N, L+1) token ids, in the order asked for."""
        rows = [self.sample(index) for index in indices]
        return np.stack(rows) if rows else np.zeros((0, self.spec.sample_tokens), np.int64)

    def leaf_hash(self, index: int) -> Hash32:
        """Leaf hash of one sample, from the cache."""
        self._check(index)
        return Hash32(self._leaves[32 * index : 32 * index + 32])

    def proof(self, index: int) -> tuple[Hash32, ...]:
        """Siblings bottom-up that prove `leaf_hash(index)` against `root`."""
        self._check(index)
        return self._tree.proof(index)

    @cached_property
    def _tree(self) -> MerkleTree:
        return MerkleTree(self.leaf_hashes)

    def _check(self, index: int) -> None:
        if not 0 <= index < self.spec.total_samples:
            raise IndexError(f"no sample {index} among {self.spec.total_samples}")


def verify(folder: Path, root: Hash32) -> TokenDataset:
    """Opens a data set and hashes all of it. Raises DatasetError unless it is exactly the one with this root."""
    dataset = TokenDataset.open(folder)
    if dataset.root != root:
        raise DatasetError(
            f"{folder} holds the data set {dataset.root.hex()}, the run wants {root.hex()}",
            "point --data to the run's text, prepared with the run's tokenizer settings",
        )
    for index in range(dataset.total_samples):
        if leaf_hash(dataset.sample_bytes(index)) != dataset.leaf_hash(index):
            raise DatasetError(f"sample {index} in {folder} is damaged", REMEDY)
    tokenizer = hashlib.sha256(_read(folder / TOKENIZER)).digest()
    if tokenizer != dataset.spec.tokenizer_digest:
        raise DatasetError(f"{folder / TOKENIZER} is not the tokenizer of its manifest", REMEDY)
    return dataset


def read_manifest(folder: Path) -> DataSpec:
    """The spec of the data set in `folder`; raises DatasetError."""
    try:
        spec = record.from_json(DataSpec, canonical.loads(_read(folder / MANIFEST)))
    except Rejected as error:
        raise DatasetError(f"{folder / MANIFEST} is damaged ({error})", REMEDY) from error
    if (
        spec.token_bytes not in (2, 4)
        or spec.sample_tokens < 2
        or not 0 < spec.train_samples < spec.total_samples
    ):
        raise DatasetError(f"{folder / MANIFEST} holds impossible values", REMEDY)
    return spec


def _map_shards(folder: Path, spec: DataSpec) -> list[NDArray[np.uint8]]:
    shards: list[NDArray[np.uint8]] = []
    for number, first in enumerate(range(0, spec.total_samples, SHARD_SAMPLES)):
        path = folder / shard_name(number)
        expected = (
            min(SHARD_SAMPLES, spec.total_samples - first) * spec.sample_tokens * spec.token_bytes
        )
        found = path.stat().st_size if path.is_file() else -1
        if found != expected:
            state = "is missing" if found < 0 else f"has {found} bytes, expected {expected}"
            raise DatasetError(f"{path} {state}", REMEDY)
        shards.append(np.memmap(path, np.uint8, mode="r"))
    return shards


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(
            f"can't read {path} ({error.strerror})",
            "prepare the data set first, or check its folder",
        ) from error
