// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

contract CommitTest is RunTest {
    bytes32 internal constant DIGEST = keccak256("submission");
    Actor internal miner;
    Actor internal validator;

    function setUp() public override {
        super.setUp();
        join("other", Role.Miner, STAKE);
        miner = join("miner", Role.Miner, STAKE);
        validator = join("validator", Role.Validator, STAKE);
    }

    function _commit(address sender, uint64 round) private {
        vm.prank(sender);
        epochs.commit(round, DIGEST);
    }

    function test_commit_succeedsWithinTheWindow() public {
        goTo(epochs.putOpens(1));
        vm.expectEmit(address(epochs));
        emit IEpochManager.Committed(1, miner.account, 1, DIGEST);
        _commit(miner.operator, 1);
        assertTrue(epochs.isCommitted(1, miner.operator, DIGEST));
        assertFalse(epochs.isCommitted(1, miner.account, DIGEST));
        assertFalse(epochs.isCommitted(1, validator.operator, DIGEST));
        assertFalse(epochs.isCommitted(11, miner.operator, DIGEST));
        assertFalse(epochs.isCommitted(1, miner.operator, keccak256("other")));
        assertFalse(epochs.isCommitted(2, miner.operator, 0));
    }

    function test_commit_revertsBeforeAndAfterTheWindow() public {
        uint64 opens = epochs.putOpens(2);
        goTo(opens - 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, opens - 1, opens));
        _commit(miner.operator, 2);
        uint64 deadline = epochs.putDeadline(2);
        goTo(deadline + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, deadline + 1, deadline));
        _commit(miner.operator, 2);
        vm.warp(deadline);
        _commit(miner.operator, 2);
    }

    function test_commit_revertsIfNotTheMinersOperator() public {
        goTo(epochs.putOpens(1));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotMiner.selector, miner.account, 1));
        _commit(miner.account, 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotMiner.selector, validator.operator, 1));
        _commit(validator.operator, 1);
    }

    function test_commit_revertsIfTheSlotStartsLater() public {
        goToEpoch(1);
        Actor memory late = join("late", Role.Miner, STAKE);
        goTo(epochs.putOpens(2));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotMiner.selector, late.operator, 2));
        _commit(late.operator, 2);
        goTo(epochs.putOpens(3));
        _commit(late.operator, 3);
    }

    function test_commit_revertsIfCommittedAlready() public {
        goTo(epochs.putOpens(1));
        _commit(miner.operator, 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.AlreadyCommitted.selector, 1, 1));
        vm.prank(miner.operator);
        epochs.commit(1, keccak256("another"));
    }

    function test_commit_revertsIfDigestIsZero() public {
        goTo(epochs.putOpens(1));
        vm.expectRevert(IEpochManager.ZeroDigest.selector);
        vm.prank(miner.operator);
        epochs.commit(1, 0);
    }

    /// @dev Places are used again after ringSize rounds, for the next round of the same place.
    function test_commit_succeedsInAUsedPlace() public {
        goTo(epochs.putOpens(1));
        _commit(miner.operator, 1);
        goTo(epochs.putOpens(11));
        _commit(miner.operator, 11);
        assertTrue(epochs.isCommitted(11, miner.operator, DIGEST));
        assertFalse(epochs.isCommitted(1, miner.operator, DIGEST));
    }

    function testFuzz_commit_lastsThroughTheFraudWindow(uint8 rounds) public {
        uint64 later = uint64(bound(rounds, 1, 9));
        goTo(epochs.putOpens(1));
        _commit(miner.operator, 1);
        for (uint64 round = 2; round <= 1 + later; ++round) {
            goTo(epochs.putOpens(round));
            _commit(miner.operator, round);
        }
        assertTrue(epochs.isCommitted(1, miner.operator, DIGEST));
    }
}
