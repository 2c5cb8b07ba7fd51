// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {RunTest} from "./base/RunTest.sol";

contract BeaconTest is RunTest {
    function test_fixBeacon_revertsAtTheDeadlineBeforeAndSucceedsAfterIt() public {
        uint64 opensAfter = epochs.attestDeadline(2);
        goTo(opensAfter);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, opensAfter, opensAfter));
        epochs.fixBeacon(3, ASSIGNMENT);
        goTo(opensAfter + 1);
        vm.expectEmit(address(epochs));
        emit IEpochManager.BeaconFixed(3, ASSIGNMENT, uint64(block.number) + 2);
        epochs.fixBeacon(3, ASSIGNMENT);
        assertEq(epochs.beaconTarget(3, ASSIGNMENT), block.number + 2);
    }

    function test_fixBeacon_succeedsForRoundOneBeforeGenesis() public {
        goTo(GENESIS_TIME - 9);
        epochs.fixBeacon(1, ASSIGNMENT);
    }

    function test_fixBeacon_revertsAfterTheCutOff() public {
        uint64 cutOff = epochs.putOpens(3);
        goTo(cutOff + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, cutOff + 1, cutOff));
        epochs.fixBeacon(3, ASSIGNMENT);
        vm.warp(cutOff);
        epochs.fixBeacon(3, ASSIGNMENT);
    }

    function test_fixBeacon_revertsIfFixedAlready() public {
        goTo(epochs.attestDeadline(2) + 1);
        epochs.fixBeacon(3, ASSIGNMENT);
        uint64 target = epochs.beaconTarget(3, ASSIGNMENT);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconAlreadyFixed.selector, 3, ASSIGNMENT, target));
        epochs.fixBeacon(3, ASSIGNMENT);
    }

    function test_fixBeacon_succeedsAgainOnceTheTargetExpired() public {
        goTo(epochs.attestDeadline(2) + 1);
        epochs.fixBeacon(3, ASSIGNMENT);
        uint64 target = epochs.beaconTarget(3, ASSIGNMENT);
        vm.roll(target + 256);
        vm.expectPartialRevert(IEpochManager.BeaconAlreadyFixed.selector);
        epochs.fixBeacon(3, ASSIGNMENT);
        vm.roll(target + 257);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconExpired.selector, target, target + 257));
        epochs.recordBeacon(3, ASSIGNMENT);
        epochs.fixBeacon(3, ASSIGNMENT);
        assertEq(epochs.beaconTarget(3, ASSIGNMENT), target + 259);
    }

    function test_fixBeacon_revertsIfPurposeOrRoundIsUnknown() public {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidPurpose.selector, 3));
        epochs.fixBeacon(1, 3);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidRound.selector, 0));
        epochs.fixBeacon(0, 1);
    }

    function test_recordBeacon_succeedsOnceTheTargetIsMined() public {
        goTo(epochs.publishDeadline(3) + 1);
        epochs.fixBeacon(3, EVALUATION);
        uint64 target = epochs.beaconTarget(3, EVALUATION);
        vm.roll(target);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconNotReady.selector, target, target));
        epochs.recordBeacon(3, EVALUATION);
        vm.roll(target + 1);
        bytes32 value = keccak256(abi.encode(blockhash(target), epochs.run(), uint64(3), uint8(EVALUATION)));
        vm.expectEmit(address(epochs));
        emit IEpochManager.BeaconRecorded(3, EVALUATION, target, value);
        assertEq(epochs.recordBeacon(3, EVALUATION), value);
        assertEq(epochs.beacon(3, EVALUATION), value);
        assertEq(epochs.beacon(3, ASSIGNMENT), 0);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconAlreadyRecorded.selector, 3, EVALUATION));
        epochs.recordBeacon(3, EVALUATION);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconAlreadyRecorded.selector, 3, EVALUATION));
        epochs.fixBeacon(3, EVALUATION);
    }

    function test_recordBeacon_revertsIfNotFixed() public {
        goTo(epochs.attestDeadline(2) + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BeaconNotFixed.selector, 3, ASSIGNMENT));
        epochs.recordBeacon(3, ASSIGNMENT);
    }

    function test_recordBeacon_succeedsAtTheCutOffAndRevertsAfterIt() public {
        goTo(epochs.publishDeadline(3) + 1);
        epochs.fixBeacon(3, EVALUATION);
        uint64 cutOff = epochs.beaconCutOff(3, EVALUATION);
        goTo(cutOff + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, cutOff + 1, cutOff));
        epochs.recordBeacon(3, EVALUATION);
        vm.warp(cutOff);
        epochs.recordBeacon(3, EVALUATION);
    }

    function test_credit_succeedsOncePerChoreUpToTheCap() public {
        for (uint64 round = 1; round <= 2; ++round) {
            drawBeacon(round, ASSIGNMENT);
            drawBeacon(round, EVALUATION);
        }
        // Round 1's assignment was drawn before genesis: epoch 1 bears it.
        assertEq(rewards.choresOf(1), 8 * 0.5 ether);
        assertEq(rewards.refundsOf(address(this)), 4 ether);
        uint256 balance = token.balanceOf(address(this));
        rewards.withdrawRefunds(address(this));
        assertEq(token.balanceOf(address(this)) - balance, 4 ether);
        assertEq(rewards.refundsOwed(), 0);
    }

    function test_roundView_succeeds() public {
        bytes32 value = drawBeacon(3, ASSIGNMENT);
        IEpochManager.RoundView memory view_ = epochs.roundView(3);
        assertEq(view_.epoch, 2);
        assertEq(view_.assignment, value);
        assertEq(view_.assignmentTarget, epochs.beaconTarget(3, ASSIGNMENT));
        assertEq(view_.end, epochs.roundStart(4));
        assertEq(view_.attestDeadline, epochs.attestDeadline(3));
        assertEq(view_.evaluation, 0);
    }
}
