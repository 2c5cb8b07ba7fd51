// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRewardsDistributor} from "../src/interfaces/IRewardsDistributor.sol";
import {Leaf, Node, Opening} from "../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../src/libraries/SettlementTree.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

contract SettlementChallengeTest is SettlementTest {
    function setUp() public override {
        super.setUp();
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
    }

    /// @dev Challenges one leaf of a post whose leaf was changed, and opens it.
    function _expectStruck(uint32 index, uint32 cell) private {
        post(1);
        challenge(1, index, cell);
        open(1, index, cell);
        assertFalse(newestStands());
        assertEq(rewards.bondsOf(challenger), 2 ether + 8 ether);
        assertEq(rewards.bondsOf(poster), 0);
        assertBalanced();
    }

    function _stored(uint32 index) private view returns (Leaf storage) {
        for (uint256 i = 0; i < built[1].length; ++i) {
            if (built[1][i].index == index) return built[1][i];
        }
        revert("no such leaf");
    }

    // ---------------------------------------------------------------- the honest poster wins

    function test_openLeaf_succeedsForEveryLeafOfAnHonestPost() public {
        post(1);
        uint32[9] memory indices = [uint32(0), 1, 2, 3, 4095, V, V + 1, V + 2, V + 3];
        for (uint256 i = 0; i < indices.length; ++i) {
            challenge(1, indices[i], 0);
        }
        for (uint256 i = 0; i < indices.length; ++i) {
            open(1, indices[i], 0);
        }
        assertTrue(newestStands());
        assertEq(rewards.bondsOf(poster), 0);
        assertBalanced();
        finalise(1);
        assertEq(rewards.bondsOf(poster), 20 ether + 9 * 2 ether);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotChallenged.selector, 1, 0, 0));
        rewards.releaseChallenge(1, 1, 0, 0);
        assertBalanced();
    }

    function test_openLeaf_succeedsForEveryCell() public {
        post(1);
        for (uint32 cell = 0; cell < 5; ++cell) {
            challenge(1, V + 1, cell);
            open(1, V + 1, cell);
        }
        assertTrue(newestStands());
    }

    function test_openLeaf_succeedsInLaterEpochsWithHistory() public {
        post(1);
        finalise(1);
        settle(2);
        giveUsual(3);
        playWeights(3);
        buildHonest(3);
        post(3);
        challenge(3, 0, 0);
        challenge(3, V + 2, 2);
        open(3, 0, 0);
        open(3, V + 2, 2);
        assertTrue(newestStands());
        assertEq(leafAt(3, 0).prevEpoch, 2);
    }

    function test_openLeaf_succeedsForAValidatorThatDidNotReveal() public {
        delete given[1][2];
        // Anew: the run of setUp revealed for all three.
        goTo(epochs.settlementVoidAt(1) + 1);
        rewards.voidEpoch(1);
        giveUsual(2);
        delete given[2][2];
        playWeights(2);
        buildHonest(2);
        post(2);
        challenge(2, V + 2, 0);
        open(2, V + 2, 0);
        assertTrue(newestStands());
        assertEq(leafAt(2, V + 2).amount, 0);
    }

    function testFuzz_openLeaf_rightForAnyWeights(uint16[9] memory w, uint8 pick, uint8 cell) public {
        goTo(epochs.settlementVoidAt(1) + 1);
        rewards.voidEpoch(1);
        for (uint32 v = 0; v < 3; ++v) {
            given[2][v] = weightsOf(w[3 * v], w[3 * v + 1], w[3 * v + 2]);
        }
        playWeights(2);
        buildHonest(2);
        post(2);
        uint32 index = pick % 8;
        if (index >= 4) index = V + index - 4;
        uint32 c = index >= V ? cell % 4 : 0;
        challenge(2, index, c);
        open(2, index, c);
        assertTrue(newestStands());
    }

    // ---------------------------------------------------------------- the dishonest poster loses

    function test_openLeaf_strikesIfALeafIsOverpaid() public {
        Leaf storage leaf = _stored(1);
        leaf.amount += 1;
        leaf.cumulative += 1;
        _stored(0).amount -= 1;
        _expectStruck(1, 0);
    }

    function test_openLeaf_strikesIfTheWeightIsNotTheConsensus() public {
        Leaf storage leaf = _stored(1);
        leaf.w = 7;
        for (uint32 j = 0; j < 3; ++j) {
            Leaf storage each = _stored(j);
            each.amount = uint128(700 ether * uint256(each.w) / (300 + 7 + 40));
            each.cumulative = each.amount;
        }
        _expectStruck(1, 0);
    }

    function test_openLeaf_strikesIfTheCumulativeAmountJumps() public {
        _stored(0).cumulative += 1;
        _expectStruck(0, 0);
    }

    function test_openLeaf_strikesIfAnotherAccountIsPaid() public {
        _stored(0).account = challenger;
        _expectStruck(0, 0);
    }

    function test_openLeaf_strikesIfASlotWithoutAccountIsPaid() public {
        Leaf memory ghost;
        ghost.index = 5000;
        ghost.account = poster;
        ghost.cumulative = 1 ether;
        built[1].push(ghost);
        _expectStruck(5000, 0);
    }

    function test_openLeaf_strikesIfARegisteredLeafIsMissing() public {
        built[1][1] = built[1][built[1].length - 1];
        built[1].pop();
        _expectStruck(1, 0);
    }

    function test_openLeaf_strikesIfAMinersCellsAreSet() public {
        _stored(0).cells = bytes32(uint256(1));
        _expectStruck(0, 0);
    }

    function test_openLeaf_strikesIfPrevEpochIsInvented() public {
        _stored(0).prevEpoch = 1;
        _expectStruck(0, 0);
    }

    function test_openLeaf_strikesIfAValidatorsWeightIsNotStakeTimesAgreement() public {
        _stored(V).w += 1;
        _expectStruck(V, 0);
    }

    /// @dev The cells tree adds up and fits the leaf; one cell of it is wrong.
    function test_openLeaf_strikesIfACellIsWrong() public {
        // Validator 1 gave miner 1 a 7 where the consensus is 0: let its tree say 7.
        Leaf storage leaf = _stored(V + 1);
        (bytes32 root, uint256 sum, Opening memory o) = _cellsWith(7);
        leaf.cells = root;
        leaf.w = uint128(60 ether * sum);
        uint256 total = uint256(leafAt(1, V).w) + leaf.w + leafAt(1, V + 2).w;
        for (uint32 v = 0; v < 3; ++v) {
            Leaf storage each = _stored(V + v);
            each.amount = uint128(300 ether * uint256(each.w) / total);
            each.cumulative = each.amount;
        }
        post(1);
        challenge(1, V + 1, 1);
        o.leaf = leafAt(1, V + 1);
        o.siblings = siblings(1, V + 1);
        rewards.openLeaf(1, 1, V + 1, 1, o);
        assertFalse(newestStands());
    }

    function _cellsWith(uint256 value) private view returns (bytes32 hash, uint256 sum, Opening memory o) {
        o = openingOf(1, V + 1, 1);
        o.cellValue = value;
        hash = keccak256(abi.encode(keccak256("syntience.cells.leaf.v1"), uint32(1), value));
        sum = value;
        bytes32 tag = keccak256("syntience.cells.node.v1");
        for (uint256 i = 0; i < 12; ++i) {
            (bytes32 h, uint256 s) = (o.cellSiblings[i].hash, o.cellSiblings[i].sum);
            hash = i == 0 ? keccak256(abi.encode(tag, h, s, hash, sum)) : keccak256(abi.encode(tag, hash, sum, h, s));
            sum += s;
        }
    }

    /// @dev A root over leaves that nobody shows: whichever leaf is challenged, nobody can open it.
    function test_resolveTimeout_strikesAHiddenTree() public {
        vm.prank(poster);
        rewards.postSettlement(1, Node(keccak256("hidden"), 340, 700 ether), Node(keccak256("too"), 1, 300 ether));
        challenge(1, 0, 0);
        Opening memory o = openingOf(1, 0, 0);
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.openLeaf(1, 1, 0, 0, o);
        uint64 deadline = rewards.challengeOf(1, 1, 0, 0).deadline;
        goTo(deadline);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooEarly.selector, deadline, deadline));
        rewards.resolveTimeout(1, 1, 0, 0);
        goTo(deadline + 1);
        uint256 supply = token.totalSupply();
        rewards.resolveTimeout(1, 1, 0, 0);
        assertFalse(newestStands());
        assertEq(supply - token.totalSupply(), 12 ether);
        assertEq(rewards.bondsOf(challenger), 10 ether);
        assertBalanced();
    }

    function test_openLeaf_revertsAfterTheDeadline() public {
        post(1);
        challenge(1, 0, 0);
        uint64 deadline = rewards.challengeOf(1, 1, 0, 0).deadline;
        goTo(deadline + 1);
        Opening memory o = openingOf(1, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooLate.selector, deadline + 1, deadline));
        rewards.openLeaf(1, 1, 0, 0, o);
        vm.warp(deadline);
        rewards.openLeaf(1, 1, 0, 0, o);
    }

    function test_openLeaf_revertsIfTheWeightsAreNotTheRevealedOnes() public {
        post(1);
        challenge(1, 0, 0);
        Opening memory o = openingOf(1, 0, 0);
        o.weights[1].chunk = weightsOf(1, 1, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidWeights.selector, 1));
        rewards.openLeaf(1, 1, 0, 0, o);
        o.weights[1].chunkHashes[0] = keccak256(o.weights[1].chunk);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidWeights.selector, 1));
        rewards.openLeaf(1, 1, 0, 0, o);
    }

    /// @dev Nobody can make an honest leaf look wrong by opening it with other inputs.
    function test_openLeaf_revertsIfAStrangerOpensAnHonestLeafFalsely() public {
        post(1);
        finalise(1);
        giveUsual(2);
        playWeights(2);
        buildHonest(2);
        post(2);
        challenge(2, V + 1, 0);
        Opening memory o = openingOf(2, V + 1, 0);
        o.cellValue += 1;
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.openLeaf(2, 1, V + 1, 0, o);
        o.cellValue -= 1;
        o.prevLeaf.cumulative += 1;
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.openLeaf(2, 1, V + 1, 0, o);
        o.prevLeaf.cumulative -= 1;
        o.leaf.amount += 1;
        vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
        rewards.openLeaf(2, 1, V + 1, 0, o);
        o.leaf.amount -= 1;
        rewards.openLeaf(2, 1, V + 1, 0, o);
        assertTrue(newestStands());
    }

    function testFuzz_openLeaf_neverRightAfterTampering(uint8 pick, uint8 field, uint128 noise) public {
        uint256 place = pick % built[1].length;
        Leaf storage leaf = built[1][place];
        noise = uint128(bound(noise, 1, 1e15));
        field = field % 6;
        if (field == 0) leaf.w += noise;
        else if (field == 1) leaf.amount += noise;
        else if (field == 2) leaf.cumulative += noise;
        else if (field == 3) leaf.prevEpoch = uint64(noise);
        else if (field == 4) leaf.account = address(uint160(noise));
        else leaf.cells = bytes32(uint256(noise));
        uint32 index = leaf.index;
        // Keep within budget, so that the post is taken: the others give up what this one gained.
        for (uint256 i = 0; i < built[1].length; ++i) {
            if (i != place && field == 1) built[1][i].amount = built[1][i].amount / 2;
        }
        post(1);
        challenge(1, index, 0);
        Opening memory o = openingOf(1, index, 0);
        try rewards.openLeaf(1, 1, index, 0, o) {
            assertFalse(newestStands());
        } catch {
            goTo(rewards.challengeOf(1, 1, index, 0).deadline + 1);
            rewards.resolveTimeout(1, 1, index, 0);
        }
        assertEq(rewards.bondsOf(challenger), 10 ether);
        assertBalanced();
    }

    // ---------------------------------------------------------------- procedure

    function test_challengeLeaf_succeedsUntilTheWindowEnds() public {
        post(1);
        uint64 ends = newest().windowEnds;
        goTo(ends);
        vm.expectEmit(address(rewards));
        emit IRewardsDistributor.LeafChallenged(1, 1, 0, 0, challenger, ends + 15);
        challenge(1, 0, 0);
        goTo(ends + 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooLate.selector, ends + 1, ends));
        challenge(1, 1, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.ChallengesOpen.selector, 1, 1));
        rewards.finaliseSettlement(1, 1);
        // The opening keeps the window open for another challenge.
        open(1, 0, 0);
        assertEq(newest().windowEnds, ends + 16);
        challenge(1, 1, 0);
    }

    function test_openLeaf_extendsTheWindowByFiftyTurnsAtMost() public {
        post(1);
        uint64 posted = newest().postedAt;
        uint32 index = 10;
        goTo(posted + 60);
        while (newest().windowEnds >= block.timestamp) {
            challenge(1, ++index, 0);
            goTo(uint64(block.timestamp) + 15);
            open(1, index, 0);
            if (newest().windowEnds > block.timestamp) goTo(newest().windowEnds);
        }
        assertEq(newest().windowEnds, posted + 60 + 50 * 15);
        assertGe(index, 10 + 25);
        rewards.finaliseSettlement(1, 1);
    }

    function test_challengeLeaf_revertsIfTwiceOrOutOfRangeOrNoPost() public {
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 1));
        challenge(1, 0, 0);
        post(1);
        challenge(1, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.AlreadyChallenged.selector, 1, 0, 0));
        challenge(1, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidIndex.selector, 8192, 0));
        challenge(1, 8192, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidIndex.selector, 0, 1));
        challenge(1, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.InvalidIndex.selector, V, 4096));
        challenge(1, V, 4096);
    }

    // ---------------------------------------------------------------- several posts

    function _false(uint256 seed) private returns (uint32 attempt) {
        return postAs(challenger, Node(keccak256(abi.encode(seed)), 0, 0), Node(0, 0, 0));
    }

    /// @dev A false post neither bars nor delays the right one, nor makes it dearer.
    function test_postSettlement_succeedsBesideAFalseOneAtTheSameBond() public {
        assertEq(_false(1), 1);
        assertEq(post(1), 2);
        assertEq(newest().bond, 20 ether);
        vm.prank(challenger);
        rewards.challengeLeaf(1, 1, 0, 0);
        vm.prank(challenger);
        rewards.challengeLeaf(1, 1, 1, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.PostStands.selector, 1, 1, challenger));
        rewards.releaseChallenge(1, 1, 1, 0);
        goTo(uint64(block.timestamp) + 16);
        rewards.resolveTimeout(1, 1, 0, 0);
        // The other challenge died with its post: its bond goes back, once.
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 1));
        rewards.resolveTimeout(1, 1, 1, 0);
        rewards.releaseChallenge(1, 1, 1, 0);
        assertEq(rewards.bondsOf(challenger), 12 ether);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotChallenged.selector, 1, 1, 0));
        rewards.releaseChallenge(1, 1, 1, 0);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotChallenged.selector, 1, 0, 0));
        rewards.releaseChallenge(1, 1, 0, 0);
        assertBalanced();
        uint64 ends = newest().windowEnds;
        finalise(1);
        assertEq(block.timestamp, ends + 1);
        assertEq(rewards.finalRoot(1), node(1, 13, 0).hash);
        assertBalanced();
        settle(2);
        assertBalanced();
    }

    function testFuzz_finaliseSettlement_succeedsAmongAnyNumberOfFalsePosts(uint8 before, uint8 after_) public {
        uint32 first = before % 8;
        for (uint256 i = 0; i < first; ++i) {
            challengeAs(1, _false(i), 0);
        }
        uint32 right = post(1);
        for (uint256 i = 0; i < after_ % 8; ++i) {
            challengeAs(1, _false(first + i), 0);
        }
        goTo(rewards.postOf(1, right).windowEnds + 1);
        rewards.finaliseSettlement(1, right);
        assertEq(rewards.finalRoot(1), node(1, 13, 0).hash);
        for (uint32 i = 1; i <= first + 1 + after_ % 8; ++i) {
            if (i != right) rewards.resolveTimeout(1, i, 0, 0);
        }
        assertEq(rewards.bondsOf(challenger), (first + uint256(after_ % 8)) * 10 ether);
        assertBalanced();
    }

    function challengeAs(uint64 epoch, uint32 attempt, uint32 index) private {
        vm.prank(challenger);
        rewards.challengeLeaf(epoch, attempt, index, 0);
    }

    /// @dev Nobody struck it, so all of its bond burns: a false post gains nothing by being late.
    function test_closePost_burnsAFalsePostThatOutlivedItsEpoch() public {
        post(1);
        _false(1);
        challengeAs(1, 2, 0);
        goTo(newest().windowEnds + 1);
        rewards.finaliseSettlement(1, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.ChallengesOpen.selector, 1, 1));
        rewards.closePost(1, 2);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotNext.selector, 1, 2));
        rewards.finaliseSettlement(1, 2);
        rewards.resolveTimeout(1, 2, 0, 0);
        assertEq(rewards.bondsOf(challenger), 10 ether);
        assertBalanced();
    }

    function test_closePost_succeedsAfterTheWindowAndRevertsInIt() public {
        post(1);
        goTo(uint64(block.timestamp) + 30);
        _false(1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.PostStands.selector, 1, 2, challenger));
        rewards.closePost(1, 2);
        goTo(rewards.postOf(1, 1).windowEnds + 1);
        rewards.finaliseSettlement(1, 1);
        uint64 ends = rewards.postOf(1, 2).windowEnds;
        goTo(ends);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.TooEarly.selector, ends, ends));
        rewards.closePost(1, 2);
        goTo(ends + 1);
        uint256 supply = token.totalSupply();
        vm.expectEmit(address(rewards));
        emit IRewardsDistributor.PostClosed(1, 2, challenger, 20 ether);
        rewards.closePost(1, 2);
        assertEq(supply - token.totalSupply(), 20 ether);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 2));
        rewards.closePost(1, 2);
        assertBalanced();
    }

    /// @dev The same root, posted again after another one: both are right, neither loses its bond.
    function test_closePost_succeedsForASecondPostOfTheFinalRoot() public {
        post(1);
        _false(1);
        postAs(challenger, node(1, 12, 0), node(1, 12, 1));
        challengeAs(1, 3, 0);
        open(1, 0, 0);
        challengeAs(1, 3, 1);
        goTo(rewards.postOf(1, 1).windowEnds + 1);
        rewards.finaliseSettlement(1, 1);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 3));
        rewards.resolveTimeout(1, 3, 1, 0);
        rewards.closePost(1, 3);
        assertEq(rewards.bondsOf(challenger), 22 ether);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NotChallenged.selector, 1, 0, 0));
        rewards.releaseChallenge(1, 3, 0, 0);
        rewards.releaseChallenge(1, 3, 1, 0);
        assertEq(rewards.bondsOf(challenger), 24 ether);
        assertBalanced();
    }

    /// @dev The next epoch's post of the same number takes the place, and nothing of the old one is lost or left.
    function test_postSettlement_succeedsOverAStalePost() public {
        _false(1);
        post(1);
        challengeAs(1, 1, 0);
        goTo(rewards.postOf(1, 2).windowEnds + 1);
        rewards.finaliseSettlement(1, 2);
        giveUsual(2);
        playWeights(2);
        buildHonest(2);
        uint256 supply = token.totalSupply();
        post(2);
        assertEq(supply - token.totalSupply(), 20 ether);
        assertEq(rewards.postOf(1, 1).poster, address(0));
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NoPost.selector, 1, 1));
        rewards.resolveTimeout(1, 1, 0, 0);
        rewards.releaseChallenge(1, 1, 0, 0);
        assertEq(rewards.bondsOf(challenger), 2 ether);
        assertBalanced();
        finalise(2);
        assertBalanced();
    }

    function test_voidEpoch_succeedsOnceEveryPostFell() public {
        goTo(epochs.settlementVoidAt(1));
        _false(1);
        challengeAs(1, 1, 0);
        goTo(epochs.settlementVoidAt(1) + 15);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.PostsStand.selector, 1, 1));
        rewards.voidEpoch(1);
        goTo(epochs.settlementVoidAt(1) + 16);
        rewards.resolveTimeout(1, 1, 0, 0);
        rewards.voidEpoch(1);
        assertEq(rewards.rollover(), 1000 ether);
        assertBalanced();
    }

    // ---------------------------------------------------------------- hidden leaves

    /// @dev The poster shows no leaf but opens rightly whatever it can, at the last second. The challenger knows only the
    /// right tree, which is hollow but for its first leaves, and what openings showed. It always finds the false leaf, within
    /// the window, in 13 challenges at most, and all its bonds come back.
    /// forge-config: default.fuzz.runs = 24
    function testFuzz_openLeaf_losesAHiddenTreeToADescentWhoseBondsComeBack(uint32 where, uint16 w, uint128 more)
        public
    {
        Leaf memory ghost;
        ghost.index = uint32(bound(where, 4, 4095));
        ghost.account = poster;
        ghost.w = w;
        ghost.cumulative = more;
        built[1].push(ghost);
        // What a wrong sum of weights leaves to the others is right in itself.
        for (uint256 i = 0; i < 3; ++i) {
            Leaf storage leaf = built[1][i];
            leaf.amount = uint128(700 ether * uint256(leaf.w) / (340 + uint256(w)));
            leaf.cumulative = leaf.amount;
        }
        post(1);
        Node[13] memory hollow;
        for (uint256 l = 0; l < 12; ++l) {
            hollow[l + 1] = SettlementTree.parent(hollow[l], hollow[l]);
        }
        uint32[] memory tried = new uint32[](13);
        uint256 steps = 0;
        uint32 index = 0;
        uint256 level = 12;
        while (true) {
            challenge(1, index, 0);
            tried[steps++] = index;
            goTo(uint64(block.timestamp) + 15);
            Opening memory o = openingOf(1, index, 0);
            rewards.openLeaf(1, 1, index, 0, o);
            if (!newestStands()) break;
            --level;
            while (o.siblings[level].hash == hollow[level].hash) {
                --level;
            }
            index = uint32(((uint256(index) >> level) ^ 1) << level);
            goTo(newest().windowEnds);
        }
        assertEq(index, ghost.index);
        for (uint256 i = 0; i + 1 < steps; ++i) {
            rewards.releaseChallenge(1, 1, tried[i], 0);
        }
        assertEq(rewards.bondsOf(challenger), steps * 2 ether + 8 ether);
        assertEq(rewards.bondsOf(poster), 0);
        assertBalanced();
    }
}
