// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDutyBook} from "../src/interfaces/IDutyBook.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Genesis, Params, Role} from "../src/interfaces/IRun.sol";
import {IScoreRegistry} from "../src/interfaces/IScoreRegistry.sol";
import {RunTest} from "./base/RunTest.sol";

/// @notice A pause stops every window, shifts every deadline by its length, and nobody can make it last.
contract PauseTest is RunTest {
    bytes32 internal constant ROOT = keccak256("root");
    bytes32 internal constant SALT = keccak256("salt");
    uint64 internal constant MOST = 300;
    uint64 internal constant EVERY = 3000;
    Actor internal miner;
    Actor internal validator;

    function setUp() public override {
        super.setUp();
        miner = join("miner", Role.Miner, STAKE);
        validator = join("validator", Role.Validator, STAKE);
    }

    // ---------------------------------------------------------------- helpers

    function _pause() private {
        vm.prank(governor);
        epochs.pause();
    }

    function _resume() private {
        vm.prank(governor);
        epochs.resume();
    }

    /// @dev Real seconds, with a block every two of them.
    function _wait(uint64 seconds_) private {
        goTo(uint64(block.timestamp) + seconds_);
    }

    /// @dev To a time of the run's clock, which `goTo` does not know.
    function _goToRunTime(uint64 time) private {
        _wait(time - epochs.time());
    }

    // ---------------------------------------------------------------- bounds

    function test_pause_succeedsAndFreezesTheClocks() public {
        goToEpoch(2);
        uint64 blocks = epochs.blockNumber();
        assertEq(blocks, block.number);
        vm.expectEmit(address(epochs));
        emit IEpochManager.PauseStarted(uint64(block.timestamp), uint64(block.number));
        _pause();
        uint64 time = epochs.time();
        _wait(250);
        assertEq(epochs.time(), time);
        assertEq(epochs.blockNumber(), blocks);
        assertTrue(epochs.paused());
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.runningTime();
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.runningBlock();
        IEpochManager.Now memory view_ = epochs.nowView();
        assertTrue(view_.paused);
        assertEq(view_.time, time);
        assertEq(view_.blockNumber, block.number);
        assertEq(view_.epoch, 2);

        vm.expectEmit(address(epochs));
        emit IEpochManager.PauseEnded(uint64(block.timestamp), uint64(block.number), 250, 125);
        _resume();
        assertFalse(epochs.paused());
        assertEq(epochs.time(), time);
        assertEq(epochs.blockNumber(), blocks);
        _wait(10);
        assertEq(epochs.runningTime(), time + 10);
        assertEq(epochs.runningBlock(), blocks + 5);
        IEpochManager.Pause memory p = epochs.pauseState();
        assertEq(p.lastStart, time);
        assertEq(p.sinceBlock, 0);
        assertEq(p.totalS, 250);
        assertEq(p.totalBlocks, 125);
    }

    function test_pause_succeedsBeforeGenesis() public {
        _pause();
        _wait(100);
        _resume();
        goTo(GENESIS_TIME + 99);
        assertEq(epochs.currentRound(), 0);
        goTo(GENESIS_TIME + 100);
        assertEq(epochs.currentRound(), 1);
    }

    function test_pause_revertsIfNotTheGovernor() public {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.OnlyGovernor.selector, address(this)));
        epochs.pause();
    }

    function test_pause_revertsWithoutAGovernor() public {
        Genesis memory g = genesis();
        g.governor = address(0);
        deployRun(g);
        assertEq(epochs.governor(), address(0));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.OnlyGovernor.selector, governor));
        _pause();
    }

    function test_pause_revertsIfPaused() public {
        _pause();
        vm.expectRevert(IEpochManager.Paused.selector);
        _pause();
    }

    function test_pause_revertsUntilAPeriodAfterTheLastStart() public {
        uint64 start = uint64(block.timestamp);
        _pause();
        _wait(200);
        _resume();
        goTo(start + EVERY - 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.PauseTooSoon.selector, start + EVERY - 1, start + EVERY));
        _pause();
        goTo(start + EVERY);
        _pause();
    }

    /// @dev A pause that nobody ended in time does not eat into the time before the next one.
    function test_pause_revertsUntilTheRunWentOnForTheRestOfThePeriod() public {
        _pause();
        _wait(EVERY);
        epochs.resume();
        uint64 earliest = uint64(block.timestamp) + EVERY - MOST;
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.PauseTooSoon.selector, block.timestamp, earliest));
        _pause();
        goTo(earliest);
        _pause();
    }

    function test_resume_revertsForAnyoneElseUntilThePauseLastedTooLong() public {
        uint64 start = uint64(block.timestamp);
        _pause();
        goTo(start + MOST - 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.PauseHolds.selector, start + MOST - 1, start + MOST));
        epochs.resume();
        goTo(start + MOST);
        epochs.resume();
        assertEq(rewards.refundsOf(address(this)), 0.5 ether);
        assertEq(epochs.pauseState().totalS, MOST);
    }

    function test_resume_paysTheGovernorNothing() public {
        _pause();
        _wait(MOST + 1);
        _resume();
        assertEq(rewards.refundsOf(governor), 0);
    }

    function test_resume_revertsIfNotPaused() public {
        vm.expectRevert(IEpochManager.NotPaused.selector);
        _resume();
    }

    // ---------------------------------------------------------------- what stops

    function test_windows_revertDuringAPause() public {
        goTo(epochs.roundStart(1) - 5);
        _pause();
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.fixBeacon(1, ASSIGNMENT);
        _resume();
        epochs.fixBeacon(1, ASSIGNMENT);
        vm.roll(block.number + 3);
        _wait(EVERY);
        uint64 round = epochs.currentRound() + 2;
        _goToRunTime(epochs.attestDeadline(round - 1) + 1);
        epochs.fixBeacon(round, ASSIGNMENT);
        vm.roll(block.number + 3);
        _pause();
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.recordBeacon(round, ASSIGNMENT);
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.commit(round, ROOT);
        vm.expectRevert(IEpochManager.Paused.selector);
        vm.prank(validator.operator);
        epochs.attest(round, ROOT, "");
        vm.expectRevert(IEpochManager.Paused.selector);
        epochs.finaliseRoot(1, ROOT, new bytes32[](0), 0);
        vm.expectRevert(IEpochManager.Paused.selector);
        vm.prank(validator.operator);
        scores.commitWeights(1, ROOT);
        vm.expectRevert(IEpochManager.Paused.selector);
        scores.revealWeights(1, 0, validator.account, "", SALT);
        vm.expectRevert(IEpochManager.Paused.selector);
        scores.penaliseMissingReveal(1, 0);
        vm.expectRevert(IEpochManager.Paused.selector);
        IDutyBook(address(epochs)).dutyNow(validator.operator, 1);
    }

    /// @dev Targets are real blocks: one that expired meanwhile is drawn again, and the window is as long as it would have been.
    function test_fixBeacon_succeedsAgainAfterALongPause() public {
        goTo(epochs.attestDeadline(2) + 1);
        epochs.fixBeacon(3, ASSIGNMENT);
        uint64 target = epochs.beaconTarget(3, ASSIGNMENT);
        _pause();
        vm.roll(target + 257);
        vm.warp(block.timestamp + MOST);
        epochs.resume();
        vm.expectPartialRevert(IEpochManager.BeaconExpired.selector);
        epochs.recordBeacon(3, ASSIGNMENT);
        epochs.fixBeacon(3, ASSIGNMENT);
        assertEq(epochs.beaconTarget(3, ASSIGNMENT), target + 259);
        vm.roll(target + 260);
        vm.warp(epochs.beaconCutOff(3, ASSIGNMENT) + MOST);
        epochs.recordBeacon(3, ASSIGNMENT);
    }

    // ---------------------------------------------------------------- shifted deadlines

    function _pauseInTheMiddleOf(uint64 time, uint64 length) private {
        goTo(time);
        _pause();
        _wait(length);
        _resume();
    }

    function test_commit_succeedsAtTheShiftedDeadlineAndRevertsAfterIt() public {
        _pauseInTheMiddleOf(epochs.putOpens(1) + 3, 77);
        uint64 deadline = epochs.putDeadline(1);
        vm.warp(deadline + 77);
        vm.prank(miner.operator);
        epochs.commit(1, ROOT);
        vm.warp(deadline + 78);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, deadline + 1, deadline));
        epochs.commit(1, ROOT);
    }

    function test_attest_succeedsAtTheShiftedDeadlineAndRevertsAfterIt() public {
        _pauseInTheMiddleOf(epochs.publishDeadline(1), 77);
        uint64 opens = epochs.publishDeadline(1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, opens, opens));
        vm.prank(validator.operator);
        epochs.attest(1, ROOT, "");
        uint64 deadline = epochs.attestDeadline(1);
        vm.warp(deadline + 78);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, deadline + 1, deadline));
        vm.prank(validator.operator);
        epochs.attest(1, ROOT, "");
        vm.warp(deadline + 77);
        vm.prank(validator.operator);
        epochs.attest(1, ROOT, "");
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, deadline, deadline));
        epochs.tally(1, 0, ROOT, new IEpochManager.Ballot[](0));
        bytes32[] memory hashes = new bytes32[](1);
        hashes[0] = keccak256("");
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, deadline, deadline));
        epochs.finaliseRoot(1, ROOT, hashes, 1);
        vm.warp(deadline + 78);
        epochs.finaliseRoot(1, ROOT, hashes, 1);
    }

    function test_weights_succeedAtTheShiftedDeadlinesAndRevertAfterThem() public {
        uint64 end = epochs.epochEnd(1);
        bytes32 root = scores.weightsRootOf(hex"0001");
        bytes32 commitment = keccak256(abi.encode(epochs.run(), validator.account, uint64(1), root, SALT));
        _pauseInTheMiddleOf(end, 77);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end, end));
        vm.prank(validator.operator);
        scores.commitWeights(1, commitment);
        vm.warp(end + 77 + 21);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, end + 21, end + 20));
        vm.prank(validator.operator);
        scores.commitWeights(1, commitment);
        vm.warp(end + 77 + 20);
        vm.prank(validator.operator);
        scores.commitWeights(1, commitment);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end + 20, end + 20));
        scores.revealWeights(1, 0, validator.account, hex"0001", SALT);
        vm.warp(end + 77 + 41);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, end + 41, end + 40));
        scores.revealWeights(1, 0, validator.account, hex"0001", SALT);
        vm.warp(end + 77 + 40);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end + 40, end + 40));
        scores.penaliseMissingReveal(1, 0);
        scores.revealWeights(1, 0, validator.account, hex"0001", SALT);
        uint64 closes = epochs.epochEnd(4);
        vm.warp(closes + 77);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, closes, closes - 1));
        scores.penaliseMissingReveal(1, 0);
    }

    // ---------------------------------------------------------------- fuzz

    /// @dev However the governor and strangers pause and resume, the run's clock has moved by exactly the time and blocks
    /// spent outside pauses, which a plain count beside it knows. So no window is ever shorter or longer.
    function testFuzz_pause_movesNoWindow(uint256 seed) public {
        uint64 time = epochs.time();
        uint64 blocks = epochs.blockNumber();
        uint64 paused = 0;
        uint64 real = uint64(block.timestamp);
        uint64 firstStart = 0;
        bool isPaused = false;
        for (uint256 step = 0; step < 60; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint64 seconds_ = uint64((seed >> 8) % (seed & 1 == 0 ? 50 : 1500));
            uint64 moved = uint64((seed >> 64) % 40);
            vm.warp(block.timestamp + seconds_);
            vm.roll(block.number + moved);
            if (!isPaused) (time, blocks) = (time + seconds_, blocks + moved);
            assertEq(epochs.time(), time);
            assertEq(epochs.blockNumber(), blocks);
            assertEq(epochs.paused(), isPaused);
            uint256 what = (seed >> 128) % 3;
            if (what == 0) {
                vm.prank(governor);
                try epochs.pause() {
                    assertFalse(isPaused);
                    // Running for at least EVERY - MOST since the last pause.
                    if (firstStart != 0) assertGe(time, firstStart + EVERY - MOST);
                    isPaused = true;
                    real = uint64(block.timestamp);
                    firstStart = time;
                } catch {}
            } else {
                if (what == 1) vm.prank(governor);
                try epochs.resume() {
                    assertTrue(isPaused);
                    if (what == 2) assertGe(block.timestamp - real, MOST);
                    paused += uint64(block.timestamp) - real;
                    isPaused = false;
                } catch {
                    if (isPaused) assertTrue(what == 2 && block.timestamp - real < MOST);
                }
            }
            if (!isPaused) {
                assertEq(epochs.runningTime(), time);
                assertEq(epochs.runningBlock(), blocks);
                assertEq(epochs.pauseState().totalS, paused);
            }
        }
    }

    /// @dev A commit goes through exactly where the window, shifted by the pause, is open.
    function testFuzz_commit_succeedsExactlyInTheShiftedWindow(uint64 start, uint64 length, uint64 moment) public {
        uint64 opens = epochs.putOpens(1);
        start = uint64(bound(start, opens - 30, opens + 30));
        length = uint64(bound(length, 0, MOST));
        moment = uint64(bound(moment, opens - 40, opens + 60 + length));
        uint64 deadline = epochs.putDeadline(1);
        bool stopped = moment >= start && moment < start + length;
        uint64 run = moment < start ? moment : moment < start + length ? start : moment - length;
        goTo(start < moment ? start : moment);
        if (start <= moment) _pause();
        if (start + length <= moment && start <= moment) {
            _wait(length);
            _resume();
        }
        vm.warp(moment);
        if (stopped) vm.expectRevert(IEpochManager.Paused.selector);
        else if (run < opens) vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, run, opens));
        else if (run > deadline) vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, run, deadline));
        vm.prank(miner.operator);
        epochs.commit(1, ROOT);
    }
}
