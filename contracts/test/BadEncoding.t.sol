// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdJson} from "forge-std/StdJson.sol";
import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {ChunkLib} from "../src/libraries/ChunkLib.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

contract BadEncodingTest is FaultsTest {
    using stdJson for string;

    struct Evidence {
        Submission s;
        bytes sig;
        uint256 chunk;
        bytes leaf;
        bytes32[] proof;
    }

    string internal json = vm.readFile("tests/vectors/chunks.json");

    /// @dev The miner handed in the payload of the vectors, in which one chunk is bad.
    function _evidence(string memory which) private returns (Evidence memory e) {
        e.s = submission();
        e.s.payloadRoot = json.readBytes32(".tree.payloadRoot");
        handIn(e.s);
        e.sig = signed(e.s);
        e.chunk = json.readUint(string.concat(".tree.", which, "Chunk"));
        e.leaf = json.readBytes(string.concat(".tree.", which, "Leaf"));
        e.proof = json.readBytes32Array(string.concat(".tree.", which, "Proof"));
    }

    function _prove(Evidence memory e) private {
        commitChallenge(keccak256(abi.encode(e.s, e.sig, e.chunk, e.leaf, e.proof)));
        vm.expectEmit(address(faults));
        emit IObjectiveFaults.FaultProven(ROUND, miner.account, hunter, Fault.BadEncoding);
        vm.prank(hunter);
        faults.proveBadEncoding(SALT, e.s, e.sig, e.chunk, e.leaf, e.proof);
    }

    function _expectRefusal(Evidence memory e, bytes memory reason) private {
        commitChallenge(keccak256(abi.encode(e.s, e.sig, e.chunk, e.leaf, e.proof)));
        vm.prank(hunter);
        vm.expectRevert(reason);
        faults.proveBadEncoding(SALT, e.s, e.sig, e.chunk, e.leaf, e.proof);
    }

    function test_proveBadEncoding_succeedsSlashingHalf() public {
        Evidence memory e = _evidence("bad");
        _prove(e);
        assertKind(kindOf(ROUND), Fault.BadEncoding);
        assertEq(vault.activeOf(miner.account), 50 ether);
    }

    function test_proveBadEncoding_succeedsUntilTheWindowCloses() public {
        Evidence memory e = _evidence("bad");
        goTo(epochs.epochEnd(4) - 1);
        _prove(e);
    }

    function test_proveBadEncoding_revertsAfterTheWindow() public {
        Evidence memory e = _evidence("bad");
        goTo(epochs.epochEnd(4));
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.FraudWindowClosed.selector, ROUND, 4, 5));
    }

    function test_proveBadEncoding_revertsIfTheChunkIsCanonical() public {
        Evidence memory e = _evidence("good");
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.ChunkIsCanonical.selector, e.chunk));
    }

    function test_proveBadEncoding_revertsIfTheProofIsWrong() public {
        Evidence memory e = _evidence("bad");
        e.chunk ^= 1;
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        e.chunk ^= 1;
        e.leaf[0] ^= 0x10;
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        e.leaf = "";
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
    }

    function test_proveBadEncoding_revertsIfNotCommitted() public {
        Evidence memory e = _evidence("bad");
        e.s.payloadBytes += 1;
        e.sig = signed(e.s);
        _expectRefusal(
            e,
            abi.encodeWithSelector(
                IObjectiveFaults.NotCommitted.selector, miner.account, ROUND, faults.submissionDigest(e.s)
            )
        );
    }

    function test_isCanonical_succeedsOnVectors() public view {
        string[] memory names = json.readStringArray(".cases.name");
        bytes[] memory leaves = json.readBytesArray(".cases.leaf");
        uint256[] memory bits = json.readUintArray(".cases.bits");
        uint256[] memory kept = json.readUintArray(".cases.kept");
        bool[] memory canonical = json.readBoolArray(".cases.canonical");
        uint256 size = json.readUint(".size");
        for (uint256 i = 0; i < names.length; ++i) {
            assertEq(ChunkLib.keptOf(leaves[i].length, bits[i]), kept[i], names[i]);
            assertEq(ChunkLib.isCanonical(leaves[i], size, bits[i]), canonical[i], names[i]);
        }
        assertGt(names.length, 200);
    }

    /// @dev A length belongs to one k or to none.
    function test_keptOf_succeedsForEveryK() public pure {
        for (uint256 bits = 1; bits <= 8; bits *= 2) {
            uint256 k = 1;
            for (uint256 length = 0; k < 600; ++length) {
                bool fits = length == (k * 12 + 7) / 8 + (k * bits + 7) / 8 + 5;
                assertEq(ChunkLib.keptOf(length, bits), fits ? k : 0);
                if (fits) ++k;
            }
            assertEq(ChunkLib.keptOf((4096 * 12) / 8 + 4096 * bits / 8 + 5, bits), 4096);
        }
    }

    /// @dev Of chunks of zeros and others, with ascending indices but for one bit.
    function testFuzz_isCanonical_equalsAPlainReading(
        uint256 k,
        uint256 seed,
        bool zeros,
        uint256 flip,
        uint256 size,
        uint256 bits
    ) public pure {
        (k, bits) = (bound(k, 1, 70), uint256(1) << bits % 4);
        uint256 codes = (k * 12 + 7) / 8;
        bytes memory chunk = new bytes(codes + (k * bits + 7) / 8 + 5);
        uint256 index = 0;
        for (uint256 i = 0; i < k; ++i) {
            if (!zeros && seed % 3 == 0) index += (seed >> 8) % 50;
            for (uint256 bit = 0; bit < 12; ++bit) {
                chunk[(12 * i + bit) / 8] |= bytes1(uint8((index >> bit & 1) << (12 * i + bit) % 8));
            }
            ++index;
            seed = uint256(keccak256(abi.encode(seed)));
        }
        size = bound(size, index, index + 100);
        if (!zeros) (chunk[chunk.length - 3], chunk[chunk.length - 2]) = (0x80, 0x3f);
        flip = flip % (2 * 8 * codes);
        if (flip < 12 * k) chunk[flip / 8] ^= bytes1(uint8(1 << flip % 8));
        bool expected = true;
        uint256 least = 0;
        for (uint256 i = 0; i < k; ++i) {
            index = 0;
            for (uint256 bit = 12 * i; bit < 12 * i + 12; ++bit) {
                index |= (uint256(uint8(chunk[bit / 8])) >> bit % 8 & 1) << (bit - 12 * i);
            }
            if (index < least || (zeros && index != i)) expected = false;
            least = index + 1;
        }
        if (!zeros && least > size) expected = false;
        assertEq(ChunkLib.isCanonical(chunk, size, bits), expected);
    }

    /// @dev What any honest encoder writes: ascending indices, codes as they come, a scale in range.
    function testFuzz_isCanonical_holdsForHonestChunks(uint16[] memory steps, uint256 codes, uint32 scale, uint8 ratio)
        public
        pure
    {
        uint256 k = 1 + (steps.length < 90 ? steps.length : 90);
        uint256 packed = 0;
        bytes memory leaf = new bytes((k * 12 + 7) / 8 + (k * 2 + 7) / 8 + 5);
        uint256 index = 0;
        for (uint256 i = 0; i < k; ++i) {
            if (i != 0) index += 1 + steps[i - 1] % 40;
            packed = index << (i & 1) * 4;
            leaf[i * 3 / 2] = bytes1(uint8(leaf[i * 3 / 2]) | uint8(packed));
            leaf[i * 3 / 2 + 1] = bytes1(uint8(packed >> 8));
            uint256 code = (k * 12 + 7) / 8 + i / 4;
            leaf[code] = bytes1(uint8(leaf[code]) | uint8((codes >> i & 3) << 2 * (i & 3)));
        }
        scale = uint32(bound(scale, 0x2b800000 >> 17, 0x53800000 >> 17)) << 17;
        for (uint256 i = 0; i < 4; ++i) {
            leaf[leaf.length - 5 + i] = bytes1(uint8(scale >> 8 * i));
        }
        leaf[leaf.length - 1] = bytes1(ratio % 16);
        assertTrue(ChunkLib.isCanonical(leaf, 4096, 2));
        assertTrue(ChunkLib.isCanonical(leaf, index + 1, 2));
        assertFalse(ChunkLib.isCanonical(leaf, index, 2));
    }

    /// @dev Only what stands under the signed root convicts, and there every chunk is canonical.
    function testFuzz_proveBadEncoding_neverAgainstHonestPayloads(
        bytes memory leaf,
        uint256 chunk,
        bytes32[] memory proof,
        uint8 which
    ) public {
        bytes[] memory honest = new bytes[](4);
        bytes32[] memory hashes = new bytes32[](4);
        bytes memory plain = json.readBytes(".tree.goodLeaf");
        for (uint256 i = 0; i < 4; ++i) {
            honest[i] = plain;
            hashes[i] = sha256(abi.encodePacked(bytes1(0), honest[i]));
        }
        Evidence memory e = Evidence({s: submission(), sig: "", chunk: chunk, leaf: leaf, proof: proof});
        e.s.payloadRoot = root(hashes);
        handIn(e.s);
        e.sig = signed(e.s);
        if (which % 2 == 0) (e.chunk, e.proof) = (which % 4, super.proof(hashes, which % 4));
        if (which % 3 == 0) e.leaf = honest[which % 4];
        commitChallenge(keccak256(abi.encode(e.s, e.sig, e.chunk, e.leaf, e.proof)));
        vm.prank(hunter);
        vm.expectRevert();
        faults.proveBadEncoding(SALT, e.s, e.sig, e.chunk, e.leaf, e.proof);
    }
}
