// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";

/// @title BlockhashBeacon
/// @notice Entropy out of the hash of the target block, within reach for 256 blocks.
contract BlockhashBeacon is IBeacon {
    uint256 private constant REACH_BLOCKS = 256;

    /// @inheritdoc IBeacon
    function entropy(uint64 targetBlock) external view returns (bytes32 value) {
        return blockhash(targetBlock);
    }

    /// @inheritdoc IBeacon
    function expired(uint64 targetBlock) external view returns (bool) {
        return block.number > uint256(targetBlock) + REACH_BLOCKS;
    }
}
