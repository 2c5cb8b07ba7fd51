"""The settlement tree: who is paid what for an epoch, as a Merkle-sum tree of fixed depth.

Leaf index = slot for miners (0..4095) and 4096 + slot for validators. Inner nodes add up weights
and amounts, so a root can't promise more than it shows. Leaves and nodes are hashed under
different tags. The contract recomputes single leaves of it, hence keccak over ABI words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from protocol.errors import Bug
from protocol.hashing import abi_words, keccak256
from protocol.ids import ZERO32, Address, Epoch, Hash32, Slot, Units

HALF_DEPTH = 12
"""Depth of each half: miners on the left, validators on the right."""
DEPTH = HALF_DEPTH + 1
MAX_MINERS = 1 << HALF_DEPTH
MAX_VALIDATORS = 32

_LEAF_TAG = keccak256(b"syntience.settlement.leaf.v1")
_NODE_TAG = keccak256(b"syntience.settlement.node.v1")
_CELL_LEAF_TAG = keccak256(b"syntience.cells.leaf.v1")
_CELL_NODE_TAG = keccak256(b"syntience.cells.node.v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class SumNode:
    """A node of the settlement tree: its hash, and the sums of weight and amount below it."""

    hash: Hash32
    w: int
    amount: Units


EMPTY_NODE = SumNode(hash=ZERO32, w=0, amount=Units(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettlementLeaf:
    """What one slot earned in an epoch.

    Attributes:
        index: leaf index (see the module).
        w: consensus weight of a miner; stake times agreement of a validator.
        amount: earned in this epoch, rounded down.
        cumulative: earned by the account in all settled epochs up to this one.
        prev_epoch: the last settled epoch before this one in which the account had a leaf, or 0.
        cells: root of the sum tree over a validator's agreement per miner slot; 0 for a miner.
    """

    index: int
    account: Address
    w: int
    amount: Units
    cumulative: Units
    prev_epoch: Epoch
    cells: Hash32

    def node(self, epoch: Epoch) -> SumNode:
        """The leaf as a node of the epoch's tree."""
        digest = keccak256(
            abi_words(
                _LEAF_TAG,
                epoch,
                self.index,
                self.account,
                self.w,
                self.amount,
                self.cumulative,
                self.prev_epoch,
                self.cells,
            )
        )
        return SumNode(hash=Hash32(digest), w=self.w, amount=self.amount)


def parent(left: SumNode, right: SumNode) -> SumNode:
    """The node above two nodes."""
    digest = keccak256(
        abi_words(_NODE_TAG, left.hash, left.w, left.amount, right.hash, right.w, right.amount)
    )
    return SumNode(
        hash=Hash32(digest),
        w=left.w + right.w,
        amount=Units(left.amount + right.amount),
    )


_Node = TypeVar("_Node")


class _SparseTree(Generic[_Node]):
    """All non-empty nodes of a tree of fixed depth, level by level, leaves first."""

    def __init__(
        self,
        leaves: Mapping[int, _Node],
        *,
        depth: int,
        empty: _Node,
        join: Callable[[_Node, _Node], _Node],
    ) -> None:
        if any(not 0 <= index < 1 << depth for index in leaves):
            raise Bug(f"leaf index outside a tree of depth {depth}")
        self._levels = [dict(leaves)]
        self._empties = [empty]
        for _ in range(depth):
            below, hollow = self._levels[-1], self._empties[-1]
            self._levels.append(
                {
                    index: join(below.get(2 * index, hollow), below.get(2 * index + 1, hollow))
                    for index in sorted({i >> 1 for i in below})
                }
            )
            self._empties.append(join(hollow, hollow))

    def at(self, level: int, index: int) -> _Node:
        return self._levels[level].get(index, self._empties[level])

    def proof(self, index: int) -> tuple[_Node, ...]:
        return tuple(self.at(level, (index >> level) ^ 1) for level in range(len(self._levels) - 1))


class SettlementTree:
    """The tree of one epoch over the leaves of all its slots."""

    def __init__(self, epoch: Epoch, leaves: Mapping[int, SettlementLeaf]) -> None:
        if any(index != leaf.index for index, leaf in leaves.items()):
            raise Bug("a settlement leaf stands at another index than it names")
        self.epoch = epoch
        self.leaves = dict(sorted(leaves.items()))
        nodes = {index: leaf.node(epoch) for index, leaf in self.leaves.items()}
        self._tree = _SparseTree(nodes, depth=DEPTH, empty=EMPTY_NODE, join=parent)

    @property
    def miners(self) -> SumNode:
        """The miners' half."""
        return self._tree.at(HALF_DEPTH, 0)

    @property
    def validators(self) -> SumNode:
        """The validators' half."""
        return self._tree.at(HALF_DEPTH, 1)

    @property
    def root(self) -> SumNode:
        """The root over both halves."""
        return self._tree.at(DEPTH, 0)

    def proof(self, index: int) -> tuple[SumNode, ...]:
        """Siblings of a leaf, bottom-up."""
        return self._tree.proof(index)


class CellTree:
    """The sum tree over a validator's agreement per miner slot, min(w_vj, consensus_j).

    Nodes are pairs of hash and sum.
    """

    def __init__(self, values: Mapping[Slot, int]) -> None:
        leaves = {
            int(slot): (keccak256(abi_words(_CELL_LEAF_TAG, slot, value)), value)
            for slot, value in values.items()
        }
        self._tree = _SparseTree(leaves, depth=HALF_DEPTH, empty=(bytes(32), 0), join=_join_cells)

    @property
    def root(self) -> Hash32:
        """The root's hash."""
        return Hash32(self._tree.at(HALF_DEPTH, 0)[0])

    def proof(self, slot: Slot) -> tuple[tuple[bytes, int], ...]:
        """Siblings of a cell, bottom-up."""
        return self._tree.proof(slot)


def cells_root(values: Mapping[Slot, int]) -> Hash32:
    """Root of a validator's `CellTree`."""
    return CellTree(values).root


def _join_cells(left: tuple[bytes, int], right: tuple[bytes, int]) -> tuple[bytes, int]:
    digest = keccak256(abi_words(_CELL_NODE_TAG, left[0], left[1], right[0], right[1]))
    return digest, left[1] + right[1]


def weights_root(weights: bytes) -> Hash32:
    """Hash of a revealed weight vector: keccak over the keccaks of its chunks of 256 miners.

    Args:
        weights: big-endian uint16 per miner slot.
    """
    chunk = 512
    hashes = [keccak256(weights[i : i + chunk]) for i in range(0, len(weights), chunk)]
    return Hash32(keccak256(b"".join(hashes)))


def weights_commitment(
    *, run: Hash32, validator: Address, epoch: Epoch, weights: bytes, salt: Hash32
) -> Hash32:
    """What a validator commits before it reveals its weights."""
    return Hash32(keccak256(abi_words(run, validator, epoch, weights_root(weights), salt)))
