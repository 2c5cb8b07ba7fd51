// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Params} from "./interfaces/IRun.sol";

/// @title RunClock
/// @notice The epoch manager's time: block time less pauses, and deadlines as sums of windows.
abstract contract RunClock is IEpochManager {
    uint8 internal constant ASSIGNMENT = 1;
    uint8 internal constant EVALUATION = 2;
    uint256 private constant START_SHIFT = 192;
    uint256 private constant SINCE_BLOCK_SHIFT = 128;
    uint256 private constant TOTAL_S_SHIFT = 64;

    IRewardsDistributor public immutable rewards;
    /// @inheritdoc IEpochManager
    address public immutable governor;

    uint64 internal immutable _genesisTime;
    uint64 internal immutable _roundsPerEpoch;
    uint64 internal immutable _roundS;
    uint64 internal immutable _trainS;
    uint64 internal immutable _putS;
    uint64 internal immutable _publishS;
    uint64 internal immutable _attestS;
    uint64 internal immutable _applyS;
    uint256 private immutable _epochS;
    uint64 private immutable _weightCommitS;
    uint64 private immutable _weightRevealS;
    uint64 private immutable _settlementVoidS;
    uint64 private immutable _pauseMostS;
    uint64 private immutable _pauseEveryS;

    /// `Pause` in one word, which every window reads: lastStart << 192 | sinceBlock << 128 | totalS << 64 | totalBlocks.
    uint256 private _pauseWord;

    modifier onlyGovernor() {
        _requireGovernor();
        _;
    }

    constructor(Genesis memory g) {
        rewards = IRewardsDistributor(g.addresses.rewards);
        governor = g.governor;
        Params memory p = g.params;
        _genesisTime = p.genesisTime;
        _roundsPerEpoch = p.roundsPerEpoch;
        _trainS = p.trainS;
        _putS = p.putS;
        _publishS = p.publishS;
        _attestS = p.attestS;
        _applyS = p.applyS;
        _roundS = uint64(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS;
        _epochS = p.roundsPerEpoch * (uint256(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS);
        _weightCommitS = p.weightCommitS;
        _weightRevealS = p.weightRevealS;
        _settlementVoidS = p.settlementVoidS;
        _pauseMostS = p.pauseMostS;
        _pauseEveryS = p.pauseEveryS;
    }

    /// @inheritdoc IEpochManager
    // 0 is no time: there was no pause yet.
    // slither-disable-next-line incorrect-equality
    function pause() external onlyGovernor {
        Pause memory p = pauseState();
        if (p.sinceBlock != 0) revert Paused();
        uint64 timestamp = uint64(block.timestamp);
        uint64 earliest = p.lastStart == 0 ? 0 : p.lastStart + _pauseEveryS;
        if (timestamp < earliest) revert PauseTooSoon(timestamp, earliest);
        (p.lastStart, p.sinceBlock) = (timestamp, uint64(block.number));
        _setPause(p);
        emit PauseStarted(timestamp, p.sinceBlock);
    }

    /// @inheritdoc IEpochManager
    // 0 is no block: there is no pause.
    // slither-disable-next-line incorrect-equality
    function resume() external {
        Pause memory p = pauseState();
        if (p.sinceBlock == 0) revert NotPaused();
        uint64 timestamp = uint64(block.timestamp);
        bool byGovernor = msg.sender == governor;
        if (!byGovernor && timestamp < p.lastStart + _pauseMostS) {
            revert PauseHolds(timestamp, p.lastStart + _pauseMostS);
        }
        p.totalS += timestamp - p.lastStart;
        p.totalBlocks += uint64(block.number) - p.sinceBlock;
        p.sinceBlock = 0;
        if (p.lastStart + _pauseMostS < timestamp) p.lastStart = timestamp - _pauseMostS;
        _setPause(p);
        emit PauseEnded(timestamp, uint64(block.number), p.totalS, p.totalBlocks);
        if (!byGovernor) rewards.credit(msg.sender);
    }

    /// @inheritdoc IEpochManager
    function time() public view returns (uint64) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint64(_time());
    }

    /// @inheritdoc IEpochManager
    // 0 is no block: the run goes on.
    // slither-disable-next-line incorrect-equality
    function blockNumber() public view returns (uint64) {
        uint256 word = _pauseWord;
        // forge-lint: disable-next-line(unsafe-typecast)
        uint64 since = uint64(word >> SINCE_BLOCK_SHIFT);
        // forge-lint: disable-next-line(unsafe-typecast)
        return (since == 0 ? uint64(block.number) : since) - uint64(word);
    }

    /// @inheritdoc IEpochManager
    function runningTime() public view returns (uint64) {
        return uint64(_runningTime());
    }

    /// @inheritdoc IEpochManager
    function runningBlock() public view returns (uint64) {
        uint256 word = _pauseWord;
        // forge-lint: disable-start(unsafe-typecast)
        if (uint64(word >> SINCE_BLOCK_SHIFT) != 0) revert Paused();
        return uint64(block.number) - uint64(word);
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @inheritdoc IEpochManager
    function paused() public view returns (bool) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint64(_pauseWord >> SINCE_BLOCK_SHIFT) != 0;
    }

    /// @inheritdoc IEpochManager
    function pauseState() public view returns (Pause memory p) {
        uint256 word = _pauseWord;
        // The fields of a word.
        // forge-lint: disable-start(unsafe-typecast)
        p.lastStart = uint64(word >> START_SHIFT);
        p.sinceBlock = uint64(word >> SINCE_BLOCK_SHIFT);
        p.totalS = uint64(word >> TOTAL_S_SHIFT);
        p.totalBlocks = uint64(word);
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @inheritdoc IEpochManager
    function currentRound() public view returns (uint64) {
        unchecked {
            uint256 t = _time();
            // forge-lint: disable-next-line(unsafe-typecast)
            return t < _genesisTime ? 0 : uint64((t - _genesisTime) / _roundS + 1);
        }
    }

    /// @inheritdoc IEpochManager
    function currentEpoch() public view returns (uint64) {
        unchecked {
            uint256 t = _time();
            // forge-lint: disable-next-line(unsafe-typecast)
            return t < _genesisTime ? 0 : uint64((t - _genesisTime) / _epochS + 1);
        }
    }

    /// @inheritdoc IEpochManager
    function nowView() external view returns (Now memory) {
        uint64 round = currentRound();
        return
            Now({
                time: time(), blockNumber: uint64(block.number), round: round, epoch: epochOf(round), paused: paused()
            });
    }

    /// @inheritdoc IEpochManager
    // Rounds count from 1.
    // slither-disable-next-line incorrect-equality
    function epochOf(uint64 round) public view returns (uint64) {
        unchecked {
            return round == 0 ? 0 : (round - 1) / _roundsPerEpoch + 1;
        }
    }

    /// @inheritdoc IEpochManager
    function firstRound(uint64 epoch) public view returns (uint64) {
        return epoch == 0 ? 0 : (epoch - 1) * _roundsPerEpoch + 1;
    }

    /// @inheritdoc IEpochManager
    function lastRound(uint64 epoch) public view returns (uint64) {
        return epoch * _roundsPerEpoch;
    }

    /// @inheritdoc IEpochManager
    function roundStart(uint64 round) public view returns (uint64) {
        return _genesisTime + round * _roundS - _roundS;
    }

    /// @inheritdoc IEpochManager
    function putOpens(uint64 round) public view returns (uint64) {
        return roundStart(round) + _trainS;
    }

    /// @inheritdoc IEpochManager
    function putDeadline(uint64 round) public view returns (uint64) {
        return putOpens(round) + _putS;
    }

    /// @inheritdoc IEpochManager
    function publishDeadline(uint64 round) public view returns (uint64) {
        return putDeadline(round) + _publishS;
    }

    /// @inheritdoc IEpochManager
    function attestDeadline(uint64 round) public view returns (uint64) {
        return publishDeadline(round) + _attestS;
    }

    /// @inheritdoc IEpochManager
    function beaconOpensAfter(uint64 round, uint8 purpose) public view returns (uint64) {
        if (purpose == ASSIGNMENT) return roundStart(round) - _applyS;
        if (purpose == EVALUATION) return publishDeadline(round);
        revert InvalidPurpose(purpose);
    }

    /// @inheritdoc IEpochManager
    function beaconCutOff(uint64 round, uint8 purpose) public view returns (uint64) {
        if (purpose == ASSIGNMENT) return putOpens(round);
        if (purpose == EVALUATION) return attestDeadline(round) + _applyS / 2;
        revert InvalidPurpose(purpose);
    }

    /// @inheritdoc IEpochManager
    function epochEnd(uint64 epoch) public view returns (uint64) {
        return roundStart(lastRound(epoch) + 1);
    }

    /// @inheritdoc IEpochManager
    function weightCommitDeadline(uint64 epoch) public view returns (uint64) {
        return epochEnd(epoch) + _weightCommitS;
    }

    /// @inheritdoc IEpochManager
    function weightRevealDeadline(uint64 epoch) public view returns (uint64) {
        return weightCommitDeadline(epoch) + _weightRevealS;
    }

    /// @inheritdoc IEpochManager
    function settlementVoidAt(uint64 epoch) external view returns (uint64) {
        return weightRevealDeadline(epoch) + _settlementVoidS;
    }

    /// @dev In 256 bits, and unchecked: pauses never sum to more than the time that passed.
    // 0 is no block: the run goes on.
    // slither-disable-next-line incorrect-equality
    function _time() private view returns (uint256) {
        uint256 word = _pauseWord;
        // forge-lint: disable-start(unsafe-typecast)
        uint256 real = uint64(word >> SINCE_BLOCK_SHIFT) == 0 ? block.timestamp : word >> START_SHIFT;
        unchecked {
            return real - uint64(word >> TOTAL_S_SHIFT);
        }
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @dev `_time`; reverts during a pause.
    function _runningTime() internal view returns (uint256) {
        uint256 word = _pauseWord;
        // forge-lint: disable-start(unsafe-typecast)
        if (uint64(word >> SINCE_BLOCK_SHIFT) != 0) revert Paused();
        unchecked {
            return block.timestamp - uint64(word >> TOTAL_S_SHIFT);
        }
        // forge-lint: disable-end(unsafe-typecast)
    }

    function _setPause(Pause memory p) private {
        _pauseWord = uint256(p.lastStart) << START_SHIFT | uint256(p.sinceBlock) << SINCE_BLOCK_SHIFT
            | uint256(p.totalS) << TOTAL_S_SHIFT | p.totalBlocks;
    }

    function _requireGovernor() private view {
        if (msg.sender != governor) revert OnlyGovernor(msg.sender);
    }
}
