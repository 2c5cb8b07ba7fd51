// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title How many zeros a word starts with
/// @dev The library of the same name without CLZ, for tools that don't know that opcode yet: scripts/audit puts this file in
/// place of contracts/src/libraries/LeadingZeros.sol. Equal by proof (Float32Symbolic) and by fuzz (Float32.t.sol).
library LeadingZeros {
    /// @notice Zeros above the highest bit that is set; 256 if there is none.
    function count(uint256 word) internal pure returns (uint256 zeros) {
        assembly ("memory-safe") {
            // The place of the highest bit, halving where it can be; no branches, so that a prover sees one path.
            let place := shl(7, gt(word, 0xffffffffffffffffffffffffffffffff))
            place := or(place, shl(6, gt(shr(place, word), 0xffffffffffffffff)))
            place := or(place, shl(5, gt(shr(place, word), 0xffffffff)))
            place := or(place, shl(4, gt(shr(place, word), 0xffff)))
            place := or(place, shl(3, gt(shr(place, word), 0xff)))
            place := or(place, shl(2, gt(shr(place, word), 0xf)))
            place := or(place, shl(1, gt(shr(place, word), 3)))
            place := or(place, gt(shr(place, word), 1))
            zeros := add(sub(255, place), iszero(word))
        }
    }
}
