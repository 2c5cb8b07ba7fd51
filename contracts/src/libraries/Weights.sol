// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {WeightsOpening} from "../interfaces/ISettlement.sol";

/// @title Revealed weight vectors
/// @notice Big-endian uint16 per miner slot; slots beyond the vector's end weigh 0. A vector is hashed in chunks of 256
/// miners, so that one miner's weight opens with 512 bytes.
library Weights {
    uint256 internal constant CHUNK_BYTES = 512;
    uint256 internal constant CHUNK_SLOTS = 256;

    /// @notice keccak256 over the keccak256 of each chunk; the last chunk may be short.
    /// @dev In free memory: the chunks' hashes one after the other, and the chunk that is hashed behind them.
    // The quotient is a number of chunks, rounded up on purpose.
    // slither-disable-next-line divide-before-multiply
    function root(bytes calldata weights) internal pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            let hashes := mload(0x40)
            let end := add(hashes, mul(div(add(weights.length, sub(CHUNK_BYTES, 1)), CHUNK_BYTES), 0x20))
            let from := weights.offset
            let left := weights.length
            for { let place := hashes } lt(place, end) { place := add(place, 0x20) } {
                let size := CHUNK_BYTES
                if lt(left, size) { size := left }
                calldatacopy(end, from, size)
                mstore(place, keccak256(end, size))
                from := add(from, size)
                left := sub(left, size)
            }
            hash := keccak256(hashes, sub(end, hashes))
        }
    }

    /// @notice The weight of a miner slot in the vector with this root.
    /// @return valid Whether the opening fits the root.
    /// @return weight The weight; 0 beyond the vector's end.
    function open(bytes32 vectorRoot, WeightsOpening calldata opening, uint256 slot)
        internal
        pure
        returns (bool valid, uint256 weight)
    {
        if (keccak256(abi.encodePacked(opening.chunkHashes)) != vectorRoot) return (false, 0);
        uint256 chunk = slot / CHUNK_SLOTS;
        if (chunk >= opening.chunkHashes.length) return (opening.chunk.length == 0, 0);
        if (keccak256(opening.chunk) != opening.chunkHashes[chunk]) return (false, 0);
        uint256 offset = (slot % CHUNK_SLOTS) * 2;
        if (offset >= opening.chunk.length) return (true, 0);
        return (true, (uint256(uint8(opening.chunk[offset])) << 8) | uint8(opening.chunk[offset + 1]));
    }

    /// @notice The consensus weight: the largest w with 2 * (stake that gave at least w) > total; 0 if there is none.
    /// @dev Quadratic in the number of validators, at most 32.
    /// @param weights Weight that each revealer gave.
    /// @param stakes Snapshot stake of each revealer.
    function consensus(uint256[] memory weights, uint256[] memory stakes) internal pure returns (uint256 best) {
        uint256 total = 0;
        for (uint256 i = 0; i < stakes.length; ++i) {
            total += stakes[i];
        }
        for (uint256 i = 0; i < weights.length; ++i) {
            uint256 candidate = weights[i];
            if (candidate <= best) continue;
            uint256 support = 0;
            for (uint256 k = 0; k < weights.length; ++k) {
                if (weights[k] >= candidate) support += stakes[k];
            }
            if (2 * support > total) best = candidate;
        }
    }
}
