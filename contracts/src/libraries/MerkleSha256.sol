// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

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
        while ((uint256(1) << depth) < leaves) ++depth;
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
        // As nodeHash: 65 bytes at `pair`, the prefix in the last byte of its first word; the precompile (address 2) writes
        // each node where it is hashed next.
        bytes memory pair = new bytes(96);
        pair[31] = 0x01;
        for (uint256 i = 0; i < depth; ++i) {
            bytes32 sibling = proof[i];
            bool success;
            assembly ("memory-safe") {
                let right := shl(5, and(shr(i, index), 1))
                mstore(add(pair, add(0x40, right)), node)
                mstore(add(pair, sub(0x60, right)), sibling)
                success := staticcall(gas(), 2, add(pair, 0x3f), 65, 0, 0x20)
                node := mload(0)
            }
            // Out of gas, which must not leave an old node in place.
            if (!success) return false;
        }
        return node == root;
    }
}
