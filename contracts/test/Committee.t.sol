// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ICommittee} from "../src/interfaces/ICommittee.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {LevelKind, Position, Ruling} from "../src/interfaces/IJudge.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {NativeTest} from "./base/NativeTest.sol";

contract CommitteeTest is NativeTest {
    // ---------------------------------------------------------------- shape

    function test_levelOf_succeedsForEachInterval() public view {
        Position memory p;
        p.round = ROUND;
        (LevelKind kind, uint64 count) = committee.levelOf(p);
        assertTrue(kind == LevelKind.Committed);
        assertEq(count, 5);
        p.level = 1;
        uint64[5] memory steps = [uint64(0), 2, 2, 1, 0];
        for (uint64 i = 0; i < 5; ++i) {
            p.picks[0] = i;
            (kind, count) = committee.levelOf(p);
            assertTrue(kind == (steps[i] > 1 ? LevelKind.Fresh : LevelKind.Done));
            assertEq(count, steps[i] > 1 ? steps[i] : 0);
        }
        p.level = 2;
        (kind,) = committee.levelOf(p);
        assertTrue(kind == LevelKind.Done);
    }

    function test_enter_revertsAlways() public {
        Position memory p;
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NotCommittedLevel.selector, 0));
        committee.enter(p, "");
    }

    function test_decide_revertsIfNotFromDisputes() public {
        Position memory p;
        vm.expectRevert(abi.encodeWithSelector(ICommittee.OnlyDisputes.selector, address(this)));
        committee.decide(0, p, "");
    }

    function test_decide_succeedsInOpeningTheVote() public {
        bytes32 game = openNative();
        bisect(game, 2);
        Position memory p = positionOf(game);
        assertEq(p.level, 2);
        assertEq(p.picks[0], 2);
        assertTrue(p.fault == Fault.NativeComputation);
        uint64 opened = uint64(block.number);
        vm.expectEmit(address(committee));
        emit ICommittee.VoteOpened(game, miner.account, ROUND, 1, opened + 10, opened + 20, 500 ether);
        disputes.decide(game, p, "");
        assertTrue(turnOf(game) == IDisputes.Turn.JudgeDecides);
        assertEq(disputes.lastBlockOf(game), 0);
        // Nobody's clock runs any more, and nobody can end the game by the clock.
        vm.roll(block.number + 1000);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.JudgeDecides));
        disputes.resolveTimeout(game, p);
    }

    function test_decide_succeedsForAnIntervalOfOneStepWithoutASecondLevel() public {
        bytes32 game = openNative();
        bisect(game, 3);
        assertEq(positionOf(game).level, 1);
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerProves);
    }

    function test_decide_succeedsAsTheChallengersDuty() public {
        bytes32 game = openNative();
        bisect(game, 2);
        timeOut(game);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.DefendantWon);
    }

    // ---------------------------------------------------------------- outcomes

    function test_vote_threeOfFiveSlash() public {
        bytes32 game = voting();
        vote(game, "gggnn");
        assertTrue(committee.voteOf(game).ruling == Ruling.Guilty);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.NativeComputation);
        assertEq(vault.activeOf(miner.account), STAKE * 8 / 10);
        assertEq(disputes.freeBond(hunter), 10 ether);
        assertEq(vault.locksOf(miner.account), 0);
        assertBalanced();
    }

    function test_vote_twoOfFiveDoNothing() public {
        bytes32 game = voting();
        vote(game, "ggnnn");
        assertTrue(committee.voteOf(game).ruling == Ruling.NotGuilty);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.DefendantWon);
        assertEq(vault.activeOf(miner.account), STAKE);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.None);
        assertEq(disputes.freeBond(hunter), 0);
        // Two lists and a root.
        assertEq(disputes.freeBond(miner.account), 1.5 ether);
        assertBalanced();
        // The two liars lose, once; the others nothing.
        for (uint32 i = 0; i < 5; ++i) {
            if (i >= 2) vm.expectRevert(abi.encodeWithSelector(ICommittee.NothingToFine.selector, game, i));
            committee.fineVoter(game, i);
            assertEq(stakeOf(i), i < 2 ? STAKE - 3 ether : STAKE);
        }
        vm.expectRevert(abi.encodeWithSelector(ICommittee.AlreadyFined.selector, game, 1));
        committee.fineVoter(game, 1);
    }

    function test_vote_exactlyHalfIsNotEnough() public {
        join("sixth", Role.Validator, STAKE);
        Submission memory s = native();
        commitSubmission(s);
        goToEpoch(2);
        bytes32 game = open(hunter, s, SALT);
        bisect(game, 2);
        disputes.decide(game, positionOf(game), "");
        vote(game, "ggg");
        assertEq(committee.voteOf(game).total, 600 ether);
        assertEq(committee.voteOf(game).guilty, 300 ether);
        assertTrue(committee.voteOf(game).ruling == Ruling.Undecided);
        assertEq(vault.activeOf(miner.account), STAKE);
    }

    function test_vote_silenceIsNoMajority() public {
        bytes32 game = voting();
        vote(game, "gg--n");
        assertTrue(committee.voteOf(game).ruling == Ruling.Undecided);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.Undecided);
        assertEq(vault.activeOf(miner.account), STAKE);
        // Nothing is proven against anybody: the challenger only pays for the moves.
        assertEq(disputes.freeBond(miner.account), 1.5 ether);
        assertEq(disputes.freeBond(hunter), 8.5 ether);
        assertBalanced();
        // And silence costs, but no vote does.
        for (uint32 i = 0; i < 5; ++i) {
            bool silent = i == 2 || i == 3;
            if (!silent) vm.expectRevert(abi.encodeWithSelector(ICommittee.NothingToFine.selector, game, i));
            committee.fineVoter(game, i);
            assertEq(stakeOf(i), silent ? STAKE - 3 ether : STAKE);
        }
    }

    function test_vote_thatIsNeverRevealedIsSilence() public {
        bytes32 game = voting();
        commitVote(game, 0, true);
        vm.roll(committee.voteOf(game).revealDeadline + 1);
        disputes.decide(game, positionOf(game), "");
        vm.expectEmit(address(committee));
        emit ICommittee.VoterFined(game, validators[0].account, 0, false, 3 ether);
        committee.fineVoter(game, 0);
    }

    function test_fineVoter_succeedsAgainstDissentFromAGuiltyVerdict() public {
        bytes32 game = voting();
        vote(game, "gggn-");
        vm.expectEmit(address(committee));
        emit ICommittee.VoterFined(game, validators[3].account, 3, true, 3 ether);
        committee.fineVoter(game, 3);
        committee.fineVoter(game, 4);
        assertEq(stakeOf(3), STAKE - 3 ether);
        assertEq(stakeOf(4), STAKE - 3 ether);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NothingToFine.selector, game, 0));
        committee.fineVoter(game, 0);
    }

    function test_fineVoter_revertsIfNotClosedOrUnknown() public {
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NoSuchVote.selector, bytes32("?")));
        committee.fineVoter("?", 0);
        bytes32 game = voting();
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NotClosed.selector, game));
        committee.fineVoter(game, 0);
        vote(game, "ggg");
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NoSuchValidator.selector, 1, 5));
        committee.fineVoter(game, 5);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NoSuchValidator.selector, 1, 77));
        committee.fineVoter(game, 77);
    }

    // ---------------------------------------------------------------- windows

    function test_commitVote_succeedsInTheLastBlockAndNotAfter() public {
        bytes32 game = voting();
        uint64 last = committee.voteOf(game).commitDeadline;
        vm.roll(last);
        commitVote(game, 0, true);
        vm.roll(last + 1);
        bytes32 commitment = commitmentOf(game, 1, true);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.TooLate.selector, last + 1, last));
        vm.prank(validators[1].operator);
        committee.commitVote(game, commitment);
    }

    function test_revealVote_succeedsOnlyBetweenItsDeadlines() public {
        bytes32 game = voting();
        commitVote(game, 0, true);
        commitVote(game, 1, true);
        commitVote(game, 2, true);
        uint64 opens = committee.voteOf(game).commitDeadline;
        uint64 last = committee.voteOf(game).revealDeadline;
        vm.roll(opens);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.TooEarly.selector, opens, opens));
        revealVote(game, 0, true);
        vm.roll(opens + 1);
        revealVote(game, 0, true);
        vm.roll(last);
        revealVote(game, 1, true);
        disputes.decide(game, positionOf(game), "");
        assertTrue(turnOf(game) == IDisputes.Turn.JudgeDecides);
        vm.roll(last + 1);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.TooLate.selector, last + 1, last));
        revealVote(game, 2, true);
        disputes.decide(game, positionOf(game), "");
        assertTrue(turnOf(game) == IDisputes.Turn.Over);
    }

    function test_commitVote_revertsIfTwiceOrNobody() public {
        bytes32 game = voting();
        commitVote(game, 0, true);
        bytes32 commitment = commitmentOf(game, 0, false);
        vm.startPrank(validators[0].operator);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.AlreadyCommitted.selector, game, 0));
        committee.commitVote(game, commitment);
        vm.expectRevert(ICommittee.ZeroCommitment.selector);
        committee.commitVote(game, 0);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NoSuchVote.selector, bytes32("?")));
        committee.commitVote("?", commitment);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NotValidator.selector, miner.operator, 1));
        vm.prank(miner.operator);
        committee.commitVote(game, commitment);
    }

    function test_revealVote_revertsIfItIsNotWhatWasCommitted() public {
        bytes32 game = voting();
        commitVote(game, 0, true);
        vm.roll(committee.voteOf(game).commitDeadline + 1);
        vm.expectRevert(
            abi.encodeWithSelector(
                ICommittee.CommitmentMismatch.selector, commitmentOf(game, 0, true), commitmentOf(game, 0, false)
            )
        );
        revealVote(game, 0, false);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.NotCommitted.selector, game, 1));
        revealVote(game, 1, true);
        revealVote(game, 0, true);
        vm.expectRevert(abi.encodeWithSelector(ICommittee.AlreadyRevealed.selector, game, 0));
        revealVote(game, 0, true);
    }

    /// A commit copied from another validator can't be revealed: it holds that one's account.
    function test_revealVote_revertsIfTheCommitWasCopied() public {
        bytes32 game = voting();
        bytes32 copied = commitmentOf(game, 0, true);
        commitVote(game, 0, true);
        vm.prank(validators[1].operator);
        committee.commitVote(game, copied);
        vm.roll(committee.voteOf(game).commitDeadline + 1);
        revealVote(game, 0, true);
        vm.expectPartialRevert(ICommittee.CommitmentMismatch.selector);
        revealVote(game, 1, true);
    }

    /// Stake that came after the vote opened counts for nothing, and stake that left still counts.
    function test_vote_countsTheSnapshotOfItsOpening() public {
        bytes32 game = voting();
        fund(validators[3].account, 1000 ether);
        vm.startPrank(validators[3].account);
        vault.deposit(1000 ether);
        vm.stopPrank();
        vm.prank(validators[0].account);
        vault.requestUnbond(STAKE);
        goToEpoch(2);
        vm.roll(committee.voteOf(game).commitDeadline);
        vote(game, "gggnn");
        assertEq(committee.voteOf(game).total, 500 ether);
        assertEq(committee.voteOf(game).guilty, 300 ether);
        assertTrue(committee.voteOf(game).ruling == Ruling.Guilty);
    }
}
