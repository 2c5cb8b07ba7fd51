// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {Position} from "../src/interfaces/IJudge.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {OpponentsTest} from "./base/OpponentsTest.sol";

/// @notice Random programs, random lies, random opponents, several games at once: the honest side wins each of them,
/// whatever the other one does, and however long both take within their time.
contract GamesFuzzTest is OpponentsTest {
    /// After so many steps the opponent only stalls, so that each run ends.
    uint256 private constant LIVELY = 300;

    bytes32[] private _games;
    World private _world;
    bool private _honestDefends;

    /// forge-config: default.fuzz.runs = 64
    /// forge-config: long.fuzz.runs = 5000
    function testFuzz_play_honestDefenderNeverLoses(uint256 seed) public {
        setUpGames(seed, honest(), true);
        play();
        uint256 answers = 0;
        for (uint256 i = 0; i < _games.length; ++i) {
            assertTrue(outcomeOf(_games[i]) == IDisputes.Outcome.DefendantWon);
            answers += disputes.clockOf(_games[i]).answers;
        }
        assertEq(vault.activeOf(miner.account), STAKE);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.None);
        // Each answer is paid, and nothing else is left of the bonds.
        assertEq(disputes.freeBond(miner.account), answers * 0.5 ether);
        assertEq(disputes.freeBond(hunter), 0);
        assertEq(disputes.bondsHeld(), answers * 0.5 ether);
        assertBalanced();
        assertEq(vault.locksOf(miner.account), 0);
    }

    /// forge-config: default.fuzz.runs = 64
    /// forge-config: long.fuzz.runs = 5000
    function testFuzz_play_honestChallengerAlwaysWins(uint256 seed) public {
        useSeed(seed);
        World memory liar;
        // Every lie but the one past the trace's leaves, which fill their tree here.
        liar.lie = Lie([1, 2, 3, 5, 6][roll(5)]);
        shape.ops = uint32(1 + roll(40));
        shape.elements = uint32(1 + roll(6));
        liar.step = uint32(1 + roll(shape.steps));
        liar.op = uint32(roll(shape.ops));
        liar.element = uint32(roll(shape.elements));
        setUpGames(seed, liar, false);
        play();
        for (uint256 i = 0; i < _games.length; ++i) {
            assertTrue(outcomeOf(_games[i]) == IDisputes.Outcome.ChallengerWon);
        }
        assertEq(vault.activeOf(miner.account), 0);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.Computation);
        // Every bond came back, whole.
        assertEq(disputes.freeBond(hunter), _games.length * 10 ether);
        assertEq(disputes.freeBond(miner.account), 0);
        assertBalanced();
        assertEq(vault.locksOf(miner.account), 0);
    }

    // ---------------------------------------------------------------- the run

    function setUpGames(uint256 seed, World memory w, bool honestDefends) private {
        useSeed(seed);
        if (honestDefends) {
            shape.ops = uint32(1 + roll(40));
            shape.elements = uint32(1 + roll(6));
        }
        model.setShape(shape);
        _world = w;
        _honestDefends = honestDefends;
        Submission memory s = submission(w);
        commitSubmission(s);
        uint256 count = 1 + roll(3);
        for (uint256 i = 0; i < count; ++i) {
            _games.push(open(hunter, s, bytes32(i)));
        }
    }

    function play() private {
        for (uint256 step = 0;; ++step) {
            (bytes32 game, bool any) = someGame();
            if (!any) return;
            if (isHonestTurn(game)) {
                if (roll(3) == 0) waitABit();
                else moveHonestly(game);
            } else if (block.number > disputes.lastBlockOf(game)) {
                vm.prank(makeAddr("anyone"));
                disputes.resolveTimeout(game, positionOf(game));
            } else if (step < LIVELY && roll(40) != 0) {
                if (roll(4) == 0) waitABit();
                else moveAgainst(game, _world, _honestDefends);
            } else {
                waitABit();
            }
        }
    }

    function someGame() private returns (bytes32 game, bool any) {
        uint256 first = roll(_games.length);
        for (uint256 i = 0; i < _games.length; ++i) {
            game = _games[(first + i) % _games.length];
            if (turnOf(game) != IDisputes.Turn.Over) return (game, true);
        }
    }

    function isHonestTurn(bytes32 game) private view returns (bool) {
        IDisputes.Turn turn = turnOf(game);
        bool defends = turn == IDisputes.Turn.DefendantPosts || turn == IDisputes.Turn.DefendantEnters;
        return defends == _honestDefends;
    }

    /// @dev Some blocks, up to the very last one that the honest side has in any game.
    function waitABit() private {
        uint256 limit = block.number + 60;
        for (uint256 i = 0; i < _games.length; ++i) {
            uint256 last = disputes.lastBlockOf(_games[i]);
            if (last != 0 && isHonestTurn(_games[i]) && last < limit) limit = last;
        }
        vm.roll(roll(4) == 0 ? limit : block.number + roll(limit - block.number + 1));
    }

    function moveHonestly(bytes32 game) private {
        IDisputes.Turn turn = turnOf(game);
        if (turn == IDisputes.Turn.ChallengerPicks) {
            pickFirstWrong(game);
        } else if (turn == IDisputes.Turn.ChallengerProves) {
            Position memory p = positionOf(game);
            disputes.decide(game, p, evidence(_world, p));
        } else {
            assertTrue(answer(game, _world));
        }
    }
}
