// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRewardsDistributor} from "../src/interfaces/IRewardsDistributor.sol";
import {Genesis, Params} from "../src/interfaces/IRun.sol";
import {Leaf, Node, Sibling} from "../src/interfaces/ISettlement.sol";
import {RewardsDistributor} from "../src/RewardsDistributor.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

contract SettlementPostTest is SettlementTest {
    function test_postSettlement_succeedsAfterTheRevealDeadline() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        uint64 deadline = epochs.weightRevealDeadline(1);
        vm.warp(deadline);
        Node memory left = node(1, 12, 0);
        Node memory right = node(1, 12, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooEarly.selector, deadline, deadline));
        rewards.postSettlement(1, left, right);
        vm.warp(deadline + 1);
        vm.expectEmit(address(rewards));
        emit IRewardsDistributor.SettlementPosted(1, 1, poster, left, right, 1000 ether, 20 ether, deadline + 61);
        post(1);
        IRewardsDistributor.Post memory standing = newest();
        assertEq(standing.root, node(1, 13, 0).hash);
        assertEq(standing.amount, left.amount + right.amount);
        assertEq(token.balanceOf(address(rewards)), 20 ether);
        assertBalanced();
    }

    function test_postSettlement_succeedsAtTheVoidDeadlineAndRevertsAfterIt() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        uint64 voidAt = epochs.settlementVoidAt(1);
        vm.warp(voidAt + 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooLate.selector, voidAt + 1, voidAt));
        rewards.postSettlement(1, Node(0, 0, 0), Node(0, 0, 0));
        vm.warp(voidAt);
        post(1);
    }

    function test_postSettlement_revertsIfNotNext() public {
        goTo(epochs.weightRevealDeadline(2) + 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotNext.selector, 2, 1));
        rewards.postSettlement(2, Node(0, 0, 0), Node(0, 0, 0));
    }

    function test_postSettlement_revertsIfTheNewestStandsWithTheSameRoot() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        post(1);
        Node memory left = node(1, 12, 0);
        Node memory right = node(1, 12, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.PostStands.selector, 1, 1, poster));
        rewards.postSettlement(1, left, right);
    }

    function test_postSettlement_revertsIfLessThanHalfOfTheStakeRevealed() public {
        given[1][0] = weightsOf(1, 2, 3);
        playWeights(1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoQuorum.selector, 1));
        rewards.postSettlement(1, Node(0, 0, 0), Node(0, 0, 0));
    }

    function test_postSettlement_revertsIfOverBudget() public {
        giveUsual(1);
        playWeights(1);
        vm.expectRevert(
            abi.encodeWithSelector(IRewardsDistributor.OverBudget.selector, 700 ether + 1, uint256(700 ether))
        );
        rewards.postSettlement(1, Node(0, 1, 700 ether + 1), Node(0, 0, 0));
        vm.expectRevert(
            abi.encodeWithSelector(IRewardsDistributor.OverBudget.selector, 300 ether + 1, uint256(300 ether))
        );
        rewards.postSettlement(1, Node(0, 0, 0), Node(0, 1, 300 ether + 1));
    }

    function test_finaliseSettlement_succeedsAfterTheWindow() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        post(1);
        uint64 ends = newest().windowEnds;
        goTo(ends);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooEarly.selector, ends, ends));
        rewards.finaliseSettlement(1, 1);
        goTo(ends + 1);
        rewards.finaliseSettlement(1, 1);
        assertEq(rewards.finalRoot(1), node(1, 13, 0).hash);
        assertEq(rewards.nextEpoch(), 2);
        assertEq(rewards.lastFinalAt(1), 1);
        assertEq(rewards.bondsOf(poster), 20 ether);
        assertEq(rewards.settled() + rewards.rollover(), 1000 ether);
        assertLt(rewards.rollover(), 6);
        assertBalanced();
        rewards.withdrawBonds(poster);
        assertEq(token.balanceOf(poster), 5000 ether);
        assertBalanced();
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 1));
        rewards.finaliseSettlement(1, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NothingToWithdraw.selector, poster));
        rewards.withdrawBonds(poster);
    }

    function test_finaliseSettlement_succeedsWithChoresAndFeesInThePot() public {
        drawBeacon(2, ASSIGNMENT);
        fund(address(this), 50 ether);
        rewards.addFees(50 ether);
        assertEq(rewards.potOf(1), 1049 ether);
        settle(1);
        assertEq(rewards.settled() + rewards.rollover(), 1049 ether);
        assertEq(rewards.pendingFees(), 0);
        assertBalanced();
    }

    function test_finaliseSettlement_succeedsWithoutAnyWeight() public {
        given[1][0] = weightsOf(0, 0, 0);
        given[1][2] = weightsOf(0, 0, 0);
        playWeights(1);
        buildHonest(1);
        post(1);
        finalise(1);
        assertEq(rewards.settled(), 0);
        assertEq(rewards.rollover(), 1000 ether);
        assertEq(rewards.potOf(2), 1999.5 ether);
    }

    // ---------------------------------------------------------------- void

    function test_voidEpoch_succeedsAfterTheDeadlineAndRollsOver() public {
        uint64 voidAt = epochs.settlementVoidAt(1);
        goTo(voidAt);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooEarly.selector, voidAt, voidAt));
        rewards.voidEpoch(1);
        goTo(voidAt + 1);
        vm.expectEmit(address(rewards));
        emit IRewardsDistributor.EpochVoided(1, 1000 ether);
        rewards.voidEpoch(1);
        assertEq(rewards.nextEpoch(), 2);
        assertEq(rewards.lastFinalAt(1), 0);
        assertEq(rewards.potOf(2), 1999.5 ether);
        assertBalanced();
        settle(2);
        assertEq(leafAt(2, 0).prevEpoch, 0);
        assertEq(rewards.lastFinalAt(2), 2);
    }

    function test_voidEpoch_revertsIfAPostStands() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        goTo(epochs.settlementVoidAt(1));
        post(1);
        goTo(epochs.settlementVoidAt(1) + 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.PostsStand.selector, 1, 1));
        rewards.voidEpoch(1);
        finalise(1);
    }

    // ---------------------------------------------------------------- claims

    function test_claim_succeedsForAnyoneToThePayoutAddress() public {
        settle(1);
        vm.prank(miners[0].account);
        registry.setPayout(address(77));
        Leaf memory leaf = leafAt(1, 0);
        Sibling[13] memory path = packed(1, 0);
        vm.expectEmit(address(rewards));
        emit IRewardsDistributor.Claimed(leaf.account, 1, address(77), leaf.amount);
        assertEq(rewards.claim(1, leaf, path), leaf.amount);
        assertEq(token.balanceOf(address(77)), leaf.amount);
        assertEq(rewards.claimedOf(leaf.account), leaf.amount);
        assertBalanced();
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NothingToClaim.selector, leaf.account));
        rewards.claim(1, leaf, path);
    }

    function test_claim_succeedsForSeveralEpochsAtOnce() public {
        settle(1);
        settle(2);
        goTo(epochs.settlementVoidAt(3) + 1);
        rewards.voidEpoch(3);
        settle(4);
        Leaf memory leaf = leafAt(4, V);
        assertEq(leaf.prevEpoch, 2);
        uint256 sum = uint256(leafAt(1, V).amount) + leafAt(2, V).amount + leaf.amount;
        assertEq(rewards.claim(4, leaf, packed(4, V)), sum);
        Leaf memory old = leafAt(2, V);
        Sibling[13] memory path = packed(2, V);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NothingToClaim.selector, leaf.account));
        rewards.claim(2, old, path);
        assertBalanced();
    }

    function test_claim_succeedsDownToTheDust() public {
        settle(1);
        for (uint256 i = 0; i < built[1].length; ++i) {
            Leaf memory leaf = built[1][i];
            if (leaf.amount != 0) rewards.claim(1, leaf, packed(1, leaf.index));
        }
        assertEq(unclaimed(), 0);
        assertEq(token.balanceOf(address(rewards)), 20 ether + rewards.rollover());
    }

    function test_claim_revertsIfTheLeafIsNotInTheTree() public {
        settle(1);
        Leaf memory leaf = leafAt(1, 0);
        Sibling[13] memory path = packed(1, 0);
        leaf.cumulative += 1;
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.claim(1, leaf, path);
        leaf.cumulative -= 1;
        leaf.index = 1 << 13;
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.claim(1, leaf, path);
        leaf.index = 0;
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotFinal.selector, 2));
        rewards.claim(2, leaf, path);
        rewards.claim(1, leaf, path);
    }

    // ---------------------------------------------------------------- refunds and fees

    function test_credit_revertsIfNotEpochManager() public {
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.OnlyEpochs.selector, address(this)));
        rewards.credit(address(this));
    }

    function test_credit_succeedsSilentlyBeyondTheCap() public {
        for (uint256 i = 0; i < 12; ++i) {
            vm.prank(address(epochs));
            rewards.credit(address(5));
        }
        assertEq(rewards.choresOf(1), 5 ether);
        assertEq(rewards.refundsOf(address(5)), 5 ether);
        assertEq(rewards.potOf(1), 995 ether);
        rewards.withdrawRefunds(address(5));
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NothingToWithdraw.selector, address(5)));
        rewards.withdrawRefunds(address(5));
    }

    function test_addFees_revertsIfZero() public {
        vm.expectRevert(IRewardsDistributor.ZeroAmount.selector);
        rewards.addFees(0);
    }
}

/// @notice The emission ends at the cap, and promised refunds stay mintable.
contract SettlementCapTest is SettlementTest {
    function test_voidEpoch_succeedsWhenTheCapIsReached() public {
        uint256 left = token.mintable();
        vm.prank(address(epochs));
        rewards.credit(address(5));
        vm.prank(address(rewards));
        token.mint(address(1), left - 600 ether);
        assertEq(rewards.potOf(1), 599.5 ether);
        goTo(epochs.settlementVoidAt(1) + 1);
        rewards.voidEpoch(1);
        assertEq(rewards.rollover(), 599.5 ether);
        assertEq(token.mintable(), 0.5 ether);
        vm.prank(address(epochs));
        rewards.credit(address(6));
        assertEq(rewards.refundsOf(address(6)), 0);
        rewards.withdrawRefunds(address(5));
        assertEq(token.mintable(), 0);
        assertEq(rewards.potOf(2), 599.5 ether);
        assertBalanced();
    }
}

/// @notice The emission halves every two epochs.
contract SettlementHalvingTest is SettlementTest {
    function params() internal view override returns (Params memory p) {
        p = super.params();
        p.emissionHalvingEpochs = 2;
    }

    function test_scheduledEmission_succeedsHalving() public view {
        assertEq(rewards.scheduledEmission(1), 1000 ether);
        assertEq(rewards.scheduledEmission(2), 1000 ether);
        assertEq(rewards.scheduledEmission(3), 500 ether);
        assertEq(rewards.scheduledEmission(4), 500 ether);
        assertEq(rewards.scheduledEmission(5), 250 ether);
        assertEq(rewards.scheduledEmission(1 + 2 * 300), 0);
    }

    function test_voidEpoch_succeedsMintingLessAndLess() public {
        uint256 minted = token.totalMinted();
        for (uint64 epoch = 1; epoch <= 5; ++epoch) {
            goTo(epochs.settlementVoidAt(epoch) + 1);
            rewards.voidEpoch(epoch);
        }
        uint256 later = rewards.choresOf(epochs.currentEpoch());
        assertEq(token.totalMinted() - minted + rewards.refundsOwed() - later, 3250 ether);
        assertBalanced();
    }

    /// @dev What chores cost can't be more than there is: an epoch's emission may be below the cap on chores.
    function test_credit_succeedsWithinAHalvedEmission() public {
        goToEpoch(1 + 2 * 9);
        uint256 emission = rewards.scheduledEmission(19);
        assertLt(emission, 5 ether);
        for (uint256 i = 0; i < 12; ++i) {
            vm.prank(address(epochs));
            rewards.credit(address(5));
        }
        assertEq(rewards.refundsOf(address(5)), emission / 0.5 ether * 0.5 ether);
        assertEq(rewards.potOf(19), emission % 0.5 ether);
    }
}

contract SettlementParamsTest is SettlementTest {
    /// @dev Weights 40 s, void 140 s, a window of 60 + 50 * 15 s, a turn of 15 s.
    function test_constructor_revertsIfASettlementMayOutlastTheStakesKnown() public {
        Genesis memory g = genesis();
        g.params.unbondingS = 1004;
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidParams.selector, "settlement windows"));
        new RewardsDistributor(g);
        g.params.unbondingS = 1005;
        new RewardsDistributor(g);
    }
}
