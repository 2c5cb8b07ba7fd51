// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice A miner's claim about one round: data in, data out, weights before, weights after. Signed (EIP-712) by the
/// operator key that is valid in that round; its digest is what the miner commits on chain.
struct Submission {
    bytes32 run;
    bytes32 specHash;
    uint64 round;
    /// The assignment beacon of the round.
    bytes32 beacon;
    /// The owner account, not the operator key that signs.
    address miner;
    bytes32 initialRoot;
    /// The round whose localOut is this localIn; 0 after a reset.
    uint64 localFromRound;
    bytes32 localIn;
    bytes32 localOut;
    bytes32 dataRoot;
    bytes32 payloadRoot;
    uint64 payloadBytes;
    bytes32 traceRoot;
    uint32 steps;
}
