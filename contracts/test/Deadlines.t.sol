// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../src/interfaces/IChallengeBook.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Position} from "../src/interfaces/IJudge.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {IRegistry} from "../src/interfaces/IRegistry.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {GamesTest} from "./base/GamesTest.sol";
import {RunTest} from "./base/RunTest.sol";

/// @notice Deadlines, each in its last block or second and one past it, as far as the test of its own contract does not do
/// it: commits, attestations, beacons and terms are in Commit, Attest, Tally, Beacon and Terms; pauses in Pause; weights
/// in Scores; settlements in Settlement and SettlementChallenge; exits in StakeVault; requests in DataRequests; bounties
/// in Verdicts; the fraud window in Games and in each fault's file; the book of challenges in Challenge; votes in
/// Committee.
contract DeadlinesOfGamesTest is GamesTest {
    World internal liar = World({lie: Lie.Word, step: 2, op: 20, element: 3});

    /// @dev In every kind of turn: the last block is in time, and the game can't be called yet; the next one is not, and
    /// it can. The clock of the side that stays behind runs out on the way, so that turns come with their extension only.
    function test_everyTurn_succeedsInItsLastBlockAndRevertsAfterIt() public {
        bytes32 game = openAgainst(liar);
        uint256 turns = 0;
        uint256 kinds = 0;
        while (turnOf(game) != IDisputes.Turn.ChallengerProves) {
            _checkTurn(game);
            kinds |= 1 << uint8(turnOf(game));
            if (turnOf(game) == IDisputes.Turn.ChallengerPicks) pickFirstWrong(game);
            else answer(game, liar);
            ++turns;
        }
        _checkTurn(game);
        assertEq(turns, 10);
        assertEq(kinds, 14);
    }

    /// @dev Ends in the last block of the turn.
    function _checkTurn(bytes32 game) private {
        Position memory p = positionOf(game);
        uint64 last = disputes.lastBlockOf(game);
        bool challengers = turnOf(game) >= IDisputes.Turn.ChallengerPicks;
        IDisputes.Clock memory clock = disputes.clockOf(game);
        uint32 left = challengers ? clock.challengerLeft : clock.defendantLeft;
        assertEq(last, clock.since + (left > 5 ? left : 5));
        uint256 state = vm.snapshotState();
        vm.roll(last + 1);
        _expectOutOfTime(game, p, last);
        disputes.resolveTimeout(game, p);
        assertTrue(outcomeOf(game) == (challengers ? IDisputes.Outcome.DefendantWon : IDisputes.Outcome.ChallengerWon));
        vm.revertToState(state);
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.StillInTime.selector, game, last, last));
        disputes.resolveTimeout(game, p);
    }

    function _expectOutOfTime(bytes32 game, Position memory p, uint64 last) private {
        bytes memory refusal = abi.encodeWithSelector(IDisputes.OutOfTime.selector, game, last, last + 1);
        IDisputes.Turn turn = turnOf(game);
        if (turn == IDisputes.Turn.ChallengerPicks) {
            vm.expectRevert(refusal);
            vm.prank(p.challenger);
            disputes.pick(game, p, 0, 0, new bytes32[](0), "");
        } else if (turn == IDisputes.Turn.ChallengerProves) {
            vm.expectRevert(refusal);
            disputes.decide(game, p, "");
        } else if (turn == IDisputes.Turn.DefendantPosts) {
            vm.expectRevert(refusal);
            disputes.postList(game, p, new bytes32[](0));
        } else {
            vm.expectRevert(refusal);
            disputes.enterCommitted(game, p, "");
            vm.expectRevert(refusal);
            disputes.enterFresh(game, p, 0, new bytes32[](0), "");
        }
    }

    function test_openGame_succeedsInTheLastBlockOfItsChallengeAndRevertsAfterIt() public {
        Submission memory s = submission(honest());
        commitSubmission(s);
        bytes32 commitment = commitChallenge(hunter, s, SALT);
        bytes memory sig = signed(s);
        uint64 last = uint64(block.number) + 20;
        uint256 state = vm.snapshotState();
        vm.roll(last + 1);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.RevealTooLate.selector, last, last + 1));
        vm.prank(hunter);
        disputes.openGame(SALT, s, sig);
        disputes.expireChallenge(hunter, commitment);
        vm.revertToState(state);
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotExpired.selector, last, last));
        disputes.expireChallenge(hunter, commitment);
        vm.prank(hunter);
        disputes.openGame(SALT, s, sig);
    }
}

contract DeadlinesOfTheClockTest is RunTest {
    /// @dev The evaluation beacon has windows of its own.
    function test_fixBeacon_succeedsForAnEvaluationInItsWindowAlone() public {
        uint64 opensAfter = epochs.publishDeadline(1);
        uint64 cutOff = epochs.attestDeadline(1) + 5;
        goTo(opensAfter);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, opensAfter, opensAfter));
        epochs.fixBeacon(1, EVALUATION);
        uint256 state = vm.snapshotState();
        goTo(opensAfter + 1);
        epochs.fixBeacon(1, EVALUATION);
        vm.revertToState(state);
        goTo(cutOff + 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooLate.selector, cutOff + 1, cutOff));
        epochs.fixBeacon(1, EVALUATION);
        vm.warp(cutOff);
        epochs.fixBeacon(1, EVALUATION);
        vm.roll(block.number + 3);
        epochs.recordBeacon(1, EVALUATION);
    }

    /// @dev A suspended account's key is suspended with it, as long and no longer.
    function test_register_succeedsForTheKeyOfASuspendedAccountOnceTheSuspensionIsOver() public {
        Actor memory m = join("miner", Role.Miner, STAKE);
        goToEpoch(2);
        vm.prank(address(verdicts));
        registry.exclude(m.account);
        stake(m.operator, STAKE);
        Actor memory twin = actor("twin");
        twin.account = m.operator;
        bytes memory sig = consent(twin);
        goTo(epochs.epochEnd(5) - 1);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.Suspended.selector, m.account, 6));
        vm.prank(m.operator);
        registry.register(Role.Miner, twin.operator, sig, address(0), "");
        goTo(epochs.epochEnd(5));
        vm.prank(m.operator);
        registry.register(Role.Miner, twin.operator, sig, address(0), "");
    }
}
