// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CellNode, Leaf, Node} from "../../src/interfaces/ISettlement.sol";
import {Assignment} from "../../src/libraries/Assignment.sol";
import {SettlementTree} from "../../src/libraries/SettlementTree.sol";
import {StakeTrace} from "../../src/libraries/StakeTrace.sol";
import {Weights} from "../../src/libraries/Weights.sol";

/// @notice What Python computes too, many cases a call: tests/contracts/test_differential.py compares.
contract Differential {
    /// Words of a stake history's ring: enough for all changes that a case tells.
    uint256 private constant RING = 16;

    using StakeTrace for StakeTrace.Trace;

    struct Vote {
        uint256[] weights;
        uint256[] stakes;
    }

    struct Path {
        uint64 epoch;
        Leaf leaf;
        Node[13] siblings;
    }

    struct CellPath {
        bool exists;
        uint32 slot;
        uint256 value;
        CellNode[] siblings;
    }

    struct Draw {
        bytes32 run;
        uint64 round;
        bytes32 beacon;
        address miner;
        uint32 index;
        uint64 trainSamples;
    }

    struct Change {
        uint64 epoch;
        uint256 amount;
    }

    struct History {
        Change[] changes;
        uint64[] asked;
    }

    mapping(uint256 history => StakeTrace.Trace) private _traces;

    function consensus(Vote[] calldata votes) external pure returns (uint256[] memory found) {
        found = new uint256[](votes.length);
        for (uint256 i = 0; i < votes.length; ++i) {
            found[i] = Weights.consensus(votes[i].weights, votes[i].stakes);
        }
    }

    function weightsRoots(bytes[] calldata vectors) external pure returns (bytes32[] memory found) {
        found = new bytes32[](vectors.length);
        for (uint256 i = 0; i < vectors.length; ++i) {
            found[i] = Weights.root(vectors[i]);
        }
    }

    function climb(Path[] calldata paths) external pure returns (Node[] memory halves, Node[] memory roots) {
        halves = new Node[](paths.length);
        roots = new Node[](paths.length);
        for (uint256 i = 0; i < paths.length; ++i) {
            Path calldata path = paths[i];
            Node memory leaf =
                path.leaf.account == address(0) ? Node(0, 0, 0) : SettlementTree.leafNode(path.epoch, path.leaf);
            (halves[i], roots[i]) = SettlementTree.climb(leaf, path.leaf.index, path.siblings);
        }
    }

    function climbCells(CellPath[] calldata paths)
        external
        pure
        returns (bytes32[] memory roots, uint256[] memory sums)
    {
        roots = new bytes32[](paths.length);
        sums = new uint256[](paths.length);
        for (uint256 i = 0; i < paths.length; ++i) {
            CellPath calldata path = paths[i];
            (roots[i], sums[i]) = SettlementTree.climbCells(path.exists, path.slot, path.value, path.siblings);
        }
    }

    function samples(Draw[] calldata draws) external pure returns (uint64[] memory found) {
        found = new uint64[](draws.length);
        for (uint256 i = 0; i < draws.length; ++i) {
            Draw calldata d = draws[i];
            found[i] = Assignment.sample(d.run, d.round, d.beacon, d.miner, d.index, d.trainSamples);
        }
    }

    /// @dev Writes, so that it is only ever called, never sent.
    function histories(History[] calldata told) external returns (uint256[][] memory found) {
        found = new uint256[][](told.length);
        for (uint256 i = 0; i < told.length; ++i) {
            StakeTrace.Trace storage trace = _traces[i];
            for (uint256 k = 0; k < told[i].changes.length; ++k) {
                trace.push(RING, told[i].changes[k].epoch, told[i].changes[k].amount);
            }
            uint64[] calldata asked = told[i].asked;
            found[i] = new uint256[](asked.length + 1);
            for (uint256 k = 0; k < asked.length; ++k) {
                found[i][k] = trace.valueAt(RING, asked[k]);
            }
            found[i][asked.length] = trace.latest();
        }
    }
}
