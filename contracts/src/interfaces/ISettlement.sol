// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

// Depth of the settlement tree: miners' slots on the left (0..4095), validators' on the right (4096 + slot).
uint256 constant SETTLEMENT_DEPTH = 13;
// Depth of the sum tree over a validator's agreement with each miner slot, and of each half above.
uint256 constant HALF_DEPTH = 12;

/// @notice A node of the settlement tree: its hash and the sums of weight and amount below it.
struct Node {
    bytes32 hash;
    uint128 w;
    uint128 amount;
}

/// @notice A node of the settlement tree in two words, for claims: calldata is most of what they cost.
struct Sibling {
    bytes32 hash;
    /// w << 128 | amount.
    uint256 sums;
}

/// @notice A node of a validator's cells tree: its hash and the sum of agreement below it.
struct CellNode {
    bytes32 hash;
    uint256 sum;
}

/// @notice What one slot earned in an epoch.
struct Leaf {
    /// Slot of a miner, or 4096 + slot of a validator.
    uint32 index;
    address account;
    /// A miner's consensus weight; a validator's stake times its agreement.
    uint128 w;
    /// Earned in this epoch, rounded down, in base units.
    uint128 amount;
    /// Earned by the account in all settled epochs up to this one.
    uint128 cumulative;
    /// The last settled epoch before this one in which the account had a leaf; 0 if none.
    uint64 prevEpoch;
    /// Root of a validator's cells tree; 0 for a miner and for a validator that did not reveal.
    bytes32 cells;
}

/// @notice The part of one revealed weight vector that holds one miner's weight.
struct WeightsOpening {
    /// The 512-byte chunk (or the short last one) that holds the miner; empty if the vector ends before it.
    bytes chunk;
    /// keccak256 of every chunk of the vector.
    bytes32[] chunkHashes;
}

/// @notice Everything that a challenged leaf is recomputed from.
struct Opening {
    /// All zero but for `index` where the slot had no account in the epoch.
    Leaf leaf;
    /// Siblings bottom-up.
    Node[SETTLEMENT_DEPTH] siblings;
    /// The account's leaf of leaf.prevEpoch, and its siblings (empty if prevEpoch is 0).
    Leaf prevLeaf;
    Node[] prevSiblings;
    /// Of a validator that revealed: its cell of the challenged miner slot, and its siblings; else 0 and empty.
    uint256 cellValue;
    CellNode[] cellSiblings;
    /// One per validator that revealed, by ascending slot.
    WeightsOpening[] weights;
}
