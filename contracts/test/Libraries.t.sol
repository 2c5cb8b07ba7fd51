// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {LevelKind, Position} from "../src/interfaces/IJudge.sol";
import {WeightsOpening} from "../src/interfaces/ISettlement.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {EpochTrace} from "../src/libraries/EpochTrace.sol";
import {MerkleSha256} from "../src/libraries/MerkleSha256.sol";
import {Libraries} from "./base/Libraries.sol";

contract LibrariesTest is Test {
    Libraries internal lib = new Libraries();

    // ---------------------------------------------------------------- EpochTrace

    function testFuzz_entryAt_agreesWithAPlainScan(uint8[12] memory gaps, uint64 key) public {
        uint64[12] memory keys;
        uint64 last = 1;
        for (uint256 i = 0; i < 12; ++i) {
            last += gaps[i] % 4;
            keys[i] = last;
            lib.push(last, uint208(i + 1));
        }
        key = uint64(bound(key, 0, last + 3));
        uint64 since = 0;
        uint208 value = 0;
        for (uint256 i = 0; i < 12; ++i) {
            if (keys[i] <= key) (since, value) = (keys[i], uint208(i + 1));
        }
        (uint64 foundSince, uint208 found) = lib.entryAt(key);
        assertEq(foundSince, since);
        assertEq(found, value);
        assertEq(lib.latest(), 12);
    }

    function test_push_revertsIfTheKeyGoesBack() public {
        lib.push(5, 1);
        vm.expectRevert(abi.encodeWithSelector(EpochTrace.KeyNotAscending.selector, 4, 5));
        lib.push(4, 1);
    }

    function test_push_revertsIfTheKeyIsZero() public {
        vm.expectRevert(abi.encodeWithSelector(EpochTrace.KeyNotAscending.selector, 0, 0));
        lib.push(0, 1);
    }

    // ---------------------------------------------------------------- MerkleSha256

    /// @dev Seen elsewhere: an inner node accepted as a leaf.
    function test_verify_rejectsAnInnerNodeAsLeaf() public view {
        bytes32 a = lib.leafHash("a");
        bytes32 b = lib.leafHash("b");
        bytes32 inner = MerkleSha256.nodeHash(a, b);
        bytes32 root = MerkleSha256.nodeHash(inner, inner);
        bytes32[] memory proof = new bytes32[](1);
        proof[0] = inner;
        assertFalse(lib.verify(root, inner, 0, proof, 2));
        assertNotEq(lib.leafHash(abi.encodePacked(a, b)), inner);
    }

    function testFuzz_depthOf_isTheLeastThatHolds(uint256 leaves) public pure {
        leaves = bound(leaves, 1, 1 << 40);
        uint256 depth = MerkleSha256.depthOf(leaves);
        assertGe(uint256(1) << depth, leaves);
        if (depth != 0) assertLt(uint256(1) << (depth - 1), leaves);
    }

    // ---------------------------------------------------------------- PositionLib, EvidenceLib

    function _position(bytes32 seed) private pure returns (Position memory p) {
        uint256[26] memory w;
        for (uint256 i = 0; i < 26; ++i) {
            w[i] = uint256(keccak256(abi.encode(seed, i)));
        }
        (p.judge, p.challenger, p.defendant) = (address(uint160(w[0])), address(uint160(w[1])), address(uint160(w[2])));
        (p.fault, p.round, p.claim, p.level) = (Fault(w[3] % 9), uint64(w[4]), bytes32(w[5]), uint8(w[6]));
        (p.kind, p.entered, p.depth, p.lists) = (LevelKind(w[7] % 3), w[8] % 2 == 0, uint8(w[9]), uint8(w[10]));
        (p.count, p.index, p.node) = (uint64(w[11]), uint64(w[12]), bytes32(w[13]));
        for (uint256 i = 0; i < 4; ++i) {
            (p.roots[i], p.picks[i], p.leaves[i]) = (bytes32(w[14 + i]), uint64(w[18 + i]), bytes32(w[22 + i]));
        }
    }

    function testFuzz_position_isCopiedAsTheCompilerDoes(bytes32 seed, bytes32 game, uint8 turn, uint64 last)
        public
        view
    {
        Position memory p = _position(seed);
        assertEq(abi.encode(lib.loadPosition(p)), abi.encode(p));
        assertEq(lib.stateOf(game, p), keccak256(abi.encode(game, p)));
        assertEq(lib.encodePosition(game, p, turn, last), abi.encode(game, p, turn, last));
    }

    function testFuzz_evidenceHash_equalsTheEncodingsHash(
        bytes32 salt,
        Submission memory s,
        bytes memory sig,
        uint256 i,
        bytes32[] memory path,
        IEpochManager.Ballot[] memory ballots
    ) public view {
        bytes32 plain = keccak256(abi.encode(s, sig, i, path, ballots));
        assertEq(lib.evidenceHash(salt, s, sig, i, path, ballots), plain);
    }

    /// @dev Nothing in a call escapes its hash.
    function testFuzz_evidenceHash_changesWithEveryByte(bytes32 salt, bytes memory sig, uint256 place, uint8 flip)
        public
    {
        Submission memory s;
        bytes32[] memory path = new bytes32[](2);
        bytes memory data = abi.encodeCall(lib.evidenceHash, (salt, s, sig, 7, path, new IEpochManager.Ballot[](1)));
        (, bytes memory found) = address(lib).call(data);
        (bool success, bytes memory other) = address(lib).call(abi.encodePacked(data, bytes1(0)));
        assertTrue(success);
        assertNotEq(bytes32(found), bytes32(other));
        place = bound(place, 36, data.length - 1);
        data[place] ^= bytes1(uint8(bound(flip, 1, 255)));
        (success, other) = address(lib).call(data);
        if (success) assertNotEq(bytes32(found), bytes32(other));
    }

    // ---------------------------------------------------------------- Weights

    function testFuzz_openWeight_showsWhatWasHashed(uint256 slots, uint256 slot, bytes32 seed) public view {
        slots = bound(slots, 0, 1100);
        slot = bound(slot, 0, 4095);
        bytes memory vector = new bytes(2 * slots);
        for (uint256 i = 0; i < slots; ++i) {
            bytes2 w = bytes2(keccak256(abi.encode(seed, i)));
            (vector[2 * i], vector[2 * i + 1]) = (w[0], w[1]);
        }
        WeightsOpening memory opening;
        opening.chunkHashes = new bytes32[]((slots + 255) / 256);
        for (uint256 c = 0; c < opening.chunkHashes.length; ++c) {
            bytes memory chunk = _slice(vector, 512 * c);
            opening.chunkHashes[c] = keccak256(chunk);
            if (c == slot / 256) opening.chunk = chunk;
        }
        (bool valid, uint256 weight) = lib.openWeight(lib.weightsRoot(vector), opening, slot);
        assertTrue(valid);
        assertEq(weight, slot < slots ? uint16(bytes2(keccak256(abi.encode(seed, slot)))) : 0);
    }

    function _slice(bytes memory data, uint256 from) private pure returns (bytes memory part) {
        uint256 length = data.length - from < 512 ? data.length - from : 512;
        part = new bytes(length);
        for (uint256 i = 0; i < length; ++i) {
            part[i] = data[from + i];
        }
    }

    /// @dev By brute force from the top; small weights make ties common.
    function testFuzz_consensus_isTheLargestWithMoreThanHalf(uint8[5] memory w, uint8[5] memory s) public view {
        uint256[] memory weights = new uint256[](5);
        uint256[] memory stakes = new uint256[](5);
        uint256 total = 0;
        for (uint256 i = 0; i < 5; ++i) {
            (weights[i], stakes[i]) = (w[i] % 8, s[i] % 5);
            total += stakes[i];
        }
        uint256 expected = 0;
        for (uint256 candidate = 8; candidate > 0; --candidate) {
            uint256 support = 0;
            for (uint256 i = 0; i < 5; ++i) {
                if (weights[i] >= candidate) support += stakes[i];
            }
            if (2 * support > total) {
                expected = candidate;
                break;
            }
        }
        assertEq(lib.consensus(weights, stakes), expected);
    }
}
