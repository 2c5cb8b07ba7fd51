"""Merkle trees over what lies on disk: memory for one node in a thousand leaves, and a path in a millisecond.

A tree is cut into groups of GROUP neighbouring leaves. The groups' top nodes are kept; what lies below one is hashed again when
a leaf of it is asked for, and compared with the node, so a damaged leaf is never handed out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from protocol.ids import Hash32
from protocol.merkle import MerkleTree, depth_of, leaf_hash
from training.errors import DatasetError
from training.roots import tree_root

GROUP_LEVELS = 10
GROUP = 1 << GROUP_LEVELS

LeafHashes = Callable[[int, int], Sequence[bytes]]
"""The hashes of the leaves from the first number up to, and without, the second."""


def group_height(leaves: int) -> int:
    """Height of the groups' nodes in a tree of so many leaves; a small tree is one group."""
    return min(GROUP_LEVELS, depth_of(leaves))


def group_nodes(hashes: Iterable[bytes], *, leaves: int) -> list[Hash32]:
    """The groups' nodes of a tree, from all its leaf hashes in order; keeps no more than a group of them at once."""
    height, rest = group_height(leaves), iter(hashes)
    return [tree_root(group, depth=height) for group in _groups(rest)]


class GroupedTree:
    """A tree whose leaf hashes are read when needed.

    Args:
        leaves: how many.
        nodes: the groups' nodes, from `group_nodes`.
        read: reads leaf hashes.
        where: what a damaged leaf is reported as.
    """

    def __init__(
        self, leaves: int, nodes: Sequence[bytes], *, read: LeafHashes, where: str
    ) -> None:
        self.leaves = leaves
        self._height = group_height(leaves)
        self._upper = MerkleTree(nodes, height=self._height)
        self._read, self._where = read, where
        self._checked = bytearray(len(nodes))

    @property
    def root(self) -> Hash32:
        """Follows from the nodes alone."""
        return self._upper.root

    def leaf(self, index: int) -> Hash32:
        """Hash of a leaf; raises DatasetError if its group is damaged."""
        self._require(index)
        group = index // GROUP
        if not self._checked[group]:
            self.group(group)
        return Hash32(self._read(index, index + 1)[0])

    def group(self, group: int) -> Sequence[bytes]:
        """Hashes of the leaves of one group; raises DatasetError if they don't give its node."""
        hashes = self._group(group)
        if tree_root(hashes, depth=self._height) != self._upper.leaves[group]:
            raise self._damage(group)
        self._checked[group] = 1
        return hashes

    def proof(self, index: int) -> tuple[Hash32, ...]:
        """Siblings bottom-up that prove the leaf against the root; raises DatasetError if its group is damaged."""
        self._require(index)
        group, place = divmod(index, GROUP)
        tree = MerkleTree(self._group(group), depth=self._height)
        if tree.root != self._upper.leaves[group]:
            raise self._damage(group)
        return (*tree.proof(place), *self._upper.proof(group))

    def _group(self, group: int) -> Sequence[bytes]:
        return self._read(group * GROUP, min((group + 1) * GROUP, self.leaves))

    def _damage(self, group: int) -> DatasetError:
        return DatasetError(
            f"{self._where} is damaged between leaves {group * GROUP} and {min((group + 1) * GROUP, self.leaves)}",
            "prepare the data set again, or fetch an intact copy",
        )

    def _require(self, index: int) -> None:
        if not 0 <= index < self.leaves:
            raise IndexError(f"no leaf {index} among {self.leaves}")


class RecordTree:
    """A file of equal records and the tree over it, `per_leaf` of them in a leaf (fewer in the last)."""

    def __init__(self, path: Path, dtype: np.dtype[np.void], *, per_leaf: int) -> None:
        self.records: np.memmap[tuple[int], np.dtype[np.void]] = np.memmap(path, dtype, mode="r")
        self.per_leaf, self._where = per_leaf, str(path)
        self._leaves = -(-len(self.records) // per_leaf)
        self._tree: GroupedTree | None = None

    @property
    def root(self) -> Hash32:
        """Root over all records; the first call reads them all."""
        return self._grouped().root

    def leaf(self, record: int) -> bytes:
        """Content of the leaf that holds a record."""
        first = record // self.per_leaf * self.per_leaf
        return self.records[first : first + self.per_leaf].tobytes()

    def proof(self, record: int) -> tuple[Hash32, ...]:
        """Siblings of that leaf, bottom-up."""
        return self._grouped().proof(record // self.per_leaf)

    def _grouped(self) -> GroupedTree:
        if self._tree is None:
            hashes = (
                each
                for first in range(0, self._leaves, GROUP)
                for each in self._hashes(first, min(first + GROUP, self._leaves))
            )
            nodes = group_nodes(hashes, leaves=self._leaves)
            self._tree = GroupedTree(self._leaves, nodes, read=self._hashes, where=self._where)
        return self._tree

    def _hashes(self, first: int, last: int) -> list[bytes]:
        return [leaf_hash(self.leaf(leaf * self.per_leaf)) for leaf in range(first, last)]


def _groups(hashes: Iterator[bytes]) -> Iterator[list[bytes]]:
    while group := list(islice(hashes, GROUP)):
        yield group
