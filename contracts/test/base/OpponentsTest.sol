// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {GamesTest} from "./GamesTest.sol";

/// @notice Players that try whatever comes to mind: challengers of good claims, and defendants of bad ones.
abstract contract OpponentsTest is GamesTest {
    uint256 private _seed;
    /// A table of operators that the liar made up in a game, instead of computing one: it may tell each game another.
    mapping(bytes32 game => bytes32[]) private _madeUp;

    function useSeed(uint256 seed) internal {
        _seed = seed;
    }

    function roll(uint256 n) internal returns (uint256) {
        _seed = uint256(keccak256(abi.encode(_seed)));
        return _seed % n;
    }

    /// @dev Something that no contract may allow happened.
    function flawed(string memory what) internal virtual {
        revert(what);
    }

    /// @param w What the defendant computed.
    function moveAgainst(bytes32 game, World memory w, bool asChallenger) internal {
        bytes32 state = disputes.stateOf(game);
        uint256 bonds = disputes.bondsHeld();
        if (asChallenger) {
            if (turnOf(game) == IDisputes.Turn.ChallengerProves) proveAtRandom(game, w);
            else pickAtRandom(game);
        } else {
            lie(game, w);
        }
        // Whatever it was, the game went on by its rules, or not at all.
        if (turnOf(game) != IDisputes.Turn.Over && disputes.stateOf(game) == state) {
            if (disputes.bondsHeld() != bonds) flawed("a game that went nowhere moved money");
        }
    }

    function pickAtRandom(bytes32 game) internal {
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
        vm.prank(p.challenger);
        try disputes.pick(game, p, uint64(child), node, siblings, "") {
            sync();
        } catch {
            // What it told before it reverted.
            vm.getRecordedLogs();
        }
    }

    /// @dev Even with the defendant's help the judge finds nothing against the honest.
    function proveAtRandom(bytes32 game, World memory w) internal {
        Position memory p = positionOf(game);
        bytes memory proof = p.level == 1 ? abi.encode(submission(w)) : evidence(w, p);
        if (roll(2) == 0 && proof.length != 0) proof[roll(proof.length)] ^= 0x01;
        try disputes.decide(game, p, proof) {
            sync();
        } catch {
            vm.getRecordedLogs();
        }
    }

    function lie(bytes32 game, World memory w) internal {
        Position memory p = positionOf(game);
        uint256 choice = roll(6);
        if (turnOf(game) == IDisputes.Turn.DefendantPosts) {
            if (choice == 0) return lieAboutAList(game, p);
            if (p.level == 1 && _madeUp[game].length != 0) {
                disputes.postList(game, p, listBelow(_madeUp[game], p));
                return sync();
            }
        } else if (p.level == 1 && choice < 2 && _madeUp[game].length == 0) {
            return choice == 0 ? enterWithoutTheLeaf(game, p) : makeUpATable(game, p);
        }
        // Where it has no answer it can only stall.
        if (p.level == 2 && _madeUp[game].length != 0) return;
        answer(game, w);
    }

    function lieAboutAList(bytes32 game, Position memory p) private {
        bytes32[] memory list = new bytes32[](1 << listDepth(p));
        list[roll(list.length)] = bytes32(roll(1000));
        try disputes.postList(game, p, list) {
            flawed("a forged list");
        } catch {}
    }

    function enterWithoutTheLeaf(bytes32 game, Position memory p) private {
        bytes32[] memory leaves = operatorLeaves(honest(), p.picks[0]);
        if (leaves[p.count - 1] == p.node) return;
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        vm.prank(miner.operator);
        try disputes.enterFresh(game, p, root, proof, "") {
            flawed("a table that ends elsewhere");
        } catch {}
    }

    function makeUpATable(bytes32 game, Position memory p) private {
        bytes32[] memory leaves = new bytes32[](1 << depthOf(p.count));
        for (uint256 i = 0; i + 1 < p.count; ++i) {
            leaves[i] = keccak256(abi.encode("made up", game, i));
        }
        leaves[p.count - 1] = p.node;
        enterFresh(game, p, leaves);
        _madeUp[game] = leaves;
    }

    function depthOf(uint256 leaves) private pure returns (uint256 depth) {
        while ((uint256(1) << depth) < leaves) ++depth;
    }
}
