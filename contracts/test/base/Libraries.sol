// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../../src/interfaces/IEpochManager.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {CellNode, Leaf, Node, WeightsOpening} from "../../src/interfaces/ISettlement.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Assignment} from "../../src/libraries/Assignment.sol";
import {EpochTrace} from "../../src/libraries/EpochTrace.sol";
import {EvidenceLib} from "../../src/libraries/EvidenceLib.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {PositionLib} from "../../src/libraries/PositionLib.sol";
import {RunLib} from "../../src/libraries/RunLib.sol";
import {SettlementTree} from "../../src/libraries/SettlementTree.sol";
import {SubmissionLib} from "../../src/libraries/SubmissionLib.sol";
import {Weights} from "../../src/libraries/Weights.sol";

/// @notice The libraries behind external calls, for those that take calldata.
contract Libraries {
    using EpochTrace for EpochTrace.Trace;

    EpochTrace.Trace private _trace;

    function verify(bytes32 root, bytes32 leaf, uint256 index, bytes32[] calldata proof, uint256 depth)
        external
        view
        returns (bool)
    {
        return MerkleSha256.verify(root, leaf, index, proof, depth);
    }

    function leafHash(bytes calldata data) external pure returns (bytes32) {
        return MerkleSha256.leafHash(data);
    }

    function sample(bytes32 run, uint64 round, bytes32 beacon, address miner, uint32 i, uint64 trainSamples)
        external
        pure
        returns (uint64)
    {
        return Assignment.sample(run, round, beacon, miner, i, trainSamples);
    }

    function structHash(Submission calldata s) external pure returns (bytes32) {
        return SubmissionLib.structHash(s);
    }

    function digest(Submission calldata s, bytes32 separator) external pure returns (bytes32) {
        return SubmissionLib.digest(s, separator);
    }

    function runId(address registry, uint256 nonce) external view returns (bytes32) {
        return RunLib.id(registry, nonce);
    }

    function weightsRoot(bytes calldata weights) external pure returns (bytes32) {
        return Weights.root(weights);
    }

    function openWeight(bytes32 root, WeightsOpening calldata opening, uint256 slot)
        external
        pure
        returns (bool, uint256)
    {
        return Weights.open(root, opening, slot);
    }

    function consensus(uint256[] memory weights, uint256[] memory stakes) external pure returns (uint256) {
        return Weights.consensus(weights, stakes);
    }

    function leafNode(uint64 epoch, Leaf calldata leaf) external pure returns (Node memory) {
        return SettlementTree.leafNode(epoch, leaf);
    }

    function climb(Node calldata leaf, uint256 index, Node[13] calldata siblings)
        external
        pure
        returns (Node memory half, Node memory root)
    {
        return SettlementTree.climb(leaf, index, siblings);
    }

    function climbCells(bool exists, uint32 slot, uint256 value, CellNode[] calldata siblings)
        external
        pure
        returns (bytes32, uint256)
    {
        return SettlementTree.climbCells(exists, slot, value, siblings);
    }

    /// @dev As evidence comes: words, bytes, a list and a list of what has offsets of its own.
    function evidenceHash(
        bytes32,
        Submission calldata,
        bytes calldata,
        uint256,
        bytes32[] calldata,
        IEpochManager.Ballot[] calldata
    ) external pure returns (bytes32) {
        return EvidenceLib.hash(14 | 16 << 8 | 17 << 16);
    }

    function stateOf(bytes32, Position calldata position) external pure returns (bytes32) {
        return PositionLib.stateOf(position);
    }

    function loadPosition(Position calldata position) external pure returns (Position memory) {
        return PositionLib.load(position);
    }

    function encodePosition(bytes32 game, Position memory position, uint8 turn, uint64 lastBlock)
        external
        pure
        returns (bytes memory)
    {
        return PositionLib.encode(game, position, turn, lastBlock);
    }

    function push(uint64 key, uint208 value) external {
        _trace.push(key, value);
    }

    function entryAt(uint64 key) external view returns (uint64, uint208) {
        return _trace.entryAt(key);
    }

    function latest() external view returns (uint208) {
        return _trace.latest();
    }
}
