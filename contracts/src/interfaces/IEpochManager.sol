// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Params, Terms} from "./IRun.sol";

/// @title Epoch manager
/// @notice The clock of the run, its beacons, the miners' commits, the validators' attestations and finalised roots.
/// @dev Time is block time less pauses. Deadlines are inclusive: an action is in time at t <= deadline, and "after" a
/// deadline means t > deadline. Rounds and epochs count from 1; both are 0 before genesis.
interface IEpochManager {
    /// @notice From `fromEpoch` on, the spec with this hash applies.
    struct ScheduleEntry {
        uint64 fromEpoch;
        bytes32 specHash;
    }

    /// @notice Where the run stands.
    struct Now {
        uint64 time;
        uint64 blockNumber;
        uint64 round;
        uint64 epoch;
    }

    /// @notice Deadlines and outcomes of a round. Hashes are 0 until they exist.
    struct RoundView {
        uint64 round;
        uint64 epoch;
        uint64 start;
        uint64 putOpens;
        uint64 putDeadline;
        uint64 publishDeadline;
        uint64 attestDeadline;
        uint64 end;
        /// Target blocks of the beacons; 0 while not fixed.
        uint64 assignmentTarget;
        uint64 evaluationTarget;
        bytes32 assignment;
        bytes32 evaluation;
        bytes32 root;
    }

    /// @notice A validator's attestation of a round.
    struct Attestation {
        uint64 round;
        address account;
        bytes32 root;
        bytes32 bitmapHash;
    }

    /// @notice An attestation, opened.
    struct Ballot {
        uint32 slot;
        bytes32 root;
        bytes bitmap;
    }

    /// @notice How a round's attestations stand on one miner and one root, as far as they are opened.
    struct Tally {
        uint256 total;
        uint256 forRoot;
        uint256 bitSet;
        uint256 unopened;
        uint32 setters;
    }

    error Paused();
    error BallotMismatch(uint64 round, uint32 slot);

    event SpecScheduled(uint64 indexed fromEpoch, bytes32 specHash);
    /// @notice The beacon will be the hash of `targetBlock`. A second one for a round: the first target expired.
    event BeaconFixed(uint64 indexed round, uint8 indexed purpose, uint64 targetBlock);
    event BeaconRecorded(uint64 indexed round, uint8 indexed purpose, uint64 targetBlock, bytes32 value);
    /// @notice The miner in `slot` committed to the submission with this digest.
    event Committed(uint64 indexed round, address indexed account, uint32 indexed slot, bytes32 digest);
    /// @notice `root`: state root of the model at the start of `round`. Bit i of `bitmap` (byte i / 8, least
    /// significant bit first): I hold and will serve what the miner in slot i handed in.
    event Attested(uint64 indexed round, address indexed account, uint32 indexed slot, bytes32 root, bytes bitmap);
    /// @notice More than half of the snapshot's stake attested `root` as the state at the start of `round`.
    event RootFinalised(uint64 indexed round, bytes32 root, uint256 stake, uint256 totalStake);

    /// @notice The run's parameters contradict each other; `what` names the first one found.
    error InvalidParams(string what);
    error InvalidPurpose(uint8 purpose);
    error InvalidRound(uint64 round);
    /// @notice The window opens after (or at) `opens`.
    error TooEarly(uint64 time, uint64 opens);
    error TooLate(uint64 time, uint64 deadline);
    error BeaconAlreadyFixed(uint64 round, uint8 purpose, uint64 targetBlock);
    error BeaconNotFixed(uint64 round, uint8 purpose);
    error BeaconAlreadyRecorded(uint64 round, uint8 purpose);
    /// @notice The target is not mined yet.
    error BeaconNotReady(uint64 targetBlock, uint64 blockNumber);
    /// @notice The target is out of reach; fix the beacon again.
    error BeaconExpired(uint64 targetBlock, uint64 blockNumber);
    error NotMiner(address caller, uint64 round);
    error NotValidator(address caller, uint64 round);
    error AlreadyCommitted(uint64 round, uint32 slot);
    error AlreadyAttested(uint64 round, uint32 slot);
    error ZeroDigest();
    /// @notice The bitmap has bits for slots that don't exist.
    error BitmapTooLong(uint256 length, uint32 slots);
    error RootAlreadyFinalised(uint64 round, bytes32 root);
    error NoMajority(uint64 round, bytes32 root, uint256 stake, uint256 totalStake);

    /// @notice Fixes the target block of a round's beacon, or draws an expired one again.
    /// @dev Anyone; paid as a chore. The assignment beacon (purpose 1) after the attest deadline of the round before, the
    /// evaluation beacon (2) after the publish deadline; both until their cut-off.
    function fixBeacon(uint64 round, uint8 purpose) external;

    /// @notice Records a beacon once its target block is mined, until its cut-off.
    /// @dev Anyone; paid as a chore. value = keccak256(abi.encode(entropy, run, round, purpose)).
    /// @return value The beacon.
    function recordBeacon(uint64 round, uint8 purpose) external returns (bytes32 value);

    /// @notice Commits the calling operator's miner to its submission of a round. One per slot and round.
    /// @param round The round, between its putOpens and putDeadline.
    /// @param digest EIP-712 digest of the submission.
    function commit(uint64 round, bytes32 digest) external;

    /// @notice Attests a round for the calling operator's validator, after its publish and until its attest deadline.
    /// @param round The round.
    /// @param root State root of the model at the start of the round (after round - 1).
    /// @param bitmap One bit per miner slot; may be shorter than all slots.
    function attest(uint64 round, bytes32 root, bytes calldata bitmap) external;

    /// @notice Finalises the root that more than half of the total snapshot stake attested. After the attest deadline;
    /// anyone; paid as a chore.
    function finaliseRoot(uint64 round, bytes32 root) external;

    /// @notice Block time less pauses: the time that every deadline compares with.
    function time() external view returns (uint64);

    function currentRound() external view returns (uint64);
    function currentEpoch() external view returns (uint64);

    /// @notice Time, block, round and epoch in one call.
    function nowView() external view returns (Now memory);

    /// @notice The epoch of a round; 0 for round 0.
    function epochOf(uint64 round) external view returns (uint64);
    function firstRound(uint64 epoch) external view returns (uint64);
    function lastRound(uint64 epoch) external view returns (uint64);

    function roundStart(uint64 round) external view returns (uint64);
    function putOpens(uint64 round) external view returns (uint64);
    function putDeadline(uint64 round) external view returns (uint64);
    function publishDeadline(uint64 round) external view returns (uint64);
    function attestDeadline(uint64 round) external view returns (uint64);

    /// @notice A beacon may be fixed after (not at) this time.
    function beaconOpensAfter(uint64 round, uint8 purpose) external view returns (uint64);
    /// @notice Last second at which a beacon can be fixed or recorded.
    function beaconCutOff(uint64 round, uint8 purpose) external view returns (uint64);

    /// @notice When the next epoch starts; weights can be committed after it.
    function epochEnd(uint64 epoch) external view returns (uint64);
    function weightCommitDeadline(uint64 epoch) external view returns (uint64);
    /// @notice Last second to reveal weights; a settlement can be posted after it.
    function weightRevealDeadline(uint64 epoch) external view returns (uint64);
    /// @notice After this time an epoch without settlement can be declared void.
    function settlementVoidAt(uint64 epoch) external view returns (uint64);

    /// @notice A round's recorded beacon; 0 if there is none.
    function beacon(uint64 round, uint8 purpose) external view returns (bytes32);
    /// @notice The block that a round's beacon is taken from; 0 while not fixed.
    function beaconTarget(uint64 round, uint8 purpose) external view returns (uint64);

    function blockNumber() external view returns (uint64);
    function runningTime() external view returns (uint64);
    function runningBlock() external view returns (uint64);
    function termsAt(uint64 epoch) external view returns (Terms memory);
    function tally(uint64 round, uint32 minerSlot, bytes32 root, Ballot[] calldata ballots)
        external
        view
        returns (Tally memory);

    /// @notice Whether an operator committed this digest in a round. False too once the round is so old that its place
    /// was used again; places last longer than the fraud window.
    function isCommitted(uint64 round, address operator, bytes32 digest) external view returns (bool);

    /// @notice A validator's attestation of a round; all zero if there is none (any more).
    function attestation(uint64 round, uint32 slot) external view returns (Attestation memory);

    /// @notice The finalised state root at the start of a round; 0 if there is none (yet).
    function finalisedRoot(uint64 round) external view returns (bytes32);

    function roundView(uint64 round) external view returns (RoundView memory);

    /// @notice The spec's hash in an epoch.
    function specHashAt(uint64 epoch) external view returns (bytes32);
    /// @notice All schedule entries, oldest first.
    function schedule() external view returns (ScheduleEntry[] memory);

    /// @notice The run's id: keccak256(abi.encode(chainId, registry, nonce)).
    function run() external view returns (bytes32);
    function params() external view returns (Params memory);
    /// @notice Rounds whose commits and attestations are kept.
    function ringSize() external view returns (uint64);
}
