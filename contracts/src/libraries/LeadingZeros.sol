// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title How many zeros a word starts with
/// @dev A library of its own because it is the only user of an opcode (CLZ, EIP-7939, Osaka) that our symbolic prover doesn't
/// know: scripts/audit puts the twin in contracts/test/symbolic in its place, which a fuzz test shows to be equal.
library LeadingZeros {
    /// @notice Zeros above the highest bit that is set; 256 if there is none.
    function count(uint256 word) internal pure returns (uint256 zeros) {
        assembly ("memory-safe") {
            zeros := clz(word)
        }
    }
}
