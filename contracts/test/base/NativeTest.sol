// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {Params, Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {GamesTest} from "./GamesTest.sol";

/// @notice A native run: five inner steps, the state in the trace after every second one, five validators of equal stake.
abstract contract NativeTest is GamesTest {
    bytes32 internal constant VOTE_SALT = keccak256("vote salt");
    uint256 internal constant VALIDATORS = 5;

    Actor[5] internal validators;

    function params() internal view virtual override returns (Params memory p) {
        p = super.params();
        p.steps = 5;
    }

    function judgeOfRun() internal pure override returns (address) {
        return address(0);
    }

    function joinMore() internal virtual override {
        for (uint256 i = 0; i < VALIDATORS; ++i) {
            validators[i] = join(string.concat("validator", vm.toString(i)), Role.Validator, STAKE);
        }
    }

    // ---------------------------------------------------------------- the game

    /// @dev Leaf 0, the states after steps 2, 4 and 5, and what was sent.
    function trace() internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](8);
        for (uint256 i = 0; i < 5; ++i) {
            leaves[i] = MerkleSha256.leafHash(abi.encode("state", i));
        }
    }

    function inner(uint256 interval) internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](2);
        leaves[0] = MerkleSha256.leafHash(abi.encode("inner state", interval));
        leaves[1] = trace()[interval];
    }

    function native() internal view returns (Submission memory s) {
        s = submission(honest());
        s.steps = 5;
        s.traceRoot = rootOf(trace());
    }

    function openNative() internal returns (bytes32 game) {
        Submission memory s = native();
        commitSubmission(s);
        return open(hunter, s, SALT);
    }

    /// @dev Down to one interval of the trace, and to the first of its inner steps.
    function bisect(bytes32 game, uint256 interval) internal {
        Position memory p = positionOf(game);
        disputes.postList(game, p, trace());
        sync();
        pickChild(game, interval);
        if (turnOf(game) != IDisputes.Turn.DefendantEnters) return;
        p = positionOf(game);
        bytes32[] memory leaves = inner(interval);
        bytes32[] memory proof = proofOf(leaves, 1);
        bytes32 root = rootOf(leaves);
        vm.prank(miner.operator);
        disputes.enterFresh(game, p, root, proof, "");
        sync();
        disputes.postList(game, positionOf(game), leaves);
        sync();
        pickChild(game, 0);
    }

    function voting() internal returns (bytes32 game) {
        game = openNative();
        bisect(game, 2);
        disputes.decide(game, positionOf(game), "");
    }

    // ---------------------------------------------------------------- votes

    function commitmentOf(bytes32 game, uint256 i, bool guilty) internal view returns (bytes32) {
        return keccak256(abi.encode(epochs.run(), game, validators[i].account, guilty, VOTE_SALT));
    }

    function commitVote(bytes32 game, uint256 i, bool guilty) internal {
        bytes32 commitment = commitmentOf(game, i, guilty);
        vm.prank(validators[i].operator);
        committee.commitVote(game, commitment);
    }

    function revealVote(bytes32 game, uint256 i, bool guilty) internal {
        committee.revealVote(game, uint32(i), guilty, VOTE_SALT);
    }

    /// @dev All votes committed and revealed, and the game decided. `g`: guilty, `n`: not guilty, anything else: silent.
    function vote(bytes32 game, string memory votes) internal {
        bytes memory v = bytes(votes);
        for (uint256 i = 0; i < v.length; ++i) {
            if (v[i] == "g" || v[i] == "n") commitVote(game, i, v[i] == "g");
        }
        vm.roll(committee.voteOf(game).commitDeadline + 1);
        for (uint256 i = 0; i < v.length; ++i) {
            if (v[i] == "g" || v[i] == "n") revealVote(game, i, v[i] == "g");
        }
        vm.roll(committee.voteOf(game).revealDeadline + 1);
        disputes.decide(game, positionOf(game), "");
    }

    function stakeOf(uint256 i) internal view returns (uint256) {
        return vault.activeOf(validators[i].account);
    }
}
