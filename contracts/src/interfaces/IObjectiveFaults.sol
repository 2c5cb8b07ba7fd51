// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Submission} from "./ISubmission.sol";

/// @title Objective faults
/// @notice Judges faults that one transaction proves. A hunter first commits to its evidence (with a bond) and reveals it
/// at least one block later, so that nobody can steal a proof from the mempool.
/// @dev commitment = keccak256(abi.encode(hunter, evidenceHash, salt)); evidenceHash = keccak256(abi.encode(...)) of the
/// proving function's arguments after `salt`, in their order. Commitments are kept per hunter: copying one is useless and
/// blocks nobody. One verdict per miner and round; a later proof of a judged round only gets its bond back.
interface IObjectiveFaults {
    /// @notice What was proven.
    enum Fault {
        None,
        Equivocation,
        WrongData
    }

    event ChallengeCommitted(address indexed hunter, bytes32 indexed commitment, uint64 revealBefore, uint256 bond);
    /// @notice The bond of a challenge that was never revealed was burned.
    event ChallengeExpired(address indexed hunter, bytes32 indexed commitment, uint256 bond);
    /// @notice `miner` did it: `slashed` was taken, `bounty` of it went to `hunter`, the rest was burned.
    event FaultProven(
        uint64 indexed round, address indexed miner, address indexed hunter, Fault kind, uint256 slashed, uint256 bounty
    );
    /// @notice A correct proof of a fault that was judged before; the bond went back.
    event FaultConfirmed(uint64 indexed round, address indexed miner, address indexed hunter, Fault kind);

    error AlreadyChallenged(address hunter, bytes32 commitment);
    error NotChallenged(address hunter, bytes32 commitment);
    /// @notice A reveal comes at least one block after the commit.
    error RevealTooEarly(uint64 committedBlock, uint64 blockNumber);
    error RevealTooLate(uint64 lastBlock, uint64 blockNumber);
    error NotExpired(uint64 lastBlock, uint64 blockNumber);
    error WrongRun(bytes32 run);
    error FraudWindowClosed(uint64 round, uint64 lastEpoch, uint64 epoch);
    error DifferentSubmissions();
    error SameSubmission(bytes32 digest);
    /// @notice The signed beacon is not the recorded one of the round, or there is none.
    error NotCanonicalBeacon(uint64 round, bytes32 signed, bytes32 recorded);
    /// @notice Not signed by the operator valid in that round.
    error NotSigned(address miner, uint64 round, address signer);
    error NotCommitted(address miner, uint64 round, bytes32 digest);
    error WrongSpec(bytes32 signed, bytes32 registered);
    error NoSuchSample(uint32 index, uint32 samples);
    error InvalidProof();
    /// @notice The two leaves are equal: the data are right.
    error DataMatches(uint32 index, bytes32 leafHash);

    /// @notice Commits the caller to a piece of evidence and takes its bond.
    function commitChallenge(bytes32 commitment) external;

    /// @notice Burns the bond of a challenge that was not revealed in time. Anyone.
    function expireChallenge(address hunter, bytes32 commitment) external;

    /// @notice Two different submissions of one miner, signed for one run, round and canonical beacon.
    function proveEquivocation(
        bytes32 salt,
        Submission calldata a,
        bytes calldata sigA,
        Submission calldata b,
        bytes calldata sigB
    ) external;

    /// @notice A committed submission whose i-th sample is not the one assigned.
    /// @param salt Of the commitment.
    /// @param s The submission.
    /// @param sig 65-byte signature of the operator.
    /// @param i Which of the round's samples.
    /// @param claimedLeafHash Leaf hash at i under the submission's data root.
    /// @param claimedProof Its siblings, bottom-up.
    /// @param trueLeafHash Leaf hash of the assigned sample under the data set's root.
    /// @param trueProof Its siblings, bottom-up.
    function proveWrongData(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        uint32 i,
        bytes32 claimedLeafHash,
        bytes32[] calldata claimedProof,
        bytes32 trueLeafHash,
        bytes32[] calldata trueProof
    ) external;

    /// @notice Block of a hunter's commit; 0 if there is none (any more).
    function challengeBlock(address hunter, bytes32 commitment) external view returns (uint64);

    /// @notice The fault that a miner was found guilty of in a round.
    function verdict(address miner, uint64 round) external view returns (Fault);

    /// @notice Bonds held: the contract's token balance, donations apart.
    function bondsHeld() external view returns (uint256);

    /// @notice Index in the data set of a miner's i-th sample of a round.
    function assignedSample(uint64 round, bytes32 beacon, address miner, uint32 i) external view returns (uint64);

    /// @notice EIP-712 digest of a submission.
    function submissionDigest(Submission calldata s) external view returns (bytes32);
}
