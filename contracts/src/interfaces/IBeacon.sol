// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Source of public randomness
/// @notice Entropy of a block that was named before it was known. Fixed for the life of a run.
/// @dev Warning: the proposer of the target block can withhold it at the price of the block's reward.
interface IBeacon {
    /// @notice The entropy of a block.
    /// @param targetBlock The block's number.
    /// @return value The entropy; 0 while the block is not mined yet, and again once it is out of reach.
    function entropy(uint64 targetBlock) external view returns (bytes32 value);

    /// @notice Whether the entropy of a block can no longer be had, so that the beacon must be drawn again.
    /// @param targetBlock The block's number.
    function expired(uint64 targetBlock) external view returns (bool);
}
