// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StakeTrace} from "../src/libraries/StakeTrace.sol";
import {Test} from "forge-std/Test.sol";

/// forge-config: default.allow_internal_expect_revert = true
contract StakeTraceTest is Test {
    using StakeTrace for StakeTrace.Trace;

    StakeTrace.Trace internal trace;

    /// @dev Against a plain table of what held in each epoch.
    function testFuzz_valueAt_equalsATable(uint256 seed, uint8 changes) public {
        uint256[130] memory expected;
        uint64 epoch = 1;
        for (uint256 i = 0; i < changes % 40; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            epoch += uint64(seed % 4);
            uint256 amount = (seed >> 8) % (StakeTrace.MOST_AMOUNT + 1);
            trace.push(epoch, amount);
            assertEq(trace.latest(), amount);
            for (uint256 e = epoch; e < 130; ++e) {
                expected[e] = amount;
            }
        }
        for (uint64 e = 0; e < 130; ++e) {
            assertEq(trace.valueAt(e), expected[e]);
        }
    }

    function test_push_succeedsAtItsLimits() public {
        trace.push(1, StakeTrace.MOST_AMOUNT);
        trace.push(2 ** 24 - 2, 0);
        trace.push(2 ** 24 - 1, StakeTrace.MOST_AMOUNT);
        assertEq(trace.valueAt(2 ** 24 - 3), StakeTrace.MOST_AMOUNT);
        assertEq(trace.valueAt(2 ** 24 - 2), 0);
        assertEq(trace.valueAt(type(uint64).max), StakeTrace.MOST_AMOUNT);
    }

    function test_push_revertsBeyondItsLimits() public {
        vm.expectRevert(
            abi.encodeWithSelector(
                StakeTrace.AmountTooLarge.selector, StakeTrace.MOST_AMOUNT + 1, StakeTrace.MOST_AMOUNT
            )
        );
        trace.push(1, StakeTrace.MOST_AMOUNT + 1);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochNotAscending.selector, 2 ** 24, 0));
        trace.push(2 ** 24, 1);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochNotAscending.selector, 0, 0));
        trace.push(0, 1);
    }

    function test_push_revertsIfTheEpochGoesBack() public {
        trace.push(5, 1);
        vm.expectRevert(abi.encodeWithSelector(StakeTrace.EpochNotAscending.selector, 4, 5));
        trace.push(4, 1);
    }
}
