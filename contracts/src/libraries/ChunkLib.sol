// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Chunks of a payload (codec version 1)
/// @notice A chunk that keeps k values: k ascending 12-bit indices, then k 2-bit codes, each field packed from the low bit
/// up and padded with zero bits to a byte, then the scale as binary32, little-endian. The scale is +0 or lies in
/// [2^-40, 2^40]; a chunk of zeros has scale +0, codes 0 and the indices 0..k-1. Its length tells k.
library ChunkLib {
    /// Bits of 2^-40 and 2^40. As unsigned words, positive numbers are ordered as they are, and everything negative,
    /// infinite or not a number lies above.
    uint256 private constant MIN_SCALE = 0x2b800000;
    uint256 private constant MAX_SCALE = 0x53800000;

    /// @notice Whether an encoder can have written this chunk.
    /// @dev The size of the chunk is not known here: any 12-bit index passes. About 100 gas a value.
    function isCanonical(bytes memory chunk) internal pure returns (bool) {
        uint256 k = keptOf(chunk.length);
        if (k == 0) return false;
        uint256 codes = (k * 12 + 7) / 8;
        uint256 end = codes + (k * 2 + 7) / 8;
        if (k & 1 != 0 && uint8(chunk[codes - 1]) >> 4 != 0) return false;
        if (k & 3 != 0 && uint8(chunk[end - 1]) >> (2 * (k & 3)) != 0) return false;
        uint256 scale = 0;
        for (uint256 i = 0; i < 4; ++i) {
            scale |= uint256(uint8(chunk[end + i])) << (8 * i);
        }
        if (scale == 0) return _isEmpty(chunk, k, codes, end);
        if (scale < MIN_SCALE || scale > MAX_SCALE) return false;
        uint256 least = 0;
        for (uint256 i = 0; i < k; ++i) {
            uint256 index = _indexAt(chunk, i);
            if (index < least) return false;
            least = index + 1;
        }
        return true;
    }

    /// @notice How many values a chunk of so many bytes keeps; 0 if no chunk is so long.
    // The lengths of bit fields, each rounded up to a byte.
    // slither-disable-next-line divide-before-multiply
    function keptOf(uint256 length) internal pure returns (uint256 k) {
        if (length < 4) return 0;
        length -= 4;
        // Both fields together take 7/4 bytes a value, and less than 5/4 of padding: only the floor can fit.
        k = length * 4 / 7;
        if ((k * 12 + 7) / 8 + (k * 2 + 7) / 8 != length) k = 0;
    }

    function _isEmpty(bytes memory chunk, uint256 k, uint256 codes, uint256 end) private pure returns (bool) {
        for (uint256 i = codes; i < end; ++i) {
            if (chunk[i] != 0) return false;
        }
        for (uint256 i = 0; i < k; ++i) {
            if (_indexAt(chunk, i) != i) return false;
        }
        return true;
    }

    function _indexAt(bytes memory chunk, uint256 i) private pure returns (uint256) {
        uint256 start = i * 3 / 2;
        (uint256 low, uint256 high) = (uint8(chunk[start]), uint8(chunk[start + 1]));
        return i & 1 == 0 ? low | (high & 15) << 8 : low >> 4 | high << 4;
    }
}
