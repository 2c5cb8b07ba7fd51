// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDutyBook} from "../src/interfaces/IDutyBook.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {TenureTrace} from "../src/libraries/TenureTrace.sol";
import {RunTest} from "./base/RunTest.sol";

/// @notice The shortcut to who an operator acts for, and the tenures that it is drawn from.
contract DutyBookTest is RunTest {
    using TenureTrace for TenureTrace.Trace;

    TenureTrace.Trace internal trace;
    uint160[40] internal expected;
    Actor[3] internal actors;
    /// Every operator that ever served.
    address[] internal operators;

    function test_noteDuty_revertsIfNotRegistry() public {
        IDutyBook.Duty memory duty = IDutyBook.Duty(address(this), 0, Role.Miner, 1, 2);
        vm.expectRevert(abi.encodeWithSelector(IDutyBook.OnlyRegistry.selector, address(this)));
        epochs.noteDuty(address(this), duty);
    }

    function test_dutyOf_succeedsThroughoutAnOperatorsLife() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        _assertBookIsRight(m.operator);
        goToEpoch(2);
        vm.prank(m.account);
        vault.requestUnbond(STAKE);
        stake(m.account, STAKE);
        register(m, Role.Validator);
        _assertBookIsRight(m.operator);
        (address account, Role role,) = epochs.dutyOf(m.operator, 4, 2);
        assertEq(account, m.account);
        assertEq(uint8(role), uint8(Role.Miner));
        (, role,) = epochs.dutyOf(m.operator, 5, 3);
        assertEq(uint8(role), uint8(Role.Validator));
    }

    /// @dev Three accounts join, leave, return in other roles and change operators at any time, several times in a round too.
    function testFuzz_dutyOf_equalsTheRegistry(uint256 seed) public {
        for (uint256 i = 0; i < 3; ++i) {
            actors[i] = actor(string.concat("actor", vm.toString(i)));
            fund(actors[i].account, 10_000 ether);
            operators.push(actors[i].operator);
        }
        for (uint256 step = 0; step < 16; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            if (seed % 3 != 0) goTo(uint64(block.timestamp + (seed >> 8) % 150));
            _act((seed >> 16) % 3, (seed >> 32) % 4, seed >> 64);
        }
        for (uint256 i = 0; i < operators.length; ++i) {
            _assertBookIsRight(operators[i]);
        }
    }

    function _act(uint256 who, uint256 what, uint256 seed) private {
        Actor memory a = actors[who];
        bool isIn = registry.roleOf(a.account) != Role.None;
        if (what == 0 && isIn) {
            uint256 active = vault.activeOf(a.account);
            vm.prank(a.account);
            vault.requestUnbond(active);
        } else if (what == 1 && registry.operatorCount(a.account) != 0) {
            (a.operator, a.operatorKey) = makeAddrAndKey(vm.toString(seed));
            bytes memory sig = consent(a);
            vm.prank(a.account);
            registry.rotateOperator(a.operator, sig);
            actors[who] = a;
            operators.push(a.operator);
        } else if (!isIn) {
            vm.prank(a.account);
            vault.deposit(STAKE);
            register(a, seed % 2 == 0 ? Role.Miner : Role.Validator);
        }
    }

    function _assertBookIsRight(address operator) private view {
        uint64 last = epochs.currentRound() + 4;
        for (uint64 round = 1; round <= last; ++round) {
            uint64 own = epochs.epochOf(round);
            for (uint64 epoch = own > 3 ? own - 3 : 1; epoch <= own + 1; ++epoch) {
                (address account, Role role, uint32 slot) = epochs.dutyOf(operator, round, epoch);
                (address account_, Role role_, uint32 slot_) = registry.duty(operator, round, epoch);
                assertEq(account, account_);
                assertEq(uint8(role), uint8(role_));
                assertEq(slot, slot_);
            }
        }
    }

    /// @dev Against a plain table of who held it in each epoch.
    function testFuzz_entryAt_equalsATable(uint256 seed) public {
        uint64 epoch = 1;
        for (uint160 holder = 1; holder <= 8; ++holder) {
            seed = uint256(keccak256(abi.encode(seed)));
            epoch += uint64(seed % 3);
            trace.start(epoch, holder);
            uint64 until = epoch + uint64((seed >> 8) % 4);
            bool open = holder == 8;
            for (uint64 e = epoch; e < (open ? 40 : until); ++e) {
                expected[e] = holder;
            }
            if (open) break;
            trace.end(until, uint16(seed >> 16));
            assertEq(trace.note(), uint16(seed >> 16));
            assertEq(trace.latest(), 0);
            epoch = until;
        }
        assertEq(trace.latest(), 8);
        for (uint64 e = 0; e < 40; ++e) {
            (uint64 since, uint160 holder) = trace.entryAt(e);
            assertEq(holder, expected[e]);
            assertLe(since, e);
            for (uint64 k = since; k < e; ++k) {
                assertEq(expected[k], holder);
            }
        }
    }

    /// forge-config: default.allow_internal_expect_revert = true
    function test_start_revertsIfTenuresOverlap() public {
        trace.start(3, 1);
        trace.end(7, 0);
        vm.expectRevert(abi.encodeWithSelector(TenureTrace.TenuresOverlap.selector, 6, 7));
        trace.start(6, 2);
    }
}
