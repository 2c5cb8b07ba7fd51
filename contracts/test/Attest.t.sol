// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

contract AttestTest is RunTest {
    bytes32 internal constant ROOT = keccak256("root");
    Actor internal a;
    Actor internal b;
    Actor internal c;
    Actor internal miner;

    function setUp() public override {
        super.setUp();
        a = join("a", Role.Validator, 100 ether);
        b = join("b", Role.Validator, 60 ether);
        c = join("c", Role.Validator, 60 ether);
        miner = join("miner", Role.Miner, STAKE);
        for (uint256 i = 1; i < 10; ++i) {
            join(vm.toString(i), Role.Miner, 10 ether);
        }
    }

    function _attest(Actor memory who, uint64 round, bytes32 root, bytes memory bitmap) private {
        vm.prank(who.operator);
        epochs.attest(round, root, bitmap);
    }

    function test_attest_succeedsAfterPublishUntilTheDeadline() public {
        uint64 publish = epochs.publishDeadline(1);
        goTo(publish);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, publish, publish));
        _attest(a, 1, ROOT, hex"ff03");
        goTo(publish + 1);
        vm.expectEmit(address(epochs));
        emit IEpochManager.Attested(1, a.account, 0, ROOT, hex"ff03");
        _attest(a, 1, ROOT, hex"ff03");
        IEpochManager.Attestation memory kept = epochs.attestation(1, 0);
        assertEq(kept.account, a.account);
        assertEq(kept.root, ROOT);
        assertEq(kept.bitmapHash, keccak256(hex"ff03"));
        assertEq(epochs.attestation(11, 0).account, address(0));
        goTo(epochs.attestDeadline(1));
        _attest(b, 1, ROOT, "");
        goTo(epochs.attestDeadline(1) + 1);
        vm.expectPartialRevert(IEpochManager.TooLate.selector);
        _attest(c, 1, ROOT, "");
    }

    function test_attest_revertsIfNotAValidatorsOperator() public {
        goTo(epochs.attestDeadline(1));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotValidator.selector, miner.operator, 1));
        _attest(miner, 1, ROOT, "");
        vm.prank(a.account);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotValidator.selector, a.account, 1));
        epochs.attest(1, ROOT, "");
    }

    function test_attest_revertsIfAttestedAlready() public {
        goTo(epochs.attestDeadline(1));
        _attest(a, 1, ROOT, "");
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.AlreadyAttested.selector, 1, 0));
        _attest(a, 1, keccak256("other"), "");
    }

    /// @dev Ten slots: two bits of the second byte are in use.
    function test_attest_revertsIfBitsGoBeyondTheSlots() public {
        goTo(epochs.attestDeadline(1));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BitmapTooLong.selector, 2, 10));
        _attest(a, 1, ROOT, hex"0004");
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BitmapTooLong.selector, 3, 10));
        _attest(a, 1, ROOT, hex"000000");
        _attest(a, 1, ROOT, hex"0003");
    }

    function testFuzz_attest_acceptsExactlyTheBitsOfSlots(bytes2 bits) public {
        goTo(epochs.attestDeadline(1));
        // Little-endian in bytes: slot 8 is bit 0 of the second byte.
        bool fits = uint8(bits[1]) < 4;
        if (!fits) vm.expectPartialRevert(IEpochManager.BitmapTooLong.selector);
        _attest(a, 1, ROOT, abi.encodePacked(bits));
    }

    function test_finaliseRoot_succeedsWithMoreThanHalfOfTheTotalStake() public {
        goTo(epochs.attestDeadline(1));
        _attest(b, 1, ROOT, "");
        _attest(c, 1, ROOT, "");
        uint64 deadline = epochs.attestDeadline(1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, deadline, deadline));
        epochs.finaliseRoot(1, ROOT);
        goTo(deadline + 1);
        vm.expectEmit(address(epochs));
        emit IEpochManager.RootFinalised(1, ROOT, 120 ether, 220 ether);
        epochs.finaliseRoot(1, ROOT);
        assertEq(epochs.finalisedRoot(1), ROOT);
        assertEq(epochs.finalisedRoot(2), 0);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.RootAlreadyFinalised.selector, 1, ROOT));
        epochs.finaliseRoot(1, ROOT);
    }

    function test_finaliseRoot_revertsIfTheMajorityDisagrees() public {
        goTo(epochs.attestDeadline(1));
        _attest(a, 1, ROOT, "");
        _attest(b, 1, keccak256("other"), "");
        goTo(epochs.attestDeadline(1) + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoMajority.selector, 1, ROOT, 100 ether, 220 ether));
        epochs.finaliseRoot(1, ROOT);
    }

    function test_finaliseRoot_revertsIfTwiceTheStakeEqualsTheTotal() public {
        stakeMore(b, 20 ether);
        stakeMore(c, 20 ether);
        goToEpoch(1);
        vm.prank(a.account);
        vault.requestUnbond(20 ether);
        vm.prank(c.account);
        vault.requestUnbond(80 ether);
        goTo(epochs.attestDeadline(3));
        _attest(a, 3, ROOT, "");
        goTo(epochs.attestDeadline(3) + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoMajority.selector, 3, ROOT, 80 ether, 160 ether));
        epochs.finaliseRoot(3, ROOT);
    }

    function test_finaliseRoot_revertsIfZero() public {
        goTo(epochs.attestDeadline(1) + 1);
        vm.expectRevert(IEpochManager.ZeroDigest.selector);
        epochs.finaliseRoot(1, 0);
    }

    function stakeMore(Actor memory who, uint256 amount) internal {
        stake(who.account, amount);
    }
}
