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
        assertTrue(epochs.attested(1, 0, ROOT, keccak256(hex"ff03")));
        assertFalse(epochs.attested(1, 0, ROOT, keccak256(hex"ff02")));
        assertFalse(epochs.attested(1, 0, keccak256("other"), keccak256(hex"ff03")));
        assertFalse(epochs.attested(1, 1, ROOT, keccak256(hex"ff03")));
        assertFalse(epochs.attested(11, 0, ROOT, keccak256(hex"ff03")));
        assertTrue(epochs.hasAttested(1, 0));
        assertFalse(epochs.hasAttested(1, 1));
        assertFalse(epochs.hasAttested(11, 0));
        assertFalse(epochs.hasAttested(0, 0));
        assertFalse(epochs.attested(0, 0, ROOT, keccak256(hex"ff03")));
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

    /// @dev For attestations with empty bitmaps.
    function _finalise(uint64 round, uint32 mask) private {
        bytes32[] memory hashes = new bytes32[](32);
        uint256 count = 0;
        for (uint32 slot = 0; slot < 32; ++slot) {
            if (mask >> slot & 1 == 1) hashes[count++] = keccak256("");
        }
        assembly {
            mstore(hashes, count)
        }
        epochs.finaliseRoot(round, ROOT, hashes, mask);
    }

    function test_finaliseRoot_succeedsWithMoreThanHalfOfTheTotalStake() public {
        goTo(epochs.attestDeadline(1));
        _attest(b, 1, ROOT, "");
        _attest(c, 1, ROOT, "");
        uint64 deadline = epochs.attestDeadline(1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, deadline, deadline));
        _finalise(1, 6);
        goTo(deadline + 1);
        vm.expectEmit(address(epochs));
        emit IEpochManager.RootFinalised(1, ROOT, 120 ether, 220 ether);
        _finalise(1, 6);
        assertEq(epochs.finalisedRoot(1), ROOT);
        assertEq(epochs.finalisedRoot(2), 0);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.RootAlreadyFinalised.selector, 1, ROOT));
        _finalise(1, 6);
    }

    function test_finaliseRoot_revertsIfTheMajorityDisagrees() public {
        goTo(epochs.attestDeadline(1));
        _attest(a, 1, ROOT, "");
        _attest(b, 1, keccak256("other"), "");
        goTo(epochs.attestDeadline(1) + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoMajority.selector, 1, ROOT, 100 ether, 220 ether));
        _finalise(1, 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotAttested.selector, 1, 1));
        _finalise(1, 3);
    }

    function test_finaliseRoot_revertsIfTheListDoesNotFit() public {
        goTo(epochs.attestDeadline(1));
        _attest(a, 1, ROOT, "");
        _attest(b, 1, ROOT, hex"01");
        goTo(epochs.attestDeadline(1) + 1);
        bytes32[] memory hashes = new bytes32[](2);
        (hashes[0], hashes[1]) = (keccak256(""), keccak256(hex"01"));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotAttested.selector, 1, 32));
        epochs.finaliseRoot(1, ROOT, hashes, 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotAttested.selector, 1, 2));
        epochs.finaliseRoot(1, ROOT, hashes, 7);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotAttested.selector, 1, 3));
        epochs.finaliseRoot(1, ROOT, hashes, 11);
        (hashes[0], hashes[1]) = (hashes[1], hashes[0]);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NotAttested.selector, 1, 0));
        epochs.finaliseRoot(1, ROOT, hashes, 3);
        (hashes[0], hashes[1]) = (hashes[1], hashes[0]);
        epochs.finaliseRoot(1, ROOT, hashes, 3);
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
        _finalise(3, 1);
    }

    function test_finaliseRoot_revertsIfZero() public {
        goTo(epochs.attestDeadline(1) + 1);
        vm.expectRevert(IEpochManager.ZeroDigest.selector);
        epochs.finaliseRoot(1, 0, new bytes32[](0), 0);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidRound.selector, 0));
        epochs.finaliseRoot(0, ROOT, new bytes32[](0), 0);
    }

    /// @dev What the first root of an epoch notes is what registry and vault say, also when its place is used again.
    function testFuzz_snapshotStake_equalsTheRegistrys(uint256 seed) public {
        stakeMore(a, 1000 ether);
        for (uint64 epoch = 1; epoch < 7; ++epoch) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint64 round = epochs.firstRound(epoch);
            goTo(epochs.attestDeadline(round));
            _attest(a, round, ROOT, "");
            goTo(epochs.attestDeadline(round) + 1);
            if (seed % 3 != 0) _finalise(round, 1);
            stakeMore(a, seed >> 8 & 0xffffffffff);
            if (seed % 5 == 0) join(vm.toString(seed), Role.Validator, 50 ether);
            for (uint64 old = 1; old <= epoch; ++old) {
                assertEq(epochs.snapshotStake(old), registry.totalValidatorStake(old));
            }
        }
        assertEq(epochs.snapshotStake(0), 0);
    }

    function stakeMore(Actor memory who, uint256 amount) internal {
        stake(who.account, amount);
    }
}
