// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CellNode, HALF_DEPTH, Leaf, Node, SETTLEMENT_DEPTH, Sibling} from "../interfaces/ISettlement.sol";

/// @title The settlement's sum trees
/// @notice Trees of fixed depth whose nodes add up weights and amounts, so that a root can't promise more than it shows.
/// Leaves and nodes are hashed under different tags; an empty leaf is the zero node, and what is above it follows the rule.
/// @dev Sums are checked: a tree whose sums overflow can't be climbed, hence not opened.
library SettlementTree {
    bytes32 internal constant LEAF_TAG = keccak256("syntience.settlement.leaf.v1");
    bytes32 internal constant NODE_TAG = keccak256("syntience.settlement.node.v1");
    bytes32 internal constant CELL_LEAF_TAG = keccak256("syntience.cells.leaf.v1");
    bytes32 internal constant CELL_NODE_TAG = keccak256("syntience.cells.node.v1");

    /// @notice Index of the first validator's leaf.
    uint32 internal constant VALIDATORS = 4096;
    /// @notice Number of leaves.
    uint32 internal constant LEAVES = 8192;

    error SumOverflow();

    /// @notice The leaf of an account as a node of the epoch's tree.
    function leafNode(uint64 epoch, Leaf calldata leaf) internal pure returns (Node memory) {
        bytes32 tag = LEAF_TAG;
        bytes32 hash;
        // keccak256(abi.encode(LEAF_TAG, epoch, leaf)), seven words in one copy. Words with bits beyond their type can only
        // be in a tree whose leaf nobody can open.
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, tag)
            mstore(add(free, 0x20), epoch)
            calldatacopy(add(free, 0x40), leaf, 0xe0)
            hash := keccak256(free, 0x120)
        }
        return Node({hash: hash, w: leaf.w, amount: leaf.amount});
    }

    /// @notice Whether the leaf says that its slot had no account: everything but the index is 0.
    function isEmpty(Leaf calldata leaf) internal pure returns (bool) {
        return leaf.account == address(0) && leaf.w == 0 && leaf.amount == 0 && leaf.cumulative == 0
            && leaf.prevEpoch == 0 && leaf.cells == 0;
    }

    /// @notice The node above two nodes.
    function parent(Node memory left, Node memory right) internal pure returns (Node memory) {
        return Node({
            hash: _hashPair(left.hash, left.w, left.amount, right.hash, right.w, right.amount),
            w: left.w + right.w,
            amount: left.amount + right.amount
        });
    }

    /// @notice From a leaf up to the root.
    /// @param siblings Bottom-up; exactly SETTLEMENT_DEPTH.
    /// @return half The miners' or the validators' half, whichever holds the leaf.
    /// @return root The root.
    function climb(Node memory leaf, uint256 index, Node[SETTLEMENT_DEPTH] calldata siblings)
        internal
        pure
        returns (Node memory half, Node memory root)
    {
        uint256 first;
        uint256 last;
        assembly ("memory-safe") {
            first := siblings
            last := add(siblings, mul(HALF_DEPTH, 0x60))
        }
        half = Node(leaf.hash, leaf.w, leaf.amount);
        _climb(half, index, first, HALF_DEPTH);
        root = Node(half.hash, half.w, half.amount);
        _climb(root, index >> HALF_DEPTH == 0 ? 0 : 1, last, 1);
    }

    /// @notice The hash of the root above a leaf of an epoch, which may be any but an empty one.
    /// @dev As `climb`, in one pass over packed siblings.
    /// @param siblings Bottom-up.
    function rootHash(uint64 epoch, Leaf calldata leaf, Sibling[SETTLEMENT_DEPTH] calldata siblings)
        internal
        pure
        returns (bytes32 hash)
    {
        bytes32 leafTag = LEAF_TAG;
        bytes32 tag = NODE_TAG;
        uint256 w;
        uint256 amount;
        uint256 own;
        assembly ("memory-safe") {
            // As in `leafNode`.
            let pair := mload(0x40)
            mstore(pair, leafTag)
            mstore(add(pair, 0x20), epoch)
            calldatacopy(add(pair, 0x40), leaf, 0xe0)
            hash := keccak256(pair, 0x120)
            let index := calldataload(leaf)
            w := calldataload(add(leaf, 0x40))
            amount := calldataload(add(leaf, 0x60))
            own := or(w, amount)
            mstore(pair, tag)
            let end := add(siblings, mul(SETTLEMENT_DEPTH, 0x40))
            for { let sibling := siblings } lt(sibling, end) { sibling := add(sibling, 0x40) } {
                // A left node stands at 0x20, a right one at 0x80.
                let shift_ := mul(and(index, 1), 0x60)
                let here := add(pair, add(0x20, shift_))
                let other := add(pair, sub(0x80, shift_))
                let sums := calldataload(add(sibling, 0x20))
                let otherW := shr(128, sums)
                let otherAmount := and(sums, 0xffffffffffffffffffffffffffffffff)
                mstore(here, hash)
                mstore(add(here, 0x20), w)
                mstore(add(here, 0x40), amount)
                mstore(other, calldataload(sibling))
                mstore(add(other, 0x20), otherW)
                mstore(add(other, 0x40), otherAmount)
                hash := keccak256(pair, 0xe0)
                w := add(w, otherW)
                amount := add(amount, otherAmount)
                index := shr(1, index)
            }
        }
        // From amounts that fit, sums only grow: if the last ones fit, all did.
        if ((own | w | amount) >> 128 != 0) revert SumOverflow();
    }

    /// @notice The root above a leaf, from siblings of unchecked number.
    /// @return root Its hash; 0 if the number of siblings is wrong.
    function rootHash(Node memory leaf, uint256 index, Node[] calldata siblings) internal pure returns (bytes32 root) {
        if (siblings.length != SETTLEMENT_DEPTH) return 0;
        uint256 first;
        assembly ("memory-safe") {
            first := siblings.offset
        }
        Node memory node = Node(leaf.hash, leaf.w, leaf.amount);
        _climb(node, index, first, SETTLEMENT_DEPTH);
        return node.hash;
    }

    /// @notice From one cell up to the root of a validator's cells tree.
    /// @param exists Whether the slot had a miner; if not, the cell is empty.
    /// @param siblings Bottom-up; their number is the caller's to check.
    function climbCells(bool exists, uint32 slot, uint256 value, CellNode[] calldata siblings)
        internal
        pure
        returns (bytes32 hash, uint256 sum)
    {
        if (exists) (hash, sum) = (keccak256(abi.encode(CELL_LEAF_TAG, slot, value)), value);
        for (uint256 i = 0; i < siblings.length; ++i) {
            CellNode calldata other = siblings[i];
            hash = (slot >> i) & 1 == 0
                ? keccak256(abi.encode(CELL_NODE_TAG, hash, sum, other.hash, other.sum))
                : keccak256(abi.encode(CELL_NODE_TAG, other.hash, other.sum, hash, sum));
            sum += other.sum;
        }
    }

    /// @dev Replaces a node by the one so many levels above it: hash = keccak256(abi.encode(NODE_TAG, left, right)).
    /// Thirteen sums of uint128 can't overflow 256 bits, and they only grow: if the last ones fit, all did. `seen` gathers
    /// the siblings' own words, which must fit as well.
    /// @param sibling Where in the calldata the first sibling stands; the caller vouches that `levels` of them follow.
    function _climb(Node memory node, uint256 index, uint256 sibling, uint256 levels) private pure {
        bytes32 tag = NODE_TAG;
        bytes32 hash = node.hash;
        uint256 w = node.w;
        uint256 amount = node.amount;
        uint256 seen = 0;
        assembly ("memory-safe") {
            let pair := mload(0x40)
            mstore(pair, tag)
            for { let end := add(sibling, mul(levels, 0x60)) } lt(sibling, end) { sibling := add(sibling, 0x60) } {
                // A left node stands at 0x20, a right one at 0x80.
                let shift_ := mul(and(index, 1), 0x60)
                let own := add(pair, add(0x20, shift_))
                mstore(own, hash)
                mstore(add(own, 0x20), w)
                mstore(add(own, 0x40), amount)
                calldatacopy(add(pair, sub(0x80, shift_)), sibling, 0x60)
                hash := keccak256(pair, 0xe0)
                let otherW := calldataload(add(sibling, 0x20))
                let otherAmount := calldataload(add(sibling, 0x40))
                seen := or(seen, or(otherW, otherAmount))
                w := add(w, otherW)
                amount := add(amount, otherAmount)
                index := shr(1, index)
            }
        }
        if (seen >> 128 != 0) revert SumOverflow();
        if ((w | amount) >> 128 != 0) revert SumOverflow();
        // forge-lint: disable-next-line(unsafe-typecast)
        (node.hash, node.w, node.amount) = (hash, uint128(w), uint128(amount));
    }

    /// @dev keccak256(abi.encode(NODE_TAG, ...)) without allocating memory for each of thirteen levels.
    function _hashPair(
        bytes32 leftHash,
        uint256 leftW,
        uint256 leftAmount,
        bytes32 rightHash,
        uint256 rightW,
        uint256 rightAmount
    ) private pure returns (bytes32 hash) {
        bytes32 tag = NODE_TAG;
        assembly ("memory-safe") {
            let free := mload(0x40)
            mstore(free, tag)
            mstore(add(free, 0x20), leftHash)
            mstore(add(free, 0x40), leftW)
            mstore(add(free, 0x60), leftAmount)
            mstore(add(free, 0x80), rightHash)
            mstore(add(free, 0xa0), rightW)
            mstore(add(free, 0xc0), rightAmount)
            hash := keccak256(free, 0xe0)
        }
    }
}
