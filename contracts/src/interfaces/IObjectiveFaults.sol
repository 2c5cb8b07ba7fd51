// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "./IChallengeBook.sol";
import {IEpochManager} from "./IEpochManager.sol";
import {Submission} from "./ISubmission.sol";
import {Fault} from "./IVerdicts.sol";

/// @title Objective faults
/// @notice Judges faults that one transaction proves, out of what the miner itself signed. A hunter first commits to its
/// evidence and reveals it at least one block later (IChallengeBook).
/// @dev evidenceHash = keccak256(abi.encode(...)) of the proving function's arguments after `salt`, in their order.
/// Every submission must be of this run, bear the canonical beacon of its round (the accused one) and a 65-byte signature,
/// low s, of the operator valid in its round. All faults but an equivocation also need it to be the one that was committed: an operator
/// commits once a round, so it is the only one. Whether it was accepted makes no difference: an honest miner commits to
/// none of these. Faults can be proven until the end of epoch epochOf(round) + fraudWindowEpochs.
/// What a verdict costs and pays is Verdicts' business; here the hunter's bond returns to its free balance.
interface IObjectiveFaults is IChallengeBook {
    /// @notice `hunter` proved that `miner` did it. Verdicts tells what that cost, if anything.
    event FaultProven(uint64 indexed round, address indexed miner, address indexed hunter, Fault kind);

    error WrongRun(bytes32 run);
    error FraudWindowClosed(uint64 round, uint64 lastEpoch, uint64 epoch);
    error DifferentSubmissions();
    error SameSubmission(bytes32 digest);
    /// @notice The signed beacon is not the recorded one of the round, or there is none.
    error NotCanonicalBeacon(uint64 round, bytes32 signed, bytes32 recorded);
    /// @notice Not signed by the operator valid in that round.
    error NotSigned(address miner, uint64 round, address signer);
    error NotCommitted(address miner, uint64 round, bytes32 digest);
    /// @notice A submission under another spec is judged for that alone.
    error WrongSpec(bytes32 signed, bytes32 registered);
    /// @notice The signed spec is the registered one.
    error SpecMatches(bytes32 specHash);
    error NoSuchSample(uint32 index, uint32 samples);
    error InvalidProof();
    /// @notice The two leaves are equal: the data are right.
    error DataMatches(uint32 index, bytes32 leafHash);
    /// @notice The chunk is in canonical form.
    error ChunkIsCanonical(uint256 chunk);
    /// @notice Nothing was carried over (0), or visibly nothing that could have been: never a fault.
    error NothingCarried(uint64 round, uint64 localFromRound);
    /// @notice The other submission's round is neither the one carried from nor between that and the accused one's.
    error UnrelatedRound(uint64 round, uint64 localFromRound, uint64 otherRound);
    /// @notice The ballots don't settle that the submission of `round` was not accepted.
    error MayBeAccepted(uint64 round);
    /// @notice The ballots don't settle that the submission of `round` was accepted.
    error MayBeRejected(uint64 round);

    /// @notice Two different submissions of one miner, signed for one run, round and canonical beacon; committed or not.
    /// @param salt Of the commitment.
    /// @param a One.
    /// @param sigA 65-byte signature of the operator.
    /// @param b The other.
    /// @param sigB 65-byte signature of the operator.
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
    /// @param trueLeafHash Leaf hash of the assigned sample under the root of the data set of that round's terms.
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

    /// @notice A committed submission under a spec that is not the registered one of its round.
    /// @dev Terms are announced epochs ahead: an honest miner knows them when it commits.
    function proveWrongSpec(bytes32 salt, Submission calldata s, bytes calldata sig) external;

    /// @notice A committed submission that carries over a local state out of line. Three cases:
    /// 1. `other` is the committed submission of s.localFromRound, and its localOut is not s.localIn (no ballots needed);
    /// 2. it is, but was certainly not accepted: its beacon is not canonical, or the ballots of that round say so. Where
    ///    the miner's bit alone says so, nothing of it need be shown (it may never have been handed in): then `otherSig`
    ///    is empty and `other` all zero;
    /// 3. `other` is a committed submission of a later round before s.round that was certainly accepted, as the ballots of
    ///    its round say.
    /// @dev An honest miner can't be convicted: what was accepted in a round is final at its attest deadline, which lies
    /// before the next round starts, and thus before the put window in which `s` was committed. It may reset its local state
    /// at any time (localFromRound = 0), and that is never a fault here. A localFromRound that is not before the round is
    /// visibly wrong: not accepted, never slashed. A majority can't change a past round's ballots.
    /// @param salt Of the commitment.
    /// @param s The accused submission.
    /// @param sig 65-byte signature of the operator valid in its round.
    /// @param other The submission that s is held against.
    /// @param otherSig 65-byte signature of the operator valid in `other`'s round; empty: none is shown (case 2).
    /// @param ballots Attestations of the other round (of s.localFromRound if none is shown), by ascending slot; those left
    /// out count for the miner's innocence. `IEpochManager.tally` counts them, as long as it can.
    function proveLocalState(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        Submission calldata other,
        bytes calldata otherSig,
        IEpochManager.Ballot[] calldata ballots
    ) external;

    /// @notice A committed submission whose payload holds a chunk that no encoder writes: see ChunkLib.
    /// @dev A leaf's preimage can't be an inner node's, so the depth of the payload's tree need not be known.
    /// Warning: an index beyond a chunk shorter than 4096 values is not seen here, because the sizes of chunks follow from
    /// the model: such a payload does not decode, so it is not accepted.
    /// @param salt Of the commitment.
    /// @param s The submission.
    /// @param sig 65-byte signature of the operator.
    /// @param chunk Number of the chunk: index of the leaf.
    /// @param leaf The chunk's bytes: what the leaf hash was taken of.
    /// @param proof Siblings of the leaf under s.payloadRoot, bottom-up, at most 40.
    function proveBadEncoding(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        uint256 chunk,
        bytes calldata leaf,
        bytes32[] calldata proof
    ) external;

    /// @notice Index in the data set of a miner's i-th sample of a round.
    function assignedSample(uint64 round, bytes32 beacon, address miner, uint32 i) external view returns (uint64);

    /// @notice EIP-712 digest of a submission.
    function submissionDigest(Submission calldata s) external view returns (bytes32);
}
