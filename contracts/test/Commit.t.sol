// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

contract CommitTest is RunTest {
    bytes32 internal constant DIGEST = keccak256("submission");
    Actor internal miner;
    Actor internal other;

    function setUp() public override {
        super.setUp();
        other = join("other", Role.Miner, STAKE);
        miner = join("miner", Role.Miner, STAKE);
    }

    function _commit(address sender, uint64 round) private {
        vm.prank(sender);
        epochs.commit(round, DIGEST);
    }

    function test_commit_succeedsWithinTheWindow() public {
        goTo(epochs.putOpens(1));
        vm.expectEmit(address(epochs));
        emit IEpochManager.Committed(1, miner.operator, DIGEST);
        _commit(miner.operator, 1);
        assertTrue(epochs.isCommitted(1, miner.operator, DIGEST));
        assertFalse(epochs.isCommitted(1, miner.account, DIGEST));
        assertFalse(epochs.isCommitted(1, other.operator, DIGEST));
        assertFalse(epochs.isCommitted(11, miner.operator, DIGEST));
        assertFalse(epochs.isCommitted(1, miner.operator, keccak256("other")));
        assertFalse(epochs.isCommitted(2, miner.operator, 0));
        assertFalse(epochs.isCommitted(0, miner.operator, DIGEST));
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

    /// @dev A stranger's commit costs it gas and disturbs nobody.
    function test_commit_succeedsForAnyoneApartFromOthers() public {
        goTo(epochs.putOpens(1));
        _commit(address(this), 1);
        _commit(other.operator, 1);
        _commit(miner.operator, 1);
        assertTrue(epochs.isCommitted(1, miner.operator, DIGEST));
    }

    function test_commit_revertsInRoundZero() public {
        goTo(GENESIS_TIME - 50);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidRound.selector, 0));
        _commit(miner.operator, 0);
    }

    /// @dev 224 bits of the digest are kept, the low 32 bits tell the lap.
    function testFuzz_isCommitted_tellsDigestsApart(bytes32 digest, uint8 bit) public {
        vm.assume(digest != 0);
        goTo(epochs.putOpens(1));
        vm.prank(miner.operator);
        epochs.commit(1, digest);
        bytes32 near = digest ^ bytes32(uint256(1) << bit);
        assertEq(epochs.isCommitted(1, miner.operator, near), near != 0 && bit < 32);
    }

    /// @dev A commit in a window never passes for one of another round, however far.
    function testFuzz_isCommitted_tellsRoundsApart(uint64 round, uint64 other_) public {
        round = uint64(bound(round, 1, 1e9));
        other_ = uint64(bound(other_, 1, 1e9));
        goTo(epochs.putOpens(round));
        _commit(miner.operator, round);
        assertEq(epochs.isCommitted(other_, miner.operator, DIGEST), other_ == round);
        uint64 lap = round + epochs.ringSize();
        assertFalse(epochs.isCommitted(lap, miner.operator, DIGEST));
    }

    function test_commit_revertsIfCommittedAlready() public {
        goTo(epochs.putOpens(1));
        _commit(miner.operator, 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.AlreadyCommitted.selector, 1, miner.operator));
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
