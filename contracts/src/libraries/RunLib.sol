// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Params} from "../interfaces/IRun.sol";

/// @title Identity of a run, and what several contracts derive from its parameters alike
library RunLib {
    uint256 internal constant BPS = 10_000;
    /// @notice Turns of a game at most: 20 answers, 16 picks and a decision; the rest is margin.
    uint64 internal constant MOST_TURNS = 64;

    /// @notice keccak256(abi.encode(chainId, registry, nonce)); stands in every signature, commit and PRF of the run.
    function id(address registry, uint256 nonce) internal view returns (bytes32) {
        return keccak256(abi.encode(block.chainid, registry, nonce));
    }

    /// @notice Longest game in blocks: each side's clock, as many extended turns as a game has at most, and a committee's
    /// vote.
    function longestGameBlocks(Params memory p) internal pure returns (uint64) {
        return 2 * uint64(p.clockBlocks) + MOST_TURNS * p.turnBlocks + p.voteCommitBlocks + p.voteRevealBlocks;
    }
}
