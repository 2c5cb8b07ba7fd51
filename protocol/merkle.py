"""Binary sha-256 Merkle trees with separate prefixes for leaves and inner nodes.

leaf = sha256(0x00 || data), node = sha256(0x01 || left || right). A tree is padded to the next power
of two with absent leaves whose hash is 32 zero bytes, so its depth follows from the number of
leaves alone and a proof has exactly that many siblings. An inner node can't pass as a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.hashing import sha256
from protocol.ids import ZERO32, Hash32

MOST_DEPTH = 64
"""The contracts follow no longer path."""


def leaf_hash(data: bytes) -> Hash32:
    """Hash of a leaf's content."""
    return Hash32(sha256(b"\0" + data))


def node_hash(left: bytes, right: bytes) -> Hash32:
    """Hash of an inner node."""
    return Hash32(sha256(b"\1" + left + right))


def depth_of(leaves: int) -> int:
    """Depth of a tree with so many leaves: ceil(log2(leaves)), 0 for one leaf."""
    if leaves < 1:
        raise ValueError("a tree has at least one leaf")
    return (leaves - 1).bit_length()


def absent_node(height: int) -> Hash32:
    """The node so many levels above the leaves with only absent leaves below it."""
    node = ZERO32
    for _ in range(height):
        node = node_hash(node, node)
    return node


class MerkleTree:
    """All levels of a tree over leaf hashes, leaves first.

    Args:
        leaf_hashes: of the leaves, or of nodes of a larger tree whose upper part this is.
        height: of those nodes above the leaves of the larger tree.
        depth: of a tree that is padded further than so many leaves need.
    """

    def __init__(
        self, leaf_hashes: Sequence[bytes], *, height: int = 0, depth: int | None = None
    ) -> None:
        least = depth_of(len(leaf_hashes))
        self.depth = least if depth is None else depth
        if self.depth < least:
            raise ValueError(f"{len(leaf_hashes)} leaves don't fit under {depth} levels")
        level = [Hash32(bytes(leaf)) for leaf in leaf_hashes]
        self._levels = [level]
        self._absent = absent = absent_node(height)
        for _ in range(self.depth):
            if len(level) % 2:
                level = [*level, absent]
            level = [node_hash(level[i], level[i + 1]) for i in range(0, len(level), 2)]
            self._levels.append(level)
            absent = node_hash(absent, absent)

    @property
    def root(self) -> Hash32:
        """The root."""
        return self._levels[-1][0]

    @property
    def leaves(self) -> Sequence[Hash32]:
        """The leaf hashes, without padding."""
        return self._levels[0]

    def proof(self, index: int) -> tuple[Hash32, ...]:
        """Siblings of leaf ``index``, bottom-up, as many as the depth."""
        if not 0 <= index < len(self._levels[0]):
            raise IndexError(f"no leaf {index} among {len(self._levels[0])}")
        siblings = []
        absent = self._absent
        for level in self._levels[:-1]:
            sibling = index ^ 1
            siblings.append(level[sibling] if sibling < len(level) else absent)
            index >>= 1
            absent = node_hash(absent, absent)
        return tuple(siblings)

    def nodes(self, height: int, first: int, count: int) -> tuple[Hash32, ...]:
        """Neighbouring nodes so many levels above the leaves, also where only absent leaves are below."""
        absent = self._absent
        for _ in range(height):
            absent = node_hash(absent, absent)
        level = self._levels[height]
        return tuple(
            level[place] if place < len(level) else absent for place in range(first, first + count)
        )


def merkle_root(leaf_hashes: Sequence[bytes]) -> Hash32:
    """Root of the tree over these leaf hashes."""
    return MerkleTree(leaf_hashes).root


def verify_proof(
    *, root: bytes, leaf: bytes, index: int, proof: Sequence[bytes], depth: int
) -> bool:
    """Whether ``leaf`` (a leaf hash) stands at ``index`` under ``root`` in a tree of this depth; never beyond MOST_DEPTH."""
    if len(proof) != depth or depth > MOST_DEPTH or not 0 <= index < 1 << depth:
        return False
    node = bytes(leaf)
    for level, sibling in enumerate(proof):
        pair = (sibling, node) if index >> level & 1 else (node, sibling)
        node = node_hash(*pair)
    return node == root
