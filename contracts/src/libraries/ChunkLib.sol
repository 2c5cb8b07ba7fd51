// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Chunks of a payload (codec version 2)
/// @notice A chunk that keeps k values: k ascending 12-bit indices, then k codes of `bits` bits, each field packed from the low
/// bit up and padded with zero bits to a byte, then the scale as binary32, little-endian, then the ratio of its levels in a
/// byte. The scale is +0 or lies in [2^-40, 2^40] and has six bits of mantissa; the ratio is below 16, and 0 where a code is a
/// sign alone. A chunk of zeros has scale +0, ratio 0, codes 0 and the indices 0..k-1. Its length tells k.
library ChunkLib {
    /// Bits of 2^-40 and 2^40. As unsigned words, positive numbers are ordered as they are, and everything negative,
    /// infinite or not a number lies above.
    uint256 private constant MIN_SCALE = 0x2b800000;
    uint256 private constant MAX_SCALE = 0x53800000;
    /// Bits of binary32 that a scale leaves 0.
    uint256 private constant UNUSED_MANTISSA = (1 << 17) - 1;
    uint256 private constant RATIOS = 16;
    uint256 private constant INDEX_BITS = 12;
    /// Scale and ratio.
    uint256 private constant TAIL_BYTES = 5;

    /// @notice Whether an encoder can have written this chunk.
    /// @dev About 100 gas a value.
    /// @param size Values in a full chunk. That a chunk at a tensor's edge has fewer is not known here: there, an index
    /// beyond its end passes.
    /// @param bits Of a code.
    function isCanonical(bytes memory chunk, uint256 size, uint256 bits) internal pure returns (bool) {
        uint256 k = keptOf(chunk.length, bits);
        if (k == 0) return false;
        uint256 codes = (k * INDEX_BITS + 7) / 8;
        uint256 end = codes + (k * bits + 7) / 8;
        if (!_isPadded(chunk, codes - 1, k * INDEX_BITS) || !_isPadded(chunk, end - 1, k * bits)) return false;
        uint256 scale = 0;
        for (uint256 i = 0; i < 4; ++i) {
            scale |= uint256(uint8(chunk[end + i])) << (8 * i);
        }
        uint256 ratio = uint8(chunk[end + 4]);
        if (scale == 0) return ratio == 0 && _isEmpty(chunk, k, codes, end);
        if (scale < MIN_SCALE || scale > MAX_SCALE || scale & UNUSED_MANTISSA != 0) return false;
        if (ratio >= RATIOS || (bits == 1 && ratio != 0)) return false;
        uint256 indicesEnd = _indicesEnd(chunk, k);
        return indicesEnd != 0 && indicesEnd <= size;
    }

    /// @notice How many values a chunk of so many bytes keeps; 0 if no chunk is so long.
    // The lengths of bit fields, each rounded up to a byte.
    // slither-disable-next-line divide-before-multiply
    function keptOf(uint256 length, uint256 bits) internal pure returns (uint256 k) {
        if (length <= TAIL_BYTES) return 0;
        length -= TAIL_BYTES;
        // The two fields are padded by less than two bytes, which is less than two values: only these two numbers can fit.
        k = length * 8 / (INDEX_BITS + bits);
        if (k != 0 && _fieldBytes(k, bits) != length) --k;
        if (k == 0 || _fieldBytes(k, bits) != length) return 0;
    }

    function _fieldBytes(uint256 k, uint256 bits) private pure returns (uint256) {
        return (k * INDEX_BITS + 7) / 8 + (k * bits + 7) / 8;
    }

    /// @dev Whether the bits of a field's last byte beyond its `used` ones are 0.
    function _isPadded(bytes memory chunk, uint256 last, uint256 used) private pure returns (bool) {
        return used % 8 == 0 || uint8(chunk[last]) >> (used % 8) == 0;
    }

    function _isEmpty(bytes memory chunk, uint256 k, uint256 codes, uint256 end) private pure returns (bool) {
        for (uint256 i = codes; i < end; ++i) {
            if (chunk[i] != 0) return false;
        }
        // k of them that ascend to k - 1 are all below k.
        return _indicesEnd(chunk, k) == k;
    }

    /// @dev One more than the last of the k indices; 0 if they don't ascend. Unchecked: the chunk must hold as many.
    // The 0 is followed by a break: nothing is written over it.
    // slither-disable-next-line write-after-write
    function _indicesEnd(bytes memory chunk, uint256 k) private pure returns (uint256 least) {
        assembly ("memory-safe") {
            let place := add(chunk, 0x20)
            for { let i := 0 } lt(i, k) { i := add(i, 1) } {
                let word := mload(place)
                let odd := and(i, 1)
                // Of two bytes, little-endian; an odd index begins at the second half of the first one.
                let index := and(shr(shl(2, odd), or(byte(0, word), shl(8, byte(1, word)))), 0xfff)
                if lt(index, least) {
                    least := 0
                    break
                }
                least := add(index, 1)
                place := add(place, add(odd, 1))
            }
        }
    }
}
