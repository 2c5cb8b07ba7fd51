// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../src/interfaces/IChallengeBook.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {LevelKind, Position} from "../src/interfaces/IJudge.sol";
import {Genesis, Params} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {GamesTest} from "./base/GamesTest.sol";
import {ModelJudge} from "./base/ModelJudge.sol";

contract GamesOpenTest is GamesTest {
    function test_commitChallenge_succeedsWithTheGameBond() public {
        commitChallenge(hunter, submission(honest()), SALT);
        assertEq(disputes.bondsHeld(), 10 ether);
        assertBalanced();
    }

    function test_openGame_succeedsAndLocksTheStake() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 commitment = commitChallenge(hunter, s, SALT);
        uint64 committed = uint64(block.number);
        nextBlock();
        uint256 id = uint256(keccak256(abi.encode(epochs.run(), hunter, commitment, committed)));
        uint256 place = uint256(keccak256(abi.encode(hunter))) % 65_535 + 1;
        bytes32 game = bytes32(id >> 16 << 16 | place);
        bytes memory sig = signed(s);
        vm.expectEmit(address(disputes));
        emit IDisputes.GameOpened(game, miner.account, hunter, commitment);
        vm.prank(hunter);
        assertEq(disputes.openGame(SALT, s, sig), game);
        sync();
        Position memory p = positionOf(game);
        assertEq(p.judge, address(model));
        assertEq(p.challenger, hunter);
        assertEq(p.defendant, miner.account);
        assertTrue(p.fault == Fault.Computation);
        assertEq(p.claim, digestOf(s));
        assertEq(p.node, s.traceRoot);
        assertEq(p.depth, 2);
        assertEq(p.count, 4);
        assertEq(disputes.stateOf(game), keccak256(abi.encode(game, p)));
        assertTrue(turnOf(game) == IDisputes.Turn.DefendantPosts);
        assertEq(disputes.clockOf(game).committedBlock, committed);
        assertEq(vault.locksOf(miner.account), 1);
        assertEq(disputes.freeBond(hunter), 0);
        assertBalanced();
    }

    function test_openGame_succeedsManyTimesForOneCommitment() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 first = open(hunter, s, "1");
        bytes32 second = open(hunter, s, "2");
        assertTrue(first != second);
        assertEq(vault.locksOf(miner.account), 2);
        assertEq(disputes.bondsHeld(), 20 ether);
        assertBalanced();
    }

    function test_openGame_succeedsInTheLastSecondOfTheFraudWindow() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        goTo(epochs.epochEnd(4) - 3);
        commitChallenge(hunter, s, SALT);
        goTo(epochs.epochEnd(4) - 1);
        bytes memory sig = signed(s);
        vm.prank(hunter);
        disputes.openGame(SALT, s, sig);
    }

    function test_openGame_revertsIfTheFraudWindowIsClosed() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        goTo(epochs.epochEnd(4) - 2);
        commitChallenge(hunter, s, SALT);
        goTo(epochs.epochEnd(4));
        expectRefused(s, signed(s), abi.encodeWithSelector(IDisputes.FraudWindowClosed.selector, ROUND, 4, 5));
    }

    function test_openGame_revertsIfNotChallenged() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes memory sig = signed(s);
        bytes32 commitment = keccak256(abi.encode(hunter, keccak256(abi.encode(s, sig)), SALT));
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotChallenged.selector, hunter, commitment));
        vm.prank(hunter);
        disputes.openGame(SALT, s, sig);
    }

    function test_openGame_revertsIfItIsSomebodyElsesChallenge() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        commitChallenge(hunter, s, SALT);
        nextBlock();
        bytes memory sig = signed(s);
        vm.expectRevert();
        disputes.openGame(SALT, s, sig);
    }

    function test_openGame_revertsIfCommittedInTheSameBlock() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        commitChallenge(hunter, s, SALT);
        expectRefused(
            s, signed(s), abi.encodeWithSelector(IChallengeBook.RevealTooEarly.selector, block.number, block.number)
        );
    }

    function test_openGame_revertsIfNotCommitted() public {
        Submission memory s = submission(honest());
        challengeAndExpect(
            s, abi.encodeWithSelector(IDisputes.NotCommitted.selector, miner.account, ROUND, digestOf(s))
        );
    }

    function test_openGame_revertsIfNotSignedByTheOperator() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes memory sig = sign(hunterKey, digestOf(s));
        vm.prank(hunter);
        disputes.commitChallenge(keccak256(abi.encode(hunter, keccak256(abi.encode(s, sig)), SALT)));
        nextBlock();
        expectRefused(s, sig, abi.encodeWithSelector(IDisputes.NotSigned.selector, miner.account, ROUND, hunter));
    }

    function test_openGame_revertsIfTheBeaconIsNotCanonical() public {
        Submission memory s = submission(honest());
        s.beacon = keccak256("other");
        commitSubmission(s);
        challengeAndExpect(
            s, abi.encodeWithSelector(IDisputes.NotCanonicalBeacon.selector, ROUND, s.beacon, beaconValue)
        );
    }

    function test_openGame_revertsIfOfAnotherRun() public {
        Submission memory s = submission(honest());
        s.run = keccak256("other");
        challengeAndExpect(s, abi.encodeWithSelector(IDisputes.WrongRun.selector, s.run));
    }

    function test_openGame_revertsIfTheSpecIsWrong() public {
        Submission memory s = submission(honest());
        s.specHash = keccak256("other");
        commitSubmission(s);
        challengeAndExpect(s, abi.encodeWithSelector(IDisputes.WrongSpec.selector, s.specHash, SPEC_HASH));
    }

    function test_openGame_revertsIfTheStepsAreVisiblyWrong() public {
        Submission memory s = submission(honest());
        s.steps = 4;
        commitSubmission(s);
        challengeAndExpect(s, abi.encodeWithSelector(IDisputes.WrongSteps.selector, 4, 3));
    }

    function test_constructor_revertsIfTheBondDoesNotCoverTheLongestPath() public {
        Genesis memory g = genesis();
        g.params.moveTariff += 1;
        vm.expectRevert(abi.encodeWithSelector(IDisputes.BondTooSmall.selector, 10 ether, 10 ether + 20));
        deployCode("Disputes.sol:Disputes", abi.encode(g));
    }

    function test_constructor_revertsIfTheClocksAreTooShort() public {
        Genesis memory g = genesis();
        g.params.turnBlocks = 41;
        vm.expectRevert(abi.encodeWithSelector(IDisputes.ClocksTooShort.selector, 40, 41));
        deployCode("Disputes.sol:Disputes", abi.encode(g));
        g.params.turnBlocks = 0;
        vm.expectRevert(abi.encodeWithSelector(IDisputes.ClocksTooShort.selector, 40, 0));
        deployCode("Disputes.sol:Disputes", abi.encode(g));
    }

    function test_domainSeparator_succeedsAsTheRegistrys() public view {
        assertEq(disputes.domainSeparator(), registry.domainSeparator());
    }

    function test_longestGameBlocks_succeedsAsStated() public view {
        assertEq(disputes.longestGameBlocks(), 2 * 40 + 64 * 5 + 10 + 10);
    }

    function challengeAndExpect(Submission memory s, bytes memory reason) private {
        commitChallenge(hunter, s, SALT);
        nextBlock();
        expectRefused(s, signed(s), reason);
    }

    function expectRefused(Submission memory s, bytes memory sig, bytes memory reason) private {
        vm.expectRevert(reason);
        vm.prank(hunter);
        disputes.openGame(SALT, s, sig);
    }
}

contract GamesPlayTest is GamesTest {
    World internal liar = World({lie: Lie.Word, step: 2, op: 20, element: 3});

    /// A game against the liar, with the challenger to pick.
    function opened() private returns (bytes32 game, Position memory p) {
        game = openAgainst(liar);
        answer(game, liar);
        p = positionOf(game);
    }

    function descend(bytes32 game, World memory w, IDisputes.Turn until) private {
        while (turnOf(game) != until) {
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickFirstWrong(game);
            else assertTrue(answer(game, w));
        }
    }

    // ---------------------------------------------------------------- whole games

    function test_play_succeedsAgainstEveryLie() public {
        uint256 snapshot = vm.snapshotState();
        for (uint8 lie = 1; lie <= uint8(Lie.Start); ++lie) {
            // Four words where there is room for eight, but no room past the four leaves of the trace.
            if (Lie(lie) == Lie.TracePadding) continue;
            bytes32 game = openAgainst(World({lie: Lie(lie), step: 2, op: 20, element: 3}));
            playWell(game, World({lie: Lie(lie), step: 2, op: 20, element: 3}));
            assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
            assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.Computation);
            assertEq(vault.activeOf(miner.account), 0);
            assertEq(disputes.freeBond(hunter), 10 ether);
            assertEq(vault.locksOf(miner.account), 0);
            assertBalanced();
            vm.revertToStateAndDelete(snapshot);
            snapshot = vm.snapshotState();
        }
    }

    function test_play_succeedsForTheFirstOperatorAndTheLast() public {
        uint256 snapshot = vm.snapshotState();
        for (uint32 op = 0; op < shape.ops; op += shape.ops - 1) {
            World memory w = World({lie: Lie.Word, step: 1, op: op, element: 0});
            bytes32 game = openAgainst(w);
            playWell(game, w);
            assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
            vm.revertToStateAndDelete(snapshot);
            snapshot = vm.snapshotState();
        }
    }

    function test_play_endsAtTheDisputedWord() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.ChallengerProves);
        Position memory p = positionOf(game);
        assertEq(p.level, 3);
        assertEq(p.picks[0], 2);
        assertEq(p.picks[1], 20);
        assertEq(p.picks[2], 3);
        assertEq(p.roots[0], rootOf(traceLeaves(liar)));
        assertEq(p.roots[1], rootOf(operatorLeaves(liar, 2)));
        // One list of the trace, two of 37 operators, one of five words; two levels entered.
        assertEq(p.lists, 4);
        assertEq(disputes.clockOf(game).answers, 6);
    }

    function test_decide_succeedsAgainstAChallengerThatIsWrong() public {
        bytes32 game = openAgainst(honest());
        while (turnOf(game) != IDisputes.Turn.ChallengerProves) {
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickChild(game, 1);
            else answer(game, honest());
        }
        Position memory p = positionOf(game);
        bytes memory proof = evidence(honest(), p);
        vm.expectEmit(address(disputes));
        emit IDisputes.GameOver(game, miner.account, hunter, IDisputes.Outcome.DefendantWon, 3 ether, 0);
        disputes.decide(game, p, proof);
        assertEq(disputes.freeBond(miner.account), 3 ether);
        assertEq(disputes.freeBond(hunter), 0);
        assertEq(vault.activeOf(miner.account), STAKE);
        assertBalanced();
        vm.prank(miner.account);
        disputes.withdrawBond(3 ether);
        assertEq(token.balanceOf(miner.account), 3 ether);
        assertBalanced();
    }

    function test_decide_revertsIfTheEvidenceDoesNotFit() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.ChallengerProves);
        Position memory p = positionOf(game);
        Position memory other = positionOf(game);
        other.picks[2] = 1;
        bytes memory proof = evidence(liar, other);
        vm.expectRevert(ModelJudge.WrongEvidence.selector);
        disputes.decide(game, p, proof);
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerProves);
    }

    function test_decide_revertsIfNotBisected() public {
        (bytes32 game, Position memory p) = opened();
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.ChallengerPicks));
        disputes.decide(game, p, "");
    }

    function test_decide_succeedsInTheLastBlockAndNotAfter() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.ChallengerProves);
        Position memory p = positionOf(game);
        bytes memory proof = evidence(liar, p);
        uint64 last = disputes.lastBlockOf(game);
        vm.roll(last + 1);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.OutOfTime.selector, game, last, last + 1));
        disputes.decide(game, p, proof);
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.StillInTime.selector, game, last, last));
        disputes.resolveTimeout(game, p);
        vm.prank(makeAddr("anyone"));
        disputes.decide(game, p, proof);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
    }

    // ---------------------------------------------------------------- picks

    function test_pick_succeedsRelayedWithASignature() public {
        (bytes32 game, Position memory p) = opened();
        bytes32[] memory list = listed[p.node][4];
        bytes32 digest = disputes.pickDigest(disputes.stateOf(game), 2, list[2]);
        bytes memory sig = sign(hunterKey, digest);
        disputes.pick(game, p, 2, list[2], proofOf(list, 2), sig);
        sync();
        assertEq(positionOf(game).picks[0], 2);
    }

    function test_pick_revertsIfNotTheChallengers() public {
        (bytes32 game, Position memory p) = opened();
        bytes32[] memory list = listed[p.node][4];
        bytes32[] memory proof = proofOf(list, 2);
        bytes memory sig = sign(miner.operatorKey, disputes.pickDigest(disputes.stateOf(game), 2, list[2]));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotChallenger.selector, miner.operator, hunter));
        disputes.pick(game, p, 2, list[2], proof, sig);
    }

    function test_pick_revertsIfTheSignatureIsForAnotherChild() public {
        (bytes32 game, Position memory p) = opened();
        bytes32[] memory list = listed[p.node][4];
        bytes32[] memory proof = proofOf(list, 2);
        bytes memory sig = sign(hunterKey, disputes.pickDigest(disputes.stateOf(game), 1, list[1]));
        vm.expectPartialRevert(IDisputes.NotChallenger.selector);
        disputes.pick(game, p, 2, list[2], proof, sig);
    }

    function test_pick_revertsIfTheNodeIsNotInTheList() public {
        (bytes32 game, Position memory p) = opened();
        bytes32[] memory list = listed[p.node][4];
        bytes32[] memory proof = proofOf(list, 2);
        vm.startPrank(hunter);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongNodes.selector, p.node));
        disputes.pick(game, p, 3, list[2], proof, "");
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongNodes.selector, p.node));
        disputes.pick(game, p, 4, list[2], proof, "");
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLength.selector, 1, 2));
        disputes.pick(game, p, 0, list[0], new bytes32[](1), "");
    }

    function test_pick_revertsIfThePositionIsNotTheGames() public {
        (bytes32 game, Position memory p) = opened();
        bytes32[] memory list = listed[p.node][4];
        bytes32[] memory proof = proofOf(list, 2);
        p.count = 5;
        vm.expectPartialRevert(IDisputes.WrongPosition.selector);
        vm.prank(hunter);
        disputes.pick(game, p, 2, list[2], proof, "");
    }

    function test_pick_revertsIfThereIsNothingAsThereShouldBe() public {
        bytes32 game = openAgainst(honest());
        while (positionOf(game).level != 2 || turnOf(game) != IDisputes.Turn.ChallengerPicks) {
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickChild(game, 1);
            else answer(game, honest());
        }
        Position memory p = positionOf(game);
        bytes32[] memory list = listed[p.node][8];
        bytes32[] memory proof = proofOf(list, 7);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NothingThere.selector, 7, 5));
        vm.prank(hunter);
        disputes.pick(game, p, 7, list[7], proof, "");
    }

    function test_pick_revertsIfItIsTheDefendantsTurn() public {
        bytes32 game = openAgainst(liar);
        Position memory p = positionOf(game);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.DefendantPosts));
        vm.prank(hunter);
        disputes.pick(game, p, 0, 0, new bytes32[](2), "");
    }

    // ---------------------------------------------------------------- answers

    function test_postList_succeedsFromAnyone() public {
        bytes32 game = openAgainst(liar);
        Position memory p = positionOf(game);
        bytes32[] memory list = listBelow(leavesOf(liar, p), p);
        vm.expectEmit(address(disputes));
        emit IDisputes.ListPosted(game, p.node, list, uint64(block.number) + 40);
        vm.prank(makeAddr("anyone"));
        disputes.postList(game, p, list);
        assertTrue(disputes.isPosted(p.node, 2));
        assertFalse(disputes.isPosted(p.node, 1));
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerPicks);
    }

    function test_postList_revertsIfItDoesNotHashUp() public {
        bytes32 game = openAgainst(liar);
        Position memory p = positionOf(game);
        bytes32[] memory list = listBelow(leavesOf(liar, p), p);
        list[0] = keccak256("other");
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongNodes.selector, p.node));
        disputes.postList(game, p, list);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLength.selector, 2, 4));
        disputes.postList(game, p, new bytes32[](2));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLength.selector, 0, 4));
        disputes.postList(game, p, new bytes32[](0));
    }

    function test_enterFresh_succeedsByOwnerByOperatorAndBySignature() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.DefendantEnters);
        Position memory p = positionOf(game);
        bytes32[] memory leaves = leavesOf(liar, p);
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        bytes memory sig = sign(miner.operatorKey, disputes.freshDigest(disputes.pathOf(p), root));
        uint256 snapshot = vm.snapshotState();
        disputes.enterFresh(game, p, root, proof, sig);
        sync();
        assertEq(positionOf(game).roots[1], root);
        vm.revertToState(snapshot);
        vm.prank(miner.account);
        disputes.enterFresh(game, p, root, proof, "");
        vm.revertToState(snapshot);
        vm.prank(miner.operator);
        disputes.enterFresh(game, p, root, proof, "");
    }

    function test_enterFresh_revertsIfForged() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.DefendantEnters);
        Position memory p = positionOf(game);
        bytes32[] memory leaves = leavesOf(honest(), p);
        leaves[p.count - 1] = p.node;
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        bytes memory sig = sign(hunterKey, disputes.freshDigest(disputes.pathOf(p), root));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotDefendant.selector, hunter, miner.account));
        disputes.enterFresh(game, p, root, proof, sig);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotDefendant.selector, hunter, miner.account));
        vm.prank(hunter);
        disputes.enterFresh(game, p, root, proof, "");
        // The defendant's own signature, for another root.
        sig = sign(miner.operatorKey, disputes.freshDigest(disputes.pathOf(p), keccak256("other")));
        vm.expectPartialRevert(IDisputes.NotDefendant.selector);
        disputes.enterFresh(game, p, root, proof, sig);
    }

    function test_enterFresh_revertsIfItDoesNotEndInTheDisputedLeaf() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.DefendantEnters);
        Position memory p = positionOf(game);
        bytes32[] memory leaves = leavesOf(honest(), p);
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        vm.startPrank(miner.operator);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLastLeaf.selector, p.node));
        disputes.enterFresh(game, p, root, proof, "");
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLength.selector, 2, 6));
        disputes.enterFresh(game, p, root, new bytes32[](2), "");
    }

    function test_enterCommitted_revertsIfThePreimageOrTheKindIsWrong() public {
        bytes32 game = openAgainst(liar);
        descend(game, liar, IDisputes.Turn.DefendantEnters);
        Position memory p = positionOf(game);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLevelKind.selector, LevelKind.Fresh));
        disputes.enterCommitted(game, p, "");
        answer(game, liar);
        descend(game, liar, IDisputes.Turn.DefendantEnters);
        p = positionOf(game);
        vm.expectRevert(ModelJudge.WrongPreimage.selector);
        disputes.enterCommitted(game, p, abi.encode(keccak256("other")));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.WrongLevelKind.selector, LevelKind.Committed));
        disputes.enterFresh(game, p, 0, new bytes32[](0), "");
    }

    // ---------------------------------------------------------------- clocks

    function test_resolveTimeout_succeedsAgainstTheDefendantRightAfterItsLastBlock() public {
        bytes32 game = openAgainst(honest());
        Position memory p = positionOf(game);
        uint64 last = uint64(block.number) + 40;
        assertEq(disputes.lastBlockOf(game), last);
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.StillInTime.selector, game, last, last));
        disputes.resolveTimeout(game, p);
        vm.roll(last + 1);
        bytes32[] memory list = listBelow(leavesOf(honest(), p), p);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.OutOfTime.selector, game, last, last + 1));
        disputes.postList(game, p, list);
        disputes.resolveTimeout(game, p);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
        assertEq(vault.activeOf(miner.account), 0);
    }

    function test_resolveTimeout_succeedsAgainstTheChallenger() public {
        (bytes32 game,) = opened();
        timeOut(game);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.DefendantWon);
        assertEq(disputes.freeBond(miner.account), 0.5 ether);
        assertEq(vault.activeOf(miner.account), STAKE);
        assertBalanced();
    }

    function test_resolveTimeout_revertsIfThereIsNoSuchGameOrItIsOver() public {
        Position memory p;
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, bytes32(0), IDisputes.Turn.None));
        disputes.resolveTimeout(0, p);
        (bytes32 game,) = opened();
        timeOut(game);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.Over));
        disputes.resolveTimeout(game, p);
    }

    function test_clocks_chargeEachSideForItsOwnTurns() public {
        bytes32 game = openAgainst(liar);
        vm.roll(block.number + 7);
        answer(game, liar);
        vm.roll(block.number + 11);
        pickFirstWrong(game);
        IDisputes.Clock memory clock = disputes.clockOf(game);
        assertEq(clock.defendantLeft, 33);
        assertEq(clock.challengerLeft, 29);
        assertEq(clock.since, block.number);
    }

    function test_clocks_leaveAMinimumForEachTurn() public {
        bytes32 game = openAgainst(liar);
        vm.roll(block.number + 40);
        answer(game, liar);
        pickFirstWrong(game);
        assertEq(disputes.clockOf(game).defendantLeft, 0);
        uint64 last = uint64(block.number) + 5;
        assertEq(disputes.lastBlockOf(game), last);
        vm.roll(last);
        answer(game, liar);
        assertTrue(turnOf(game) == IDisputes.Turn.DefendantPosts);
        assertEq(disputes.lastBlockOf(game), last + 5);
    }

    /// Both sides use every block that they have, as often as they can.
    function test_longestGameBlocks_succeedsForTheSlowestPlayers() public {
        bytes32 game = openAgainst(liar);
        uint256 opened_ = block.number;
        while (turnOf(game) != IDisputes.Turn.Over) {
            vm.roll(disputes.lastBlockOf(game));
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) {
                pickFirstWrong(game);
            } else if (turnOf(game) == IDisputes.Turn.ChallengerProves) {
                timeOut(game);
            } else {
                answer(game, liar);
            }
        }
        assertLe(block.number, opened_ + disputes.longestGameBlocks());
    }

    // ---------------------------------------------------------------- shared answers

    /// @dev Lists serve it as they are; the roots of its two further levels have to be brought again, and are paid.
    function test_secondGame_costsTheDefendantNoList() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 game = open(hunter, s, "1");
        uint256[4] memory path = [uint256(1), 3, 0, 2];
        for (uint256 i = 0; i < 4;) {
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickChild(game, path[i++]);
            else answer(game, honest());
        }
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerProves);
        timeOut(game);
        assertEq(disputes.freeBond(miner.account), 3 ether);

        game = open(hunter, s, "2");
        for (uint256 i = 0; i < 4; ++i) {
            if (turnOf(game) == IDisputes.Turn.DefendantEnters) answer(game, honest());
            assertTrue(turnOf(game) == IDisputes.Turn.ChallengerPicks);
            pickChild(game, path[i]);
        }
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerProves);
        assertEq(disputes.clockOf(game).answers, 2);
        timeOut(game);
        assertEq(disputes.freeBond(miner.account), 4 ether);
        assertEq(token.balanceOf(address(disputes)), 4 ether);
        assertBalanced();
    }

    function test_parallelGames_takeEachOthersAnswers() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 first = open(hunter, s, "1");
        bytes32 second = open(hunter, s, "2");
        answer(first, honest());
        disputes.postList(second, positionOf(second), new bytes32[](0));
        pickChild(first, 1);
        pickChild(second, 1);
        Position memory p = positionOf(second);
        bytes32[] memory leaves = leavesOf(honest(), p);
        bytes32[] memory proof = proofOf(leaves, p.count - 1);
        bytes32 root = rootOf(leaves);
        // One signature serves both games.
        bytes memory sig = sign(miner.operatorKey, disputes.freshDigest(disputes.pathOf(p), root));
        disputes.enterFresh(first, positionOf(first), root, proof, sig);
        disputes.enterFresh(second, p, root, proof, sig);
        sync();
        assertEq(positionOf(second).node, positionOf(first).node);
        assertEq(disputes.clockOf(second).answers, 2);
    }

    function test_lostGame_immunisesNothing() public {
        Submission memory s = submission(liar);
        commitSubmission(s);
        bytes32 first = open(hunter, s, "1");
        answer(first, liar);
        timeOut(first);
        assertTrue(outcomeOf(first) == IDisputes.Outcome.DefendantWon);
        bytes32 second = open(hunter, s, "2");
        playWell(second, liar);
        assertTrue(outcomeOf(second) == IDisputes.Outcome.ChallengerWon);
        assertBalanced();
    }
}

/// @notice A thousand operators, as a step of a real model has.
contract GamesSizeTest is GamesTest {
    function setUp() public override {
        shape.steps = 4;
        shape.ops = 1000;
        shape.elements = 3;
        super.setUp();
    }

    function test_play_succeedsThroughAThousandOperators() public {
        World memory liar = World({lie: Lie.Word, step: 3, op: 700, element: 1});
        bytes32 game = openAgainst(liar);
        playWell(game, liar);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
    }

    function test_play_succeedsAgainstAPlacePastTheTrace() public {
        World memory liar = World({lie: Lie.TracePadding, step: 0, op: 0, element: 0});
        bytes32 game = openAgainst(liar);
        playWell(game, liar);
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
    }
}
