// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Data assignment
/// @notice Which samples a miner must train on: a PRF of the run, the round's beacon and the miner.
library Assignment {
    bytes32 internal constant TAG = keccak256("syntience.assign.v1");

    /// @notice Index in the data set, below `trainSamples`, of the miner's i-th sample of a round.
    function sample(bytes32 run, uint64 round, bytes32 beacon, address miner, uint32 i, uint64 trainSamples)
        internal
        pure
        returns (uint64)
    {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint64(uint256(keccak256(abi.encode(TAG, run, round, beacon, miner, i))) % trainSamples);
    }
}
