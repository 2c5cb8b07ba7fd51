// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {Position} from "../src/interfaces/IJudge.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {GamesTest} from "./base/GamesTest.sol";

/// @notice What the moves of a game cost by receipt, intrinsic gas and calldata included, where every place was used before:
/// by the challenger's earlier game, by an earlier list. The miner never left and never was judged before. The trace is a
/// tree of depth 12.
contract GamesGasTest is GamesTest {
    /// The lists along the one path that is played, from the root down; the disputed node is always the second.
    bytes32[][] internal lists;

    function setUp() public override {
        shape.steps = 4095;
        shape.ops = 1000;
        super.setUp();
        // 5 + 5 + 2 levels of the trace.
        uint256[3] memory widths = [uint256(32), 32, 4];
        bytes32 node = keccak256("leaf");
        for (uint256 i = 3; i > 0; --i) {
            bytes32[] memory list = new bytes32[](widths[i - 1]);
            for (uint256 j = 0; j < list.length; ++j) {
                list[j] = keccak256(abi.encode(i, j));
            }
            list[1] = node;
            node = rootOf(list);
            lists.push(list);
        }
    }

    function deepSubmission() private view returns (Submission memory s) {
        s.run = epochs.run();
        s.specHash = SPEC_HASH;
        s.round = ROUND;
        s.beacon = beaconValue;
        s.miner = miner.account;
        s.initialRoot = keccak256("initial root");
        s.localFromRound = 1;
        s.localIn = keccak256("local in");
        s.localOut = keccak256("local out");
        s.dataRoot = keccak256("data");
        s.payloadRoot = keccak256("payload");
        s.payloadBytes = 1_000_000;
        s.traceRoot = rootOf(lists[2]);
        s.steps = shape.steps;
    }

    function used(string memory what, uint256 most) private {
        emit log_named_uint(what, vm.lastCallGas().gasTotalUsed);
        assertLe(vm.lastCallGas().gasTotalUsed, most, what);
    }

    /// @dev As if another list had been remembered in this one's place before.
    function useListPlace(Position memory p) private {
        vm.record();
        disputes.isPosted(p.node, listDepth(p));
        (bytes32[] memory reads,) = vm.accesses(address(disputes));
        vm.store(address(disputes), reads[0], bytes32(uint256(1)));
    }

    function post(bytes32 game, bytes32[] memory list) private {
        Position memory p = positionOf(game);
        useListPlace(p);
        disputes.postList(game, p, list);
        used(string.concat("list of ", vm.toString(list.length)), 90_000);
        sync();
    }

    function pickRelayed(bytes32 game) private {
        Position memory p = positionOf(game);
        bytes32[] memory list = listed[p.node][1 << listDepth(p)];
        bytes32[] memory siblings = proofOf(list, 1);
        bytes memory sig = sign(hunterKey, disputes.pickDigest(disputes.stateOf(game), 1, list[1]));
        disputes.pick(game, p, 1, list[1], siblings, sig);
        used("pick, relayed", 90_000);
        sync();
    }

    /// forge-config: default.isolate = true
    function test_play_costsLittle() public {
        Submission memory s = deepSubmission();
        commitSubmission(s);
        // A first game that the challenger loses, so that its places are used ones.
        bytes32 first = open(hunter, s, "1");
        disputes.postList(first, positionOf(first), lists[2]);
        timeOut(first);

        commitChallenge(hunter, s, "2");
        used("commit", 60_000);
        nextBlock();
        bytes memory sig = signed(s);
        vm.prank(hunter);
        bytes32 game = disputes.openGame("2", s, sig);
        used("reveal that opens a game", 150_000);
        sync();
        // That list was posted in the first game already.
        assertTrue(turnOf(game) == IDisputes.Turn.ChallengerPicks);
        pickRelayed(game);
        post(game, lists[1]);
        pickRelayed(game);
        post(game, lists[0]);
        pickRelayed(game);

        Position memory p = positionOf(game);
        bytes32[] memory leaves = new bytes32[](1024);
        leaves[999] = p.node;
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, 999));
        sig = sign(miner.operatorKey, disputes.freshDigest(disputes.pathOf(p), root));
        disputes.enterFresh(game, p, root, proof, sig);
        used("root of a fresh level, relayed", 90_000);
        sync();
        post(game, listBelow(leaves, positionOf(game)));
        timeOut(game);
        used("timeout", 90_000);
    }
}
