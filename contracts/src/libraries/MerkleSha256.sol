// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Binary sha-256 Merkle trees
/// @notice leaf = sha256(0x00 || data), node = sha256(0x01 || left || right). Trees are padded to the next power of two with
/// leaves whose hash is 0, so the depth follows from the number of leaves and a proof has exactly that many siblings. An
/// inner node can't pass as a leaf.
library MerkleSha256 {
    /// @notice Hash of a leaf's content.
    function leafHash(bytes memory data) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x00), data));
    }

    /// @notice Hash of an inner node.
    function nodeHash(bytes32 left, bytes32 right) internal pure returns (bytes32) {
        return sha256(abi.encodePacked(bytes1(0x01), left, right));
    }

    /// @notice Depth of a tree with so many leaves: ceil(log2(leaves)).
    function depthOf(uint256 leaves) internal pure returns (uint256 depth) {
        if (leaves > 1) depth = Math.log2(leaves - 1) + 1;
    }

    /// @notice The node above 2^k nodes that stand side by side in a tree. `nodes.length` must be a power of two.
    function nodeAbove(bytes32[] calldata nodes) internal view returns (bytes32 node) {
        assembly ("memory-safe") {
            // One spare word before the nodes holds the prefix byte of the first pair; that of a later pair goes over the
            // last byte of the pair before it, which is hashed by then.
            let buffer := add(mload(0x40), 0x20)
            let size := shl(5, nodes.length)
            calldatacopy(buffer, nodes.offset, size)
            for {} gt(size, 0x20) { size := shr(1, size) } {
                let out := buffer
                let end := add(buffer, sub(size, 1))
                for { let pair := sub(buffer, 1) } lt(pair, end) { pair := add(pair, 0x40) } {
                    mstore8(pair, 1)
                    // Only fails for want of gas.
                    if iszero(staticcall(gas(), 2, pair, 0x41, out, 0x20)) { revert(0, 0) }
                    out := add(out, 0x20)
                }
            }
            node := mload(buffer)
        }
    }

    /// @notice Whether `leaf` (a leaf hash) stands at `index` under `root` in a tree of exactly this depth.
    /// @param proof Siblings bottom-up, at most 64 of them.
    function verify(bytes32 root, bytes32 leaf, uint256 index, bytes32[] calldata proof, uint256 depth)
        internal
        view
        returns (bool)
    {
        if (proof.length != depth || depth > 64 || index >> depth != 0) return false;
        bytes32 node = leaf;
        // As nodeHash: the prefix lies before two words, into which each node and its sibling are written; 2 is the
        // precompile of sha-256, which only fails for want of gas.
        assembly ("memory-safe") {
            let prefix := add(mload(0x40), 31)
            mstore8(prefix, 1)
            let end := add(proof.offset, shl(5, depth))
            for { let sibling := proof.offset } lt(sibling, end) { sibling := add(sibling, 0x20) } {
                let right := shl(5, and(index, 1))
                mstore(add(prefix, add(0x01, right)), node)
                mstore(add(prefix, sub(0x21, right)), calldataload(sibling))
                if iszero(staticcall(gas(), 2, prefix, 65, 0, 0x20)) { revert(0, 0) }
                node := mload(0)
                index := shr(1, index)
            }
        }
        return node == root;
    }
}
