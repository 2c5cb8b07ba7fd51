// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../src/interfaces/IChallengeBook.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Position} from "../src/interfaces/IJudge.sol";
import {IRewardsDistributor} from "../src/interfaces/IRewardsDistributor.sol";
import {Terms} from "../src/interfaces/IRun.sol";
import {IStakeVault} from "../src/interfaces/IStakeVault.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {GamesTest} from "./base/GamesTest.sol";

/// @notice Faults that other dispute games shipped, each tried here.
contract FaultsOfOthersGamesTest is GamesTest {
    World internal liar = World({lie: Lie.Word, step: 2, op: 20, element: 3});

    /// The Graph: the dispute period is changed in the middle of a dispute.
    function test_disputePeriodChangedMidDispute() public {
        bytes32 game = openAgainst(liar);
        answer(game, liar);
        bytes32 state = disputes.stateOf(game);
        bytes32 clock = keccak256(abi.encode(disputes.clockOf(game)));
        uint64 last = disputes.lastBlockOf(game);

        Terms memory terms = epochs.termsAt(1);
        terms.fromEpoch = epochs.currentEpoch() + 4;
        terms.specHash = keccak256("another spec");
        terms.judge = address(committee);
        terms.steps = 77;
        terms.traceEvery = 7;
        vm.prank(governor);
        epochs.announceTerms(terms);
        assertUntouched(game, state, clock, last);
        // Into the new terms, with no block in between, so that the game still runs.
        vm.warp(epochs.epochEnd(terms.fromEpoch));
        assertEq(epochs.termsAt(epochs.currentEpoch()).steps, 77);
        assertUntouched(game, state, clock, last);

        playWell(game, liar);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.Computation);
    }

    function assertUntouched(bytes32 game, bytes32 state, bytes32 clock, uint64 last) private view {
        assertEq(disputes.stateOf(game), state);
        assertEq(keccak256(abi.encode(disputes.clockOf(game))), clock);
        assertEq(disputes.lastBlockOf(game), last);
    }

    /// The Graph: a dispute opened late, and the stake unlocks before the verdict.
    function test_disputeOpenedLate() public {
        Submission memory s = submission(liar);
        commitSubmission(s);
        vm.prank(miner.account);
        vault.requestUnbond(STAKE);
        (, uint64 unlock) = vault.unbondingOf(miner.account);
        goTo(epochs.epochEnd(4) - 3);
        commitChallenge(hunter, s, SALT);
        goTo(epochs.epochEnd(4) - 1);
        bytes memory sig = signed(s);
        vm.prank(hunter);
        bytes32 game = disputes.openGame(SALT, s, sig);
        sync();
        // Whatever else an exit waits for is over.
        vm.mockCall(address(rewards), abi.encodeCall(IRewardsDistributor.nextEpoch, ()), abi.encode(100));
        vm.warp(unlock + 1);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.GamesOpen.selector, miner.account, 1));
        vm.prank(miner.account);
        vault.withdraw();
        playWell(game, liar);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NothingUnbonding.selector, miner.account));
        vm.prank(miner.account);
        vault.withdraw();
        (uint256 unbonding,) = vault.unbondingOf(miner.account);
        assertEq(unbonding, 0);
    }

    /// The stake is free again after the last of several games, not after the first.
    function test_disputeOpenedLate_oneGameOfTwoEnds() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 first = open(hunter, s, "1");
        bytes32 second = open(hunter, s, "2");
        answer(first, honest());
        timeOut(first);
        assertEq(vault.locksOf(miner.account), 1);
        // The same blocks passed for the other game, in which nobody answered.
        disputes.resolveTimeout(second, positionOf(second));
        assertEq(vault.locksOf(miner.account), 0);
    }

    /// Nitro: a move in the last second leaves the other side no time.
    function test_lastSecondMove() public {
        bytes32 game = openAgainst(liar);
        while (turnOf(game) != IDisputes.Turn.ChallengerProves) {
            vm.roll(disputes.lastBlockOf(game));
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickFirstWrong(game);
            else answer(game, liar);
            assertGe(disputes.lastBlockOf(game), block.number + params().turnBlocks);
        }
    }

    /// Nitro, Plasma: a bond that never comes back.
    function test_bondThatNeverComesBack() public {
        bytes32 game = openAgainst(liar);
        playWell(game, liar);
        uint256 before = token.balanceOf(hunter);
        vm.prank(hunter);
        disputes.withdrawBond(10 ether);
        assertEq(token.balanceOf(hunter), before + 10 ether);
        assertEq(disputes.bondsHeld(), 0);
        assertBalanced();
    }

    /// Cannon, opML: a game that assumes an honest defender. This one says nothing, or what is not so.
    function test_gameThatAssumesAnHonestDefender_silent() public {
        bytes32 game = openAgainst(liar);
        timeOut(game);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
    }

    function test_gameThatAssumesAnHonestDefender_noise() public {
        World memory noise = World({lie: Lie.Noise, step: 1, op: 0, element: 0});
        bytes32 game = openAgainst(noise);
        playWell(game, noise);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
    }

    /// opML: no deadlines. Here each turn has one, and anyone can call it.
    function test_noDeadlines() public {
        bytes32 game = openAgainst(liar);
        uint256 opened = block.number;
        uint256 snapshot;
        bool done = false;
        while (!done) {
            done = turnOf(game) == IDisputes.Turn.ChallengerProves;
            assertGt(disputes.lastBlockOf(game), block.number);
            assertLe(disputes.lastBlockOf(game), opened + disputes.longestGameBlocks());
            snapshot = vm.snapshotState();
            vm.roll(disputes.lastBlockOf(game) + 1);
            vm.prank(makeAddr("anyone"));
            disputes.resolveTimeout(game, positionOf(game));
            assertTrue(turnOf(game) == IDisputes.Turn.Over);
            vm.revertToState(snapshot);
            if (done) break;
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickFirstWrong(game);
            else answer(game, liar);
        }
    }

    /// A pause stops the deadlines, and takes nothing from either side.
    function test_pauseFreezesTheClocks() public {
        bytes32 game = openAgainst(liar);
        Position memory p = positionOf(game);
        vm.roll(block.number + 10);
        uint64 last = disputes.lastBlockOf(game);
        uint64 before = epochs.blockNumber();
        vm.prank(governor);
        epochs.pause();
        vm.roll(block.number + 1000);
        vm.expectRevert(IEpochManager.Paused.selector);
        disputes.resolveTimeout(game, p);
        bytes32[] memory list = listBelow(leavesOf(liar, p), p);
        vm.expectRevert(IEpochManager.Paused.selector);
        disputes.postList(game, p, list);
        vm.prank(governor);
        epochs.resume();
        assertEq(epochs.blockNumber(), before);
        assertEq(disputes.lastBlockOf(game), last);
        vm.roll(block.number + 30);
        disputes.postList(game, p, list);
    }

    /// Cannon: a payout that can be repeated.
    function test_repeatablePayout() public {
        bytes32 game = openAgainst(honest());
        while (turnOf(game) != IDisputes.Turn.ChallengerProves) {
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickChild(game, 1);
            else answer(game, honest());
        }
        Position memory p = positionOf(game);
        bytes memory proof = evidence(honest(), p);
        disputes.decide(game, p, proof);
        bytes memory over = abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.Over);
        vm.expectRevert(over);
        disputes.decide(game, p, proof);
        vm.expectRevert(over);
        disputes.resolveTimeout(game, p);
        vm.expectRevert(over);
        disputes.postList(game, p, new bytes32[](0));
        vm.expectRevert(over);
        disputes.enterFresh(game, p, 0, new bytes32[](0), "");
        vm.expectRevert(over);
        disputes.enterCommitted(game, p, "");
        vm.expectRevert(over);
        vm.prank(hunter);
        disputes.pick(game, p, 0, 0, new bytes32[](0), "");
        uint256 paid = disputes.freeBond(miner.account);
        vm.startPrank(miner.account);
        disputes.withdrawBond(paid);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.InsufficientBond.selector, miner.account, 0, 1));
        disputes.withdrawBond(1);
        vm.stopPrank();
        assertBalanced();
    }

    /// And none reopens: another game in its place is another game.
    function test_repeatablePayout_inAPlaceThatIsUsedAgain() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 first = open(hunter, s, "1");
        Position memory p = positionOf(first);
        answer(first, honest());
        timeOut(first);
        bytes32 second = open(hunter, s, "2");
        assertEq(uint16(uint256(first)), uint16(uint256(second)));
        assertTrue(turnOf(first) == IDisputes.Turn.None);
        assertEq(disputes.lastBlockOf(first), 0);
        assertEq(disputes.stateOf(first), 0);
        vm.roll(block.number + 41);
        vm.expectPartialRevert(IDisputes.WrongPosition.selector);
        disputes.resolveTimeout(first, p);
        assertTrue(turnOf(second) == IDisputes.Turn.ChallengerPicks);
    }

    /// Rainbow bridge: the offender runs ahead of its own challenger, here with a game that it concedes to a friend.
    function test_offenderFrontRunsItsChallenger() public {
        address friend = makeAddr("friend");
        fund(friend, 100 ether);
        Submission memory s = submission(liar);
        commitSubmission(s);
        commitChallenge(hunter, s, "1");
        nextBlock();
        bytes32 own = open(friend, s, "2");
        bytes memory sig = signed(s);
        vm.prank(hunter);
        bytes32 game = disputes.openGame("1", s, sig);
        sync();
        // The friend's game ends at once, the other one takes its time.
        playWell(own, liar);
        assertEq(verdicts.verdictOf(miner.account, ROUND).hunter, friend);
        playWell(game, liar);
        assertEq(verdicts.verdictOf(miner.account, ROUND).hunter, hunter);
        assertEq(disputes.freeBond(hunter), 10 ether);
    }

    /// What the defendant signs about one claim says nothing about another one of the same miner.
    function test_signaturesForOneClaimServeNoOther() public view {
        Position memory a;
        Position memory b;
        a.claim = "a";
        b.claim = "b";
        (a.level, b.level) = (1, 1);
        assertTrue(disputes.pathOf(a) != disputes.pathOf(b));
    }
}
