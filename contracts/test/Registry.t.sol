// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "../src/interfaces/IRegistry.sol";
import {Params, Role} from "../src/interfaces/IRun.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {RunTest} from "./base/RunTest.sol";

contract RegistryTest is RunTest {
    string internal constant URL = "http://node.example:8080";

    function params() internal view override returns (Params memory p) {
        p = super.params();
        p.maxMiners = 3;
    }

    function _staked(string memory name) private returns (Actor memory a) {
        a = actor(name);
        stake(a.account, STAKE);
    }

    // ---------------------------------------------------------------- register

    function test_register_succeedsBeforeGenesisFromEpochOne() public {
        Actor memory m = _staked("miner");
        bytes memory sig = consent(m);
        vm.expectEmit(address(registry));
        emit IRegistry.OperatorSet(m.account, m.operator, 1);
        vm.expectEmit(address(registry));
        emit IRegistry.Registered(m.account, Role.Miner, 0, m.operator, address(99), URL, 1);
        vm.prank(m.account);
        assertEq(registry.register(Role.Miner, m.operator, sig, address(99), URL), 0);

        assertEq(registry.slotAccount(Role.Miner, 0, 0), address(0));
        assertEq(registry.slotAccount(Role.Miner, 0, 1), m.account);
        (Role role, uint32 slot) = registry.slotOf(m.account, 1);
        assertEq(uint8(role), uint8(Role.Miner));
        assertEq(slot, 0);
        assertEq(registry.operatorAt(m.account, 0), address(0));
        assertEq(registry.operatorAt(m.account, 1), m.operator);
        assertEq(registry.accountOfOperator(m.operator), m.account);
        assertEq(registry.payoutOf(m.account), address(99));
        assertEq(registry.endpointOf(m.account), URL);
        assertEq(registry.slotCount(Role.Miner), 1);
    }

    function test_register_succeedsFromTheNextEpoch() public {
        goToEpoch(4);
        Actor memory v = join("validator", Role.Validator, STAKE);
        assertEq(registry.slotAccount(Role.Validator, 0, 4), address(0));
        assertEq(registry.slotAccount(Role.Validator, 0, 5), v.account);
        assertEq(registry.totalValidatorStake(4), 0);
        assertEq(registry.totalValidatorStake(5), STAKE);
        (address account, Role role,) = registry.duty(v.operator, epochs.currentRound() + 1, 4);
        assertEq(account, v.account);
        assertEq(uint8(role), uint8(Role.None));
    }

    function test_register_revertsIfStakeIsBelowTheMinimum() public {
        Actor memory m = actor("miner");
        stake(m.account, 10 ether - 1);
        bytes memory sig = consent(m);
        vm.prank(m.account);
        vm.expectRevert(
            abi.encodeWithSelector(IRegistry.StakeTooLow.selector, m.account, 10 ether - 1, uint256(10 ether))
        );
        registry.register(Role.Miner, m.operator, sig, address(0), URL);
    }

    function test_register_revertsIfRegisteredAlready() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.AlreadyRegistered.selector, m.account));
        registry.register(Role.Validator, m.operator, "", address(0), URL);
    }

    function test_register_revertsIfRoleIsNone() public {
        vm.expectRevert(IRegistry.InvalidRole.selector);
        registry.register(Role.None, address(1), "", address(0), URL);
    }

    /// @dev Seen elsewhere: an attacker registers an honest operator's key and collects its rewards.
    function test_register_revertsIfTheOperatorDidNotSign() public {
        Actor memory honest = actor("honest");
        Actor memory thief = _staked("thief");
        bytes memory sig = sign(thief.operatorKey, registry.consentDigest(thief.account, 0));
        vm.prank(thief.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.InvalidConsent.selector, honest.operator, thief.operator));
        registry.register(Role.Miner, honest.operator, sig, address(0), URL);
    }

    function test_register_revertsIfTheConsentWasForAnotherAccount() public {
        Actor memory honest = _staked("honest");
        Actor memory thief = _staked("thief");
        bytes memory sig = consent(honest);
        vm.prank(thief.account);
        vm.expectPartialRevert(IRegistry.InvalidConsent.selector);
        registry.register(Role.Miner, honest.operator, sig, address(0), URL);
    }

    function test_register_revertsIfTheOperatorServesAnotherAccount() public {
        Actor memory first = join("first", Role.Miner, STAKE);
        Actor memory second = _staked("second");
        bytes memory sig = sign(first.operatorKey, registry.consentDigest(second.account, 0));
        vm.prank(second.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.OperatorTaken.selector, first.operator, first.account));
        registry.register(Role.Miner, first.operator, sig, address(0), URL);
    }

    /// @dev Seen elsewhere: the same signature passes in its 64-byte form.
    function test_register_revertsIfTheSignatureHas64Bytes() public {
        Actor memory m = _staked("miner");
        (, bytes32 r, bytes32 s) = vm.sign(m.operatorKey, registry.consentDigest(m.account, 0));
        bytes memory short = abi.encodePacked(r, s);
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 64));
        registry.register(Role.Miner, m.operator, short, address(0), URL);
    }

    function test_register_revertsIfTheSubnetIsFull() public {
        join("a", Role.Miner, STAKE);
        join("b", Role.Miner, STAKE);
        join("c", Role.Miner, STAKE);
        Actor memory d = _staked("d");
        bytes memory sig = consent(d);
        vm.prank(d.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.SubnetFull.selector, Role.Miner, 3));
        registry.register(Role.Miner, d.operator, sig, address(0), URL);
    }

    function test_register_revertsIfThirtyTwoValidatorsAreThere() public {
        for (uint256 i = 0; i < 32; ++i) {
            join(vm.toString(i), Role.Validator, STAKE);
        }
        assertEq(registry.totalValidatorStake(1), 32 * STAKE);
        Actor memory d = _staked("d");
        bytes memory sig = consent(d);
        vm.prank(d.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.SubnetFull.selector, Role.Validator, 32));
        registry.register(Role.Validator, d.operator, sig, address(0), URL);
    }

    function test_register_revertsIfTheEndpointIsTooLong() public {
        Actor memory m = _staked("miner");
        bytes memory sig = consent(m);
        string memory longer = string(new bytes(257));
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.EndpointTooLong.selector, 257, 256));
        registry.register(Role.Miner, m.operator, sig, address(0), longer);
    }

    function test_register_succeedsAgainInAFreedSlotWithoutNewConsent() public {
        join("a", Role.Miner, STAKE);
        Actor memory b = join("b", Role.Miner, STAKE);
        goToEpoch(2);
        vm.prank(b.account);
        vault.requestUnbond(STAKE);
        Actor memory c = join("c", Role.Miner, STAKE);
        assertEq(registry.slotAccount(Role.Miner, 1, 2), b.account);
        assertEq(registry.slotAccount(Role.Miner, 1, 3), c.account);
        goToEpoch(4);
        stake(b.account, STAKE);
        vm.prank(b.account);
        assertEq(registry.register(Role.Miner, b.operator, "", address(0), URL), 2);
        (Role role,, uint64 since) = registry.slotSpan(b.account, 4);
        assertEq(uint8(role), uint8(Role.None));
        assertEq(since, 3);
        assertEq(registry.slotAccount(Role.Miner, 2, 5), b.account);
    }

    // ---------------------------------------------------------------- operator

    function test_rotateOperator_succeedsFromTheNextRound() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        goTo(epochs.roundStart(3));
        Actor memory next = m;
        (next.operator, next.operatorKey) = makeAddrAndKey("next");
        address old = registry.operatorAt(m.account, 1);
        bytes memory sig = consent(next);
        vm.expectEmit(address(registry));
        emit IRegistry.OperatorSet(m.account, next.operator, 4);
        vm.prank(m.account);
        registry.rotateOperator(next.operator, sig);
        assertEq(registry.operatorAt(m.account, 3), old);
        assertEq(registry.operatorAt(m.account, 4), next.operator);
        assertEq(registry.accountActing(old, 3), m.account);
        assertEq(registry.accountActing(old, 4), address(0));
        assertEq(registry.accountActing(next.operator, 3), address(0));
        assertEq(registry.accountActing(next.operator, 4), m.account);
    }

    function test_rotateOperator_succeedsTwiceInARound() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        goTo(epochs.roundStart(3));
        Actor memory next = m;
        (next.operator, next.operatorKey) = makeAddrAndKey("second");
        bytes memory sig = consent(next);
        vm.prank(m.account);
        registry.rotateOperator(next.operator, sig);
        address second = next.operator;
        (next.operator, next.operatorKey) = makeAddrAndKey("third");
        sig = consent(next);
        vm.prank(m.account);
        registry.rotateOperator(next.operator, sig);
        assertEq(registry.operatorCount(m.account), 3);
        assertEq(registry.operatorAt(m.account, 4), next.operator);
        assertEq(registry.accountActing(second, 3), address(0));
        assertEq(registry.accountActing(second, 4), address(0));
        assertEq(registry.accountOfOperator(second), m.account);
    }

    function test_rotateOperator_revertsIfTheKeyServedBefore() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        bytes memory sig = consent(m);
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.OperatorTaken.selector, m.operator, m.account));
        registry.rotateOperator(m.operator, sig);
    }

    function test_rotateOperator_revertsIfNeverRegistered() public {
        vm.expectRevert(abi.encodeWithSelector(IRegistry.NotRegistered.selector, address(this)));
        registry.rotateOperator(address(1), "");
    }

    // ---------------------------------------------------------------- payout and endpoint

    function test_setPayout_succeedsForTheOwnerAlone() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        assertEq(registry.payoutOf(m.account), m.account);
        vm.prank(m.operator);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.NotRegistered.selector, m.operator));
        registry.setPayout(m.operator);
        vm.prank(m.account);
        registry.setPayout(address(42));
        assertEq(registry.payoutOf(m.account), address(42));
    }

    function test_setEndpoint_succeedsForOwnerAndOperator() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        vm.prank(m.account);
        registry.setEndpoint(m.account, "a");
        goToEpoch(1);
        vm.expectEmit(address(registry));
        emit IRegistry.EndpointSet(m.account, "b");
        vm.prank(m.operator);
        registry.setEndpoint(m.account, "b");
        assertEq(registry.endpointOf(m.account), "b");
    }

    function test_setEndpoint_revertsIfStranger() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        goToEpoch(1);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.NotOwnerOrOperator.selector, address(this), m.account));
        registry.setEndpoint(m.account, "x");
    }

    // ---------------------------------------------------------------- vacate and exclude

    function test_vacate_revertsIfNotVault() public {
        vm.expectRevert(abi.encodeWithSelector(IRegistry.OnlyVault.selector, address(this)));
        registry.vacate(address(1), 0);
    }

    function test_exclude_revertsIfNotVerdicts() public {
        vm.expectRevert(abi.encodeWithSelector(IRegistry.OnlyVerdicts.selector, address(this)));
        registry.exclude(address(1));
    }

    function test_exclude_succeedsEndingTheSlotAndSuspending() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        goToEpoch(2);
        vm.expectEmit(address(registry));
        emit IRegistry.Excluded(m.account, 1, 6);
        vm.expectEmit(address(registry));
        emit IRegistry.SlotVacated(m.account, Role.Miner, 0, 3);
        vm.prank(address(verdicts));
        registry.exclude(m.account);
        assertEq(registry.slotAccount(Role.Miner, 0, 2), m.account);
        assertEq(registry.slotAccount(Role.Miner, 0, 3), address(0));

        goTo(epochs.epochEnd(5) - 1);
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.Suspended.selector, m.account, 6));
        registry.register(Role.Miner, m.operator, "", address(0), URL);
        goTo(epochs.epochEnd(5));
        vm.prank(m.account);
        registry.register(Role.Miner, m.operator, "", address(0), URL);
        // What was proven before still counts, in a slot and after it.
        (uint32 count, uint64 until) = registry.faultsOf(m.account);
        assertEq(count, 1);
        assertEq(until, 6);
        vm.startPrank(address(verdicts));
        registry.exclude(m.account);
        (count, until) = registry.faultsOf(m.account);
        assertEq(count, 2);
        assertEq(until, 10);
        registry.exclude(m.account);
        vm.stopPrank();
        (count, until) = registry.faultsOf(m.account);
        assertEq(count, 3);
        assertEq(until, type(uint64).max);
        assertEq(registry.slotAccount(Role.Miner, 0, 2), m.account);
    }

    function test_register_revertsIfAnOperatorOfASuspendedAccountRegisters() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        vm.prank(address(verdicts));
        registry.exclude(m.account);
        stake(m.operator, STAKE);
        Actor memory twin = actor("twin");
        twin.account = m.operator;
        bytes memory sig = consent(twin);
        vm.prank(m.operator);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.Suspended.selector, m.account, 4));
        registry.register(Role.Miner, twin.operator, sig, address(0), URL);
    }

    function test_exclude_succeedsForEverAtTheThirdFault() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        vm.startPrank(address(verdicts));
        registry.exclude(m.account);
        registry.exclude(m.account);
        registry.exclude(m.account);
        vm.stopPrank();
        (uint32 count, uint64 until) = registry.faultsOf(m.account);
        assertEq(count, 3);
        assertEq(until, type(uint64).max);
        goToEpoch(1000);
        vm.prank(m.account);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.Suspended.selector, m.account, type(uint64).max));
        registry.register(Role.Miner, m.operator, "", address(0), URL);
    }

    // ---------------------------------------------------------------- views

    function test_slots_succeedsListingTheHoldersOfAnEpoch() public {
        Actor memory a = join("a", Role.Miner, STAKE);
        Actor memory b = join("b", Role.Miner, 2 * STAKE);
        goToEpoch(1);
        vm.prank(a.account);
        vault.requestUnbond(STAKE);
        IRegistry.SlotView[] memory held = registry.slots(Role.Miner, 1);
        assertEq(held.length, 2);
        assertEq(held[0].account, a.account);
        assertEq(held[0].stake, STAKE);
        held = registry.slots(Role.Miner, 2);
        assertEq(held.length, 1);
        assertEq(held[0].slot, 1);
        assertEq(held[0].account, b.account);
        assertEq(held[0].operator, b.operator);
        assertEq(held[0].nextOperator, b.operator);
        assertEq(held[0].payout, b.account);
        assertEq(held[0].stake, 2 * STAKE);
        assertEq(held[0].endpoint, URL);
        assertEq(registry.slotsInRange(Role.Miner, 1, 1, 99).length, 1);
        assertEq(registry.slotsInRange(Role.Miner, 1, 5, 2).length, 0);
    }
}
