// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {Position} from "../src/interfaces/IJudge.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {GamesTest} from "./base/GamesTest.sol";

/// @notice Random programs, random lies, random opponents, several games at once: the honest side wins each of them,
/// whatever the other one does, and however long both take within their time.
contract GamesFuzzTest is GamesTest {
    /// After so many steps the opponent only stalls, so that each run ends.
    uint256 private constant LIVELY = 300;

    uint256 private _seed;
    bytes32[] private _games;
    World private _world;
    bool private _honestDefends;
    /// A table of operators that the liar made up, instead of computing one.
    bytes32[] private _madeUp;

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
        _seed = seed;
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
        _seed = seed;
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

    function roll(uint256 n) private returns (uint256) {
        _seed = uint256(keccak256(abi.encode(_seed)));
        return _seed % n;
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
                else moveAgainst(game);
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

    // ---------------------------------------------------------------- opponents

    function moveAgainst(bytes32 game) private {
        bytes32 state = disputes.stateOf(game);
        uint256 bonds = disputes.bondsHeld();
        if (_honestDefends) {
            if (turnOf(game) == IDisputes.Turn.ChallengerProves) proveAtRandom(game);
            else pickAtRandom(game);
        } else {
            lie(game);
        }
        // Whatever it was, the game went on by its rules, or not at all.
        if (turnOf(game) != IDisputes.Turn.Over && disputes.stateOf(game) == state) {
            assertEq(disputes.bondsHeld(), bonds);
        }
    }

    function pickAtRandom(bytes32 game) private {
        Position memory p = positionOf(game);
        bytes32[] memory list = listed[p.node][1 << listDepth(p)];
        uint256 child = roll(list.length);
        bytes32 node = list[child];
        bytes32[] memory siblings = proofOf(list, child);
        uint256 nonsense = roll(8);
        if (nonsense == 0) child = roll(2 * list.length);
        if (nonsense == 1) node = bytes32(roll(type(uint256).max));
        if (nonsense == 2 && siblings.length != 0) siblings[roll(siblings.length)] = bytes32(roll(1000));
        if (nonsense == 3) ++p.depth;
        // A place that holds nothing may be refused, and so is nonsense.
        vm.prank(hunter);
        try disputes.pick(game, p, uint64(child), node, siblings, "") {
            sync();
        } catch {}
    }

    function proveAtRandom(bytes32 game) private {
        Position memory p = positionOf(game);
        bytes memory proof = evidenceOfDefender(p);
        if (roll(2) == 0 && proof.length != 0) proof[roll(proof.length)] ^= 0x01;
        try disputes.decide(game, p, proof) {} catch {}
    }

    /// @dev Even with the defendant's help the judge finds nothing.
    function evidenceOfDefender(Position memory p) private view returns (bytes memory) {
        if (p.level == 1) return abi.encode(submission(honest()));
        return evidence(honest(), p);
    }

    function lie(bytes32 game) private {
        Position memory p = positionOf(game);
        uint256 choice = roll(6);
        if (turnOf(game) == IDisputes.Turn.DefendantPosts) {
            if (choice == 0) return lieAboutAList(game, p);
            if (p.level == 1 && _madeUp.length != 0) {
                disputes.postList(game, p, listBelow(_madeUp, p));
                return sync();
            }
        } else if (p.level == 1 && choice < 2 && _madeUp.length == 0 && disputes.rootOf(disputes.pathOf(p)) == 0) {
            return choice == 0 ? enterWithoutTheLeaf(game, p) : makeUpATable(game, p);
        }
        // Where it has no answer it can only stall.
        if (p.level == 2 && _madeUp.length != 0) return;
        answer(game, _world);
    }

    function lieAboutAList(bytes32 game, Position memory p) private {
        bytes32[] memory list = new bytes32[](1 << listDepth(p));
        list[roll(list.length)] = bytes32(roll(1000));
        try disputes.postList(game, p, list) {
            revert("a forged list");
        } catch {}
    }

    function enterWithoutTheLeaf(bytes32 game, Position memory p) private {
        bytes32[] memory leaves = operatorLeaves(honest(), p.picks[0]);
        if (leaves[p.count - 1] == p.node) return;
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        vm.prank(miner.operator);
        try disputes.enterFresh(game, p, root, proof, "") {
            revert("a table that ends elsewhere");
        } catch {}
    }

    function makeUpATable(bytes32 game, Position memory p) private {
        bytes32[] memory leaves = new bytes32[](1 << depthOf(p.count));
        for (uint256 i = 0; i + 1 < p.count; ++i) {
            leaves[i] = keccak256(abi.encode("made up", i));
        }
        leaves[p.count - 1] = p.node;
        enterFresh(game, p, leaves);
        _madeUp = leaves;
    }

    function depthOf(uint256 leaves) private pure returns (uint256 depth) {
        while ((uint256(1) << depth) < leaves) ++depth;
    }
}
