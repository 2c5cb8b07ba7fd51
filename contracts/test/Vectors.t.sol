// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {stdJson} from "forge-std/StdJson.sol";
import {CellNode, Leaf, Node, WeightsOpening} from "../src/interfaces/ISettlement.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Libraries} from "./base/Libraries.sol";

/// @notice The libraries agree with the vectors that the Python side wrote and checks too.
contract VectorsTest is Test {
    using stdJson for string;

    Libraries internal lib = new Libraries();

    function _load(string memory name) private view returns (string memory) {
        return vm.readFile(string.concat("tests/vectors/", name));
    }

    function _key(string memory path, uint256 i) private pure returns (string memory) {
        return string.concat(path, "[", vm.toString(i), "]");
    }

    function test_merkle_succeedsOnVectors() public view {
        string memory json = _load("merkle.json");
        assertEq(lib.leafHash("abc"), json.readBytes32(".leafOfAbc"));
        uint256 cases = 0;
        for (; json.keyExists(_key(".cases", cases)); ++cases) {
            string memory item = _key(".cases", cases);
            bytes32 root = json.readBytes32(string.concat(item, ".root"));
            uint256 depth = json.readUint(string.concat(item, ".depth"));
            bytes32[] memory leaves = json.readBytes32Array(string.concat(item, ".leaves"));
            for (uint256 i = 0; i < leaves.length; ++i) {
                bytes32[] memory proof = json.readBytes32Array(_key(string.concat(item, ".proofs"), i));
                assertTrue(lib.verify(root, leaves[i], i, proof, depth));
                assertFalse(lib.verify(root, leaves[i], i ^ 1, proof, depth));
                assertFalse(lib.verify(root, keccak256("other"), i, proof, depth));
                assertFalse(lib.verify(root, leaves[i], i, proof, depth + 1));
                assertFalse(lib.verify(root, leaves[i], i + (1 << depth), proof, depth));
            }
        }
        assertEq(cases, 6);
    }

    function test_assignment_succeedsOnVectors() public view {
        string memory json = _load("assignment.json");
        bytes32 run = json.readBytes32(".run");
        bytes32 beacon = json.readBytes32(".beacon");
        uint256 cases = 0;
        for (; json.keyExists(_key(".cases", cases)); ++cases) {
            string memory item = _key(".cases", cases);
            _checkSamples(json, item, run, beacon);
        }
        assertEq(cases, 3);
        bytes32 entropy = json.readBytes32(".beaconValue.blockHash");
        uint64 round = uint64(json.readUint(".beaconValue.round"));
        assertEq(keccak256(abi.encode(entropy, run, round, uint8(1))), json.readBytes32(".beaconValue.assignment"));
        assertEq(keccak256(abi.encode(entropy, run, round, uint8(2))), json.readBytes32(".beaconValue.evaluation"));
    }

    function _checkSamples(string memory json, string memory item, bytes32 run, bytes32 beacon) private view {
        uint256[] memory samples = json.readUintArray(string.concat(item, ".samples"));
        uint64 round = uint64(json.readUint(string.concat(item, ".round")));
        uint64 trainSamples = uint64(json.readUint(string.concat(item, ".trainSamples")));
        address miner = json.readAddress(string.concat(item, ".miner"));
        for (uint32 i = 0; i < samples.length; ++i) {
            assertEq(lib.sample(run, round, beacon, miner, i, trainSamples), samples[i]);
        }
    }

    function test_submission_succeedsOnVectors() public {
        string memory json = _load("submission.json");
        vm.chainId(json.readUint(".chainId"));
        assertEq(lib.runId(json.readAddress(".registry"), json.readUint(".runNonce")), json.readBytes32(".run"));
        bytes32 separator = json.readBytes32(".domainSeparator");
        uint256 cases = 0;
        for (; json.keyExists(_key(".cases", cases)); ++cases) {
            string memory item = _key(".cases", cases);
            Submission memory s = _submission(json, string.concat(item, ".submission."));
            assertEq(lib.structHash(s), json.readBytes32(string.concat(item, ".structHash")));
            assertEq(lib.digest(s, separator), json.readBytes32(string.concat(item, ".digest")));
        }
        assertEq(cases, 2);
    }

    function _submission(string memory json, string memory item) private pure returns (Submission memory s) {
        s.run = json.readBytes32(string.concat(item, "run"));
        s.specHash = json.readBytes32(string.concat(item, "specHash"));
        s.round = uint64(json.readUint(string.concat(item, "round")));
        s.beacon = json.readBytes32(string.concat(item, "beacon"));
        s.miner = json.readAddress(string.concat(item, "miner"));
        s.initialRoot = json.readBytes32(string.concat(item, "initialRoot"));
        s.localFromRound = uint64(json.readUint(string.concat(item, "localFromRound")));
        s.localIn = json.readBytes32(string.concat(item, "localIn"));
        s.localOut = json.readBytes32(string.concat(item, "localOut"));
        s.dataRoot = json.readBytes32(string.concat(item, "dataRoot"));
        s.payloadRoot = json.readBytes32(string.concat(item, "payloadRoot"));
        s.payloadBytes = uint64(json.readUint(string.concat(item, "payloadBytes")));
        s.traceRoot = json.readBytes32(string.concat(item, "traceRoot"));
        s.steps = uint32(json.readUint(string.concat(item, "steps")));
    }

    function test_cells_succeedsOnVectors() public view {
        string memory json = _load("settlement.json");
        uint256 cases = 0;
        for (; json.keyExists(_key(".cells", cases)); ++cases) {
            string memory item = _key(".cells", cases);
            for (uint256 i = 0; json.keyExists(_key(string.concat(item, ".openings"), i)); ++i) {
                string memory opening = _key(string.concat(item, ".openings"), i);
                (bytes32 root, uint256 sum) = lib.climbCells(
                    json.readBool(string.concat(opening, ".exists")),
                    uint32(json.readUint(string.concat(opening, ".slot"))),
                    json.readUint(string.concat(opening, ".value")),
                    _cells(json, string.concat(opening, ".siblings"))
                );
                assertEq(root, json.readBytes32(string.concat(item, ".root")));
                assertEq(sum, json.readUint(string.concat(item, ".sum")));
            }
        }
        assertGt(cases, 0);
    }

    function _cells(string memory json, string memory item) private pure returns (CellNode[] memory siblings) {
        siblings = new CellNode[](12);
        for (uint256 i = 0; i < 12; ++i) {
            siblings[i].hash = json.readBytes32(string.concat(_key(item, i), ".hash"));
            siblings[i].sum = json.readUint(string.concat(_key(item, i), ".sum"));
        }
    }

    function test_consensus_succeedsOnVectors() public view {
        string memory json = _load("settlement.json");
        uint256 cases = 0;
        for (; json.keyExists(_key(".consensus", cases)); ++cases) {
            string memory item = _key(".consensus", cases);
            uint256[] memory expected = json.readUintArray(string.concat(item, ".consensus"));
            uint256[] memory stakes = json.readUintArray(string.concat(item, ".stakes"));
            bytes[] memory weights = json.readBytesArray(string.concat(item, ".weights"));
            bytes32[] memory roots = json.readBytes32Array(string.concat(item, ".weightsRoots"));
            for (uint256 v = 0; v < weights.length; ++v) {
                assertEq(lib.weightsRoot(weights[v]), roots[v]);
            }
            for (uint256 slot = 0; slot < expected.length + 1; ++slot) {
                uint256 found = lib.consensus(_open(weights, roots, slot), stakes);
                assertEq(found, slot < expected.length ? expected[slot] : 0);
            }
        }
        assertGt(cases, 0);
    }

    function _open(bytes[] memory weights, bytes32[] memory roots, uint256 slot)
        private
        view
        returns (uint256[] memory found)
    {
        found = new uint256[](weights.length);
        for (uint256 v = 0; v < weights.length; ++v) {
            bytes32[] memory hashes = new bytes32[](weights[v].length == 0 ? 0 : 1);
            if (hashes.length != 0) hashes[0] = keccak256(weights[v]);
            bool valid;
            (valid, found[v]) = lib.openWeight(roots[v], WeightsOpening(weights[v], hashes), slot);
            assertTrue(valid);
        }
    }

    function test_settlement_succeedsOnVectors() public view {
        string memory json = _load("settlement.json");
        uint256 cases = 0;
        for (; json.keyExists(_key(".settlements", cases)); ++cases) {
            string memory item = _key(".settlements", cases);
            uint64 epoch = uint64(json.readUint(string.concat(item, ".epoch")));
            Node memory root = _node(json, string.concat(item, ".root"));
            for (uint256 i = 0; json.keyExists(_key(string.concat(item, ".leaves"), i)); ++i) {
                string memory leafPath = _key(string.concat(item, ".leaves"), i);
                Leaf memory leaf = _leaf(json, leafPath);
                Node memory node = lib.leafNode(epoch, leaf);
                assertEq(node.hash, json.readBytes32(string.concat(leafPath, ".hash")));
                (Node memory half, Node memory top) =
                    lib.climb(node, leaf.index, _siblings(json, string.concat(leafPath, ".siblings")));
                assertEq(abi.encode(top), abi.encode(root));
                string memory side = leaf.index < 4096 ? ".miners" : ".validatorsNode";
                assertEq(abi.encode(half), abi.encode(_node(json, string.concat(item, side))));
            }
        }
        assertGt(cases, 0);
    }

    function _leaf(string memory json, string memory item) private pure returns (Leaf memory leaf) {
        leaf.index = uint32(json.readUint(string.concat(item, ".index")));
        leaf.account = json.readAddress(string.concat(item, ".account"));
        leaf.w = uint128(json.readUint(string.concat(item, ".w")));
        leaf.amount = uint128(json.readUint(string.concat(item, ".amount")));
        leaf.cumulative = uint128(json.readUint(string.concat(item, ".cumulative")));
        leaf.prevEpoch = uint64(json.readUint(string.concat(item, ".prevEpoch")));
        leaf.cells = json.readBytes32(string.concat(item, ".cells"));
    }

    function _siblings(string memory json, string memory item) private pure returns (Node[13] memory found) {
        for (uint256 i = 0; i < 13; ++i) {
            found[i] = _node(json, _key(item, i));
        }
    }

    function _node(string memory json, string memory item) private pure returns (Node memory node) {
        node.hash = json.readBytes32(string.concat(item, ".hash"));
        node.w = uint128(json.readUint(string.concat(item, ".w")));
        node.amount = uint128(json.readUint(string.concat(item, ".amount")));
    }
}
