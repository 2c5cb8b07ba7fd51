// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StakeTrace} from "../src/libraries/StakeTrace.sol";
import {Test} from "forge-std/Test.sol";

/// forge-config: default.allow_internal_expect_revert = true
contract StakeTraceTest is Test {
    using StakeTrace for StakeTrace.Trace;

    StakeTrace.Trace internal trace;

    function read(uint256 size, uint64 epoch) external view returns (uint256) {
        return trace.valueAt(size, epoch);
    }

    /// @dev Against a plain table of what held in each epoch, with rings from one word up, after every change: right in all
    /// epochs that the ring must know, and in any older one right or refused.
    function testFuzz_valueAt_equalsATableOrRefuses(uint256 seed, uint8 changes, uint8 back) public {
        uint256[200] memory expected;
        back %= 24;
        uint256 size = StakeTrace.wordsFor(back);
        uint64 epoch = 1;
        for (uint256 i = 0; i < changes % 48; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            epoch += uint64(seed % 4);
            uint256 amount = (seed >> 8) % (StakeTrace.MOST_AMOUNT + 1);
            trace.push(size, epoch, amount);
            assertEq(trace.latest(), amount);
            for (uint256 e = epoch; e < 200; ++e) {
                expected[e] = amount;
            }
            if (seed >> 253 != 0 && i + 1 != changes % 48) continue;
            for (uint64 e = 0; e < 200; ++e) {
                try this.read(size, e) returns (uint256 found) {
                    assertEq(found, expected[e]);
                } catch (bytes memory why) {
                    assertEq(bytes4(why), StakeTrace.EpochForgotten.selector);
                    assertLt(uint256(e) + back, epoch);
                }
            }
        }
    }

    /// @dev A change in every epoch is the most that a ring must bear.
    function test_valueAt_succeedsAtTheBoundOfTheRingAndRevertsBeyond() public {
        for (uint64 epoch = 1; epoch <= 40; ++epoch) {
            trace.push(4, epoch, 1000 + epoch);
        }
        // Entries 39 and 40 in the head, 31 to 38 in four words.
        assertEq(StakeTrace.wordsFor(7), 4);
        for (uint64 epoch = 31; epoch <= 45; ++epoch) {
            assertEq(trace.valueAt(4, epoch), 1000 + (epoch < 40 ? epoch : 40));
        }
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochForgotten.selector, 30, 31));
        trace.valueAt(4, 30);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochForgotten.selector, 0, 31));
        trace.valueAt(4, 0);
    }

    function test_push_succeedsAtItsLimits() public {
        trace.push(2, 1, StakeTrace.MOST_AMOUNT);
        trace.push(2, 2 ** 24 - 2, 0);
        trace.push(2, 2 ** 24 - 1, StakeTrace.MOST_AMOUNT);
        assertEq(trace.valueAt(2, 2 ** 24 - 3), StakeTrace.MOST_AMOUNT);
        assertEq(trace.valueAt(2, 2 ** 24 - 2), 0);
        assertEq(trace.valueAt(2, type(uint64).max), StakeTrace.MOST_AMOUNT);
    }

    /// @dev Beyond the last epoch that it can tell apart, changes still go through, so that nobody becomes unslashable.
    function test_push_succeedsBeyondTheLastEpoch() public {
        trace.push(2, 5, 10);
        trace.push(2, 2 ** 24, 7);
        trace.push(2, type(uint64).max, 3);
        trace.push(2, 2 ** 24 - 1, 2);
        assertEq(trace.latest(), 2);
        assertEq(trace.valueAt(2, 2 ** 24 - 2), 10);
        assertEq(trace.valueAt(2, 2 ** 30), 2);
    }

    function test_push_revertsBeyondItsLimits() public {
        vm.expectRevert(
            abi.encodeWithSelector(
                StakeTrace.AmountTooLarge.selector, StakeTrace.MOST_AMOUNT + 1, StakeTrace.MOST_AMOUNT
            )
        );
        trace.push(2, 1, StakeTrace.MOST_AMOUNT + 1);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochNotAscending.selector, 0, 0));
        trace.push(2, 0, 1);
    }

    function test_push_revertsIfTheEpochGoesBack() public {
        trace.push(2, 5, 1);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochNotAscending.selector, 4, 5));
        trace.push(2, 4, 1);
    }
}
