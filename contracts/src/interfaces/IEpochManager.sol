// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Params, Terms} from "./IRun.sol";

/// @title Epoch manager
/// @notice The clock of the run, its terms, its beacons, the miners' commits, the validators' attestations and finalised
/// roots.
/// @dev Time is block time less pauses. Deadlines are inclusive: an action is in time at t <= deadline, and "after" a
/// deadline means t > deadline. Rounds and epochs count from 1; both are 0 before genesis.
///
/// The governor may do two things. It announces terms, which never touch an epoch that began, and long enough ahead that
/// everybody can leave before they apply. It pauses the run, at most once per `pauseEveryS`, and anyone ends a pause after
/// `pauseMostS`: a pause stops every window and every exit together, so it neither shortens nor lengthens one.
/// @dev Warning: a pause of more than 256 blocks lets a beacon's target expire, which is then drawn again; so the governor
/// can turn down one beacon that it does not like per pause.
interface IEpochManager {
    /// @notice Where the run stands.
    struct Now {
        /// Less pauses; see `time`.
        uint64 time;
        /// The chain's, pauses included, as beacons' target blocks are; see `blockNumber` for the games' clock.
        uint64 blockNumber;
        uint64 round;
        uint64 epoch;
        bool paused;
    }

    /// @notice What shifts the clocks.
    struct Pause {
        /// Block time at which the last pause started; 0 if there was none. Of one that nobody ended in time it is moved
        /// to `pauseMostS` before its end, so that between two pauses the run always goes on for the rest of `pauseEveryS`.
        uint64 lastStart;
        /// Block in which the pause under way started; 0 while the run goes on.
        uint64 sinceBlock;
        /// Length of all pauses that are over.
        uint64 totalS;
        uint64 totalBlocks;
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

    /// @notice The part of an epoch's `Terms` that the data of a submission is judged by.
    struct DataTerms {
        bytes32 specHash;
        bytes32 datasetRoot;
        uint64 trainSamples;
        uint32 samplesPerRound;
        uint8 datasetDepth;
    }

    /// @notice A validator's attestation, opened.
    struct Ballot {
        uint32 slot;
        bytes32 root;
        bytes bitmap;
    }

    /// @notice What the validators said of a round. Stakes are those of the snapshot of the round's epoch.
    struct Tally {
        /// Stake of all validators.
        uint256 total;
        /// Stake of the opened ballots for the root that was asked for.
        uint256 forRoot;
        /// Stake of the opened ballots with the miner's bit set, whatever their root.
        uint256 bitSet;
        /// Stake that attested and is not opened.
        uint256 unopened;
        /// Slots of the opened ballots with the miner's bit set, as a mask.
        uint32 setters;
    }

    /// @notice These terms apply from their first epoch on, unless they are withdrawn.
    event TermsAnnounced(uint64 indexed fromEpoch, Terms terms);
    /// @notice The terms announced last don't apply after all; those before them go on.
    event TermsWithdrawn(uint64 indexed fromEpoch, bytes32 specHash);
    /// @notice The clocks stand still since this block.
    event PauseStarted(uint64 timestamp, uint64 blockNumber);
    /// @notice The clocks go on: from here, time = block time - totalS, and blocks = block number - totalBlocks.
    event PauseEnded(uint64 timestamp, uint64 blockNumber, uint64 totalS, uint64 totalBlocks);
    /// @notice The beacon will be the hash of `targetBlock`. A second one for a round: the first target expired.
    event BeaconFixed(uint64 indexed round, uint8 indexed purpose, uint64 targetBlock);
    event BeaconRecorded(uint64 indexed round, uint8 indexed purpose, uint64 targetBlock, bytes32 value);
    /// @notice An operator key committed to the submission with this digest. It says nothing yet of whether the key is one.
    event Committed(uint64 indexed round, address indexed operator, bytes32 digest);
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
    error NotValidator(address caller, uint64 round);
    error AlreadyCommitted(uint64 round, address operator);
    error AlreadyAttested(uint64 round, uint32 slot);
    error ZeroDigest();
    /// @notice The bitmap has bits for slots that don't exist.
    error BitmapTooLong(uint256 length, uint32 slots);
    error RootAlreadyFinalised(uint64 round, bytes32 root);
    /// @notice The slot did not attest this root with this bitmap, or the list does not fit the mask.
    error NotAttested(uint64 round, uint32 slot);
    /// @notice A ballot is not what its slot attested, or the ballots' slots don't ascend.
    error BallotMismatch(uint64 round, uint32 slot);
    /// @notice The places of the round's attestations are those of a later round by now.
    error TooOld(uint64 round);
    error NoMajority(uint64 round, bytes32 root, uint256 stake, uint256 totalStake);

    error OnlyGovernor(address caller);
    /// @notice The clocks stand still.
    error Paused();
    error NotPaused();
    /// @notice The next pause can start at block time `earliest`.
    error PauseTooSoon(uint64 timestamp, uint64 earliest);
    /// @notice Until block time `earliest` only the governor ends the pause.
    error PauseHolds(uint64 timestamp, uint64 earliest);
    /// @notice `what` names the first contradiction found in announced terms.
    error InvalidTerms(string what);
    /// @notice Terms start at `earliest` or later.
    error NoticeTooShort(uint64 fromEpoch, uint64 earliest);
    /// @notice The last terms apply in the next epoch or do already.
    error TermsTooClose(uint64 fromEpoch, uint64 epoch);

    /// @notice Stops the clocks. Only the governor, at most once per `pauseEveryS`, from start to start.
    function pause() external;

    /// @notice Lets the clocks go on. The governor at any time; anyone once a pause lasted `pauseMostS`, paid as a chore.
    function resume() external;

    /// @notice Announces what submissions are judged by from an epoch on. Only the governor.
    /// @dev The first epoch is at least `noticeEpochs` away and after that of the terms before. The judge is a contract.
    /// Warning: a judge decides over stakes, so whoever stakes reads announced terms; who leaves before they apply is not
    /// liable under them.
    function announceTerms(Terms calldata terms) external;

    /// @notice Withdraws the terms announced last. Only the governor, while they don't apply in this epoch or the next.
    function withdrawTerms() external;

    /// @notice Fixes the target block of a round's beacon, or draws an expired one again.
    /// @dev Anyone; paid as a chore. The assignment beacon (purpose 1) after the attest deadline of the round before, the
    /// evaluation beacon (2) after the publish deadline; both until their cut-off.
    function fixBeacon(uint64 round, uint8 purpose) external;

    /// @notice Records a beacon once its target block is mined, until its cut-off.
    /// @dev Anyone; paid as a chore. value = keccak256(abi.encode(entropy, run, round, purpose)).
    /// @return value The beacon.
    function recordBeacon(uint64 round, uint8 purpose) external returns (bytes32 value);

    /// @notice Commits the calling operator to its miner's submission of a round. One per operator and round.
    /// @dev Who the operator acts for is not looked up: a commit counts as evidence only of an operator that is valid in
    /// the round, and anyone else's wastes its own gas. Of the digest 224 bits are kept; to find two submissions that
    /// share them takes about 2^112 hashes.
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
    /// @dev The first one of an epoch notes the stakes of the epoch's validators, for those that follow.
    /// @param round The round.
    /// @param root What the slots in `mask` attested; those for another root are left out.
    /// @param bitmapHashes keccak256 of the bitmap that each of those slots attested along with it, by ascending slot.
    /// @param mask Bit i: slot i.
    function finaliseRoot(uint64 round, bytes32 root, bytes32[] calldata bitmapHashes, uint32 mask) external;

    /// @notice Block time less pauses: the time that every deadline compares with. Stands still during a pause.
    function time() external view returns (uint64);

    /// @notice Block number less blocks of pauses: what games count their clocks in. Stands still during a pause.
    function blockNumber() external view returns (uint64);

    /// @notice `time`; reverts during a pause. For whatever must not happen in one.
    function runningTime() external view returns (uint64);

    /// @notice `blockNumber`; reverts during a pause.
    function runningBlock() external view returns (uint64);

    function paused() external view returns (bool);
    function pauseState() external view returns (Pause memory);
    /// @notice Who may pause and announce terms; 0: nobody.
    function governor() external view returns (address);

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
    /// @notice What every judge of a round asks, in one call. Reverts during a pause.
    /// @return block_ As `blockNumber`.
    /// @return current The current epoch.
    /// @return epoch The round's epoch.
    /// @return assignment The round's recorded assignment beacon; 0 if there is none.
    function judgedBy(uint64 round)
        external
        view
        returns (uint64 block_, uint64 current, uint64 epoch, bytes32 assignment);
    /// @notice The block that a round's beacon is taken from; 0 while not fixed.
    function beaconTarget(uint64 round, uint8 purpose) external view returns (uint64);

    /// @notice Whether an operator committed this digest. False too once the round is so old that its place was used again;
    /// places last longer than the fraud window.
    function isCommitted(uint64 round, address operator, bytes32 digest) external view returns (bool);

    /// @notice Whether a validator attested a round. False too once the round's place was used again.
    function hasAttested(uint64 round, uint32 slot) external view returns (bool);

    /// @notice Whether a validator attested a round with this root and the bitmap of this keccak256.
    function attested(uint64 round, uint32 slot, bytes32 root, bytes32 bitmapHash) external view returns (bool);

    /// @notice Counts opened attestations of a round, after its attest deadline.
    /// @dev Certainly accepted: 2 * forRoot > total and 2 * bitSet > total. Certainly not accepted:
    /// 2 * (forRoot + unopened) <= total or 2 * (bitSet + unopened) <= total. Reverts for a ballot that does not fit what was
    /// attested, if slots don't ascend, and `ringSize` rounds later, when attestations that were written over would look as
    /// if there had been none; places last longer than the fraud window.
    /// @param round The round.
    /// @param minerSlot The miner whose bit is asked for.
    /// @param root The root that is asked for.
    /// @param ballots Attestations, by ascending slot; others may be left out.
    function tally(uint64 round, uint32 minerSlot, bytes32 root, Ballot[] calldata ballots)
        external
        view
        returns (Tally memory);

    /// @notice Stake of all validators in the snapshot of an epoch that began.
    function snapshotStake(uint64 epoch) external view returns (uint256);

    /// @notice The finalised state root at the start of a round; 0 if there is none (yet).
    function finalisedRoot(uint64 round) external view returns (bytes32);

    function roundView(uint64 round) external view returns (RoundView memory);

    /// @notice The terms of an epoch; all 0 for epoch 0. Of an epoch that began, or is the next, they never change.
    function termsAt(uint64 epoch) external view returns (Terms memory);
    /// @notice `termsAt`, as far as data is judged by it.
    function dataTermsAt(uint64 epoch) external view returns (DataTerms memory);
    /// @notice `termsAt`, as far as chunks of a payload are judged by it.
    function codecTermsAt(uint64 epoch) external view returns (bytes32 specHash, uint16 chunk, uint8 bits);
    /// @notice The spec's hash in an epoch.
    function specHashAt(uint64 epoch) external view returns (bytes32);
    /// @notice All terms, oldest first.
    function schedule() external view returns (Terms[] memory);

    /// @notice The run's id: keccak256(abi.encode(chainId, registry, nonce)).
    function run() external view returns (bytes32);
    function params() external view returns (Params memory);
    /// @notice Rounds whose commits and attestations are kept.
    function ringSize() external view returns (uint64);
}
