// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Node} from "../../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../../src/libraries/SettlementTree.sol";
import {StakeTrace} from "../../src/libraries/StakeTrace.sol";
import {Weights} from "../../src/libraries/Weights.sol";

/// @notice Proven by Halmos for every input (scripts/audit halmos), not just tried: what the money rests on below the
/// contracts.
contract LibrariesSymbolic is Test {
    using StakeTrace for StakeTrace.Trace;

    /// Words, enough for all changes here.
    uint256 private constant RING = 4;

    StakeTrace.Trace internal trace;

    // ---------------------------------------------------------------- stake history

    /// @dev Five changes (both halves of two full words and a newest entry), asked at any epoch.
    function check_valueAt_isTheLastChange(uint64[5] calldata since, uint256[5] calldata amounts, uint64 asked)
        external
    {
        uint256 expected = 0;
        for (uint256 i = 0; i < 5; ++i) {
            vm.assume(since[i] != 0 && since[i] < 2 ** 24 - 1);
            if (i != 0) vm.assume(since[i] > since[i - 1]);
            vm.assume(amounts[i] <= StakeTrace.MOST_AMOUNT);
            trace.push(RING, since[i], amounts[i]);
            if (since[i] <= asked) expected = amounts[i];
        }
        assert(trace.valueAt(RING, asked) == expected);
        assert(trace.latest() == amounts[4]);
    }

    /// @dev A second change in an epoch replaces the first and nothing else.
    function check_push_replacesWithinAnEpoch(uint64[3] calldata since, uint256[4] calldata amounts, uint64 asked)
        external
    {
        for (uint256 i = 0; i < 4; ++i) {
            vm.assume(amounts[i] <= StakeTrace.MOST_AMOUNT);
        }
        for (uint256 i = 0; i < 3; ++i) {
            vm.assume(since[i] != 0 && since[i] < 2 ** 24 - 1);
            if (i != 0) vm.assume(since[i] > since[i - 1]);
            trace.push(RING, since[i], amounts[i]);
        }
        trace.push(RING, since[2], amounts[3]);
        uint256 expected = 0;
        if (asked >= since[0]) expected = amounts[0];
        if (asked >= since[1]) expected = amounts[1];
        if (asked >= since[2]) expected = amounts[3];
        assert(trace.valueAt(RING, asked) == expected);
    }

    // ---------------------------------------------------------------- sums

    function climb(Node calldata leaf, uint256 index, Node[13] calldata siblings)
        external
        pure
        returns (Node memory half, Node memory root)
    {
        return SettlementTree.climb(leaf, index, siblings);
    }

    /// @dev A root shows the exact sum of all that it was climbed from, or it can't be climbed. Three levels of thirteen
    /// have something beside them: the levels are one loop.
    function check_climb_addsUpExactly(Node calldata leaf, Node[3] calldata beside) external view {
        Node[13] memory siblings = _siblings(beside);
        uint256 w = leaf.w;
        uint256 amount = leaf.amount;
        for (uint256 i = 0; i < 3; ++i) {
            w += beside[i].w;
            amount += beside[i].amount;
        }
        try this.climb(leaf, 2730, siblings) returns (Node memory half, Node memory root) {
            assert(root.w == w && root.amount == amount);
            assert(half.w == w - beside[2].w && half.amount == amount - beside[2].amount);
        } catch {
            assert(w > type(uint128).max || amount > type(uint128).max);
        }
    }

    /// @dev At one place under one root stands one leaf with one weight and one amount.
    function check_climb_bindsTheLeaf(
        Node calldata a,
        Node calldata b,
        Node[3] calldata beside,
        Node[3] calldata otherBeside
    ) external view {
        try this.climb(a, 4097, _siblings(beside)) returns (Node memory, Node memory rootA) {
            try this.climb(b, 4097, _siblings(otherBeside)) returns (Node memory, Node memory rootB) {
                if (rootA.hash != rootB.hash) return;
                assert(a.hash == b.hash && a.w == b.w && a.amount == b.amount);
            } catch {}
        } catch {}
    }

    function _siblings(Node[3] calldata beside) private pure returns (Node[13] memory siblings) {
        (siblings[0], siblings[5], siblings[12]) = (beside[0], beside[1], beside[2]);
    }

    // ---------------------------------------------------------------- consensus

    /// @dev With three votes: more than half of the stake gave at least the consensus, and no more than half gave more.
    function check_consensus_isTheClippedMedian(uint16[3] calldata given, uint96[3] calldata stakes) external pure {
        uint256[] memory w = new uint256[](3);
        uint256[] memory s = new uint256[](3);
        uint256 total = 0;
        for (uint256 i = 0; i < 3; ++i) {
            (w[i], s[i]) = (given[i], stakes[i]);
            total += stakes[i];
        }
        uint256 found = Weights.consensus(w, s);
        uint256 support = 0;
        uint256 above = 0;
        for (uint256 i = 0; i < 3; ++i) {
            if (w[i] >= found) support += s[i];
            if (w[i] > found) above += s[i];
        }
        assert(2 * above <= total);
        assert(found == 0 || 2 * support > total);
    }
}
