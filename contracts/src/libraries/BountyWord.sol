// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Fault} from "../interfaces/IVerdicts.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title A verdict in one word
/// @notice bounty exponent << 250 | bounty mantissa << 200 | committed block << 164 | fault << 160 | hunter. A second word
/// would cost 22,100 gas in every proof.
library BountyWord {
    uint256 private constant MANTISSA_BITS = 50;
    uint256 private constant MANTISSA_MASK = (uint256(1) << MANTISSA_BITS) - 1;
    uint256 private constant BLOCK_MASK = (uint256(1) << 36) - 1;
    uint256 private constant MOST_BOUNTY = type(uint112).max;

    /// @param kind What was proven.
    /// @param hunter Who proved it; left out if the bounty is 0.
    /// @param committedBlock Below 2^36.
    /// @param bounty Rounded down to 50 significant bits, and at most 2^112.
    function pack(Fault kind, address hunter, uint64 committedBlock, uint256 bounty) internal pure returns (uint256) {
        if (bounty == 0) return uint256(kind) << 160;
        if (bounty > MOST_BOUNTY) bounty = MOST_BOUNTY;
        uint256 exponent = bounty > MANTISSA_MASK ? Math.log2(bounty) + 1 - MANTISSA_BITS : 0;
        return exponent << 250 | bounty >> exponent << 200 | uint256(committedBlock) << 164 | uint256(kind) << 160
            | uint160(hunter);
    }

    function kindOf(uint256 word) internal pure returns (Fault) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return Fault(uint8(word >> 160) & 15);
    }

    function hunterOf(uint256 word) internal pure returns (address) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return address(uint160(word));
    }

    function committedBlockOf(uint256 word) internal pure returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint64(word >> 164 & BLOCK_MASK);
    }

    function bountyOf(uint256 word) internal pure returns (uint256) {
        return (word >> 200 & MANTISSA_MASK) << (word >> 250);
    }
}
