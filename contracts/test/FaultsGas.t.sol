// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Params, Role} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {MerkleSha256} from "../src/libraries/MerkleSha256.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

/// @notice What challenges cost by receipt, intrinsic gas and calldata included, for a hunter that has won before. The data
/// set and a round's data are trees of depth 12.
contract FaultsGasTest is FaultsTest {
    uint256 internal constant DEPTH = 12;
    uint32 internal constant VALIDATORS = 8;
    Actor internal other;
    Actor[VALIDATORS] internal validators;

    function params() internal view override returns (Params memory p) {
        p = super.params();
        p.datasetDepth = uint8(DEPTH);
        p.samplesPerRound = uint32(1 << DEPTH);
        p.datasetRoot = _deepRoot(dataset());
        p.codecChunk = 4096;
    }

    function joinOthers() internal override {
        other = join("other", Role.Miner, STAKE);
        for (uint256 i = 0; i < VALIDATORS; ++i) {
            validators[i] = join(string.concat("validator", vm.toString(i)), Role.Validator, STAKE);
        }
    }

    function _empty() private pure returns (bytes32[] memory nodes) {
        nodes = new bytes32[](DEPTH);
        for (uint256 i = 1; i < DEPTH; ++i) {
            nodes[i] = MerkleSha256.nodeHash(nodes[i - 1], nodes[i - 1]);
        }
    }

    /// @dev The eight leaves at the left end of a tree of depth 12.
    function _deepRoot(bytes32[] memory leaves) private pure returns (bytes32 node) {
        node = root(leaves);
        for (uint256 i = 3; i < DEPTH; ++i) {
            node = MerkleSha256.nodeHash(node, _empty()[i]);
        }
    }

    function _deepProof(bytes32[] memory leaves, uint256 index) private pure returns (bytes32[] memory siblings) {
        siblings = _empty();
        for (uint256 i = 0; i < 3; ++i) {
            siblings[i] = proof(leaves, index)[i];
        }
    }

    function _used(string memory what, uint256 most) private {
        emit log_named_uint(what, vm.lastCallGas().gasTotalUsed);
        assertLe(vm.lastCallGas().gasTotalUsed, most, what);
    }

    function _equivocate(Actor memory who, uint64 round, bytes32 beacon) private {
        Submission memory a = submission();
        (a.miner, a.round, a.beacon) = (who.account, round, beacon);
        Submission memory b = abi.decode(abi.encode(a), (Submission));
        b.payloadRoot = keccak256("other payload");
        bytes memory sigA = sign(who.operatorKey, faults.submissionDigest(a));
        bytes memory sigB = sign(who.operatorKey, faults.submissionDigest(b));
        bytes32 commitment = keccak256(abi.encode(hunter, keccak256(abi.encode(a, sigA, b, sigB)), SALT));
        vm.prank(hunter);
        faults.commitChallenge(commitment);
        if (who.account == miner.account) _used("commit", 40_000);
        nextBlock();
        vm.prank(hunter);
        faults.proveEquivocation(SALT, a, sigA, b, sigB);
        if (who.account == miner.account) _used("equivocation", 200_000);
    }

    /// @dev The hunter wins against another miner first.
    function _winBefore() private {
        _equivocate(other, ROUND, beaconValue);
        nextBlock();
    }

    /// forge-config: default.isolate = true
    function test_proveEquivocation_costsLittle() public {
        _winBefore();
        goTo(epochs.epochEnd(1));
        _equivocate(miner, ROUND, beaconValue);
    }

    /// forge-config: default.isolate = true
    function test_proveWrongData_costsLittle() public {
        bytes32[] memory leaves = dataset();
        uint64 sample = faults.assignedSample(ROUND, beaconValue, miner.account, 2);
        bytes32 real = leaves[sample];
        leaves[2] = keccak256("a nicer sample");
        Submission memory s = submission();
        s.dataRoot = _deepRoot(leaves);
        handIn(s);
        bytes memory sig = signed(s);
        _winBefore();
        goTo(epochs.epochEnd(1));
        bytes32[] memory claimedProof = _deepProof(leaves, 2);
        bytes32[] memory trueProof = _deepProof(dataset(), sample);
        commitChallenge(keccak256(abi.encode(s, sig, uint32(2), leaves[2], claimedProof, real, trueProof)));
        vm.prank(hunter);
        faults.proveWrongData(SALT, s, sig, 2, leaves[2], claimedProof, real, trueProof);
        _used("wrong data", 200_000);
    }

    /// forge-config: default.isolate = true
    function test_proveWrongSpec_costsLittle() public {
        Submission memory s = submission();
        s.specHash = keccak256("another spec");
        handIn(s);
        bytes memory sig = signed(s);
        _winBefore();
        goTo(epochs.epochEnd(1));
        commitChallenge(keccak256(abi.encode(s, sig)));
        vm.prank(hunter);
        faults.proveWrongSpec(SALT, s, sig);
        _used("wrong spec", 200_000);
    }

    /// @dev A chunk of 4096 that keeps 64, its last index wrong, in a payload of 4096 chunks.
    /// forge-config: default.isolate = true
    function test_proveBadEncoding_costsLittle() public {
        bytes memory chunk = new bytes(64 * 12 / 8 + 64 * 2 / 8 + 5);
        for (uint256 i = 0; i < 32; ++i) {
            (uint256 even, uint256 odd) = (i * 128 + 1, i == 31 ? 5 : i * 128 + 67);
            chunk[3 * i] = bytes1(uint8(even));
            chunk[3 * i + 1] = bytes1(uint8(even >> 8 | (odd & 15) << 4));
            chunk[3 * i + 2] = bytes1(uint8(odd >> 4));
        }
        for (uint256 i = 96; i < 112; ++i) {
            chunk[i] = 0xb1;
        }
        (chunk[114], chunk[115]) = (0x80, 0x3f);
        bytes32[] memory leaves = new bytes32[](8);
        leaves[5] = MerkleSha256.leafHash(chunk);
        Submission memory s = submission();
        s.payloadRoot = _deepRoot(leaves);
        handIn(s);
        bytes memory sig = signed(s);
        _winBefore();
        goTo(epochs.epochEnd(1));
        bytes32[] memory path = _deepProof(leaves, 5);
        commitChallenge(keccak256(abi.encode(s, sig, uint256(5), chunk, path)));
        vm.prank(hunter);
        faults.proveBadEncoding(SALT, s, sig, 5, chunk, path);
        _used("bad encoding", 200_000);
    }

    /// forge-config: default.isolate = true
    function test_proveLocalState_costsLittle() public {
        _proveLocalState(true);
        _used("local state, 8 ballots", 200_000 + 8000 * VALIDATORS);
    }

    /// @dev Of an epoch in which no root was finalised: each stake is asked for.
    /// forge-config: default.isolate = true
    function test_proveLocalState_costsMoreIfNobodyNotedTheStakes() public {
        _proveLocalState(false);
        _used("local state, 8 ballots and stakes", 200_000 + 13_500 * VALIDATORS);
    }

    /// @dev Half of the validators set the bit.
    function _proveLocalState(bool noted) private {
        Submission memory from = submission();
        handIn(from);
        goTo(epochs.publishDeadline(ROUND) + 1);
        IEpochManager.Ballot[] memory ballots = new IEpochManager.Ballot[](VALIDATORS);
        for (uint32 i = 0; i < VALIDATORS; ++i) {
            bytes memory bitmap = i % 2 == 0 ? bytes(hex"02") : bytes(hex"03");
            ballots[i] = IEpochManager.Ballot({slot: i, root: GENESIS_ROOT, bitmap: bitmap});
            vm.prank(validators[i].operator);
            epochs.attest(ROUND, GENESIS_ROOT, bitmap);
        }
        if (noted) _finalise(ballots);
        Submission memory s = submission();
        (s.round, s.beacon, s.localFromRound, s.localIn) = (2, drawBeacon(2, ASSIGNMENT), ROUND, from.localOut);
        goTo(epochs.putOpens(2));
        handIn(s);
        _winBefore();
        goTo(epochs.epochEnd(1));
        (bytes memory sig, bytes memory fromSig) = (signed(s), signed(from));
        commitChallenge(keccak256(abi.encode(s, sig, from, fromSig, ballots)));
        vm.prank(hunter);
        faults.proveLocalState(SALT, s, sig, from, fromSig, ballots);
    }

    function _finalise(IEpochManager.Ballot[] memory ballots) private {
        bytes32[] memory hashes = new bytes32[](VALIDATORS);
        for (uint32 i = 0; i < VALIDATORS; ++i) {
            hashes[i] = keccak256(ballots[i].bitmap);
        }
        goTo(epochs.attestDeadline(ROUND) + 1);
        epochs.finaliseRoot(ROUND, GENESIS_ROOT, hashes, uint32((uint256(1) << VALIDATORS) - 1));
    }
}
