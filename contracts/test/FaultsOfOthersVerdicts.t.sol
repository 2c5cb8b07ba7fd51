// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../src/interfaces/IChallengeBook.sol";
import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {MerkleSha256} from "../src/libraries/MerkleSha256.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

/// @notice Faults that other protocols shipped, around proofs and bounties: each is impossible here.
contract FaultsOfOthersVerdictsTest is FaultsTest {
    Submission internal a;
    Submission internal b;
    bytes internal sigA;
    bytes internal sigB;
    bytes32 internal evidenceHash;
    address internal thief = makeAddr("thief");

    function setUp() public override {
        super.setUp();
        a = submission();
        b = submission();
        b.payloadRoot = keccak256("other payload");
        sigA = signed(a);
        sigB = signed(b);
        evidenceHash = keccak256(abi.encode(a, sigA, b, sigB));
        fund(thief, 10 ether);
    }

    function _prove(address sender) private {
        (Submission memory x, Submission memory y) = (a, b);
        vm.prank(sender);
        faults.proveEquivocation(SALT, x, sigA, y, sigB);
    }

    function _payAll() private {
        vm.roll(block.number + 21);
        verdicts.payBounty(miner.account, ROUND);
    }

    /// @dev UMA, Snapshot: the thief copies the commit, then the reveal.
    function test_copiedCommitHashAndReveal_provesNothing() public {
        commitChallengeOf(hunter, evidenceHash);
        bytes32 copied = keccak256(abi.encode(hunter, evidenceHash, SALT));
        vm.prank(thief);
        faults.commitChallenge(copied);
        nextBlock();
        vm.expectRevert(
            abi.encodeWithSelector(
                IChallengeBook.NotChallenged.selector, thief, keccak256(abi.encode(thief, evidenceHash, SALT))
            )
        );
        _prove(thief);
        _prove(hunter);
        _payAll();
        assertEq(token.balanceOf(hunter), 99 ether);
    }

    /// @dev UMA, Snapshot: registering the victim's hash first blocks the victim.
    function test_victimsHashRegisteredFirst_blocksNobody() public {
        bytes32 commitment = keccak256(abi.encode(hunter, evidenceHash, SALT));
        vm.prank(thief);
        faults.commitChallenge(commitment);
        assertEq(faults.challengeBlock(hunter, commitment), 0);
        commitChallengeOf(hunter, evidenceHash);
        nextBlock();
        _prove(hunter);
        _payAll();
        assertEq(token.balanceOf(hunter), 99 ether);
    }

    /// @dev The thief sees the reveal in the mempool and commits and reveals the evidence itself: too late for the bounty.
    function test_stolenReveal_getsNoBounty() public {
        commitChallengeOf(hunter, evidenceHash);
        nextBlock();
        commitChallengeOf(thief, evidenceHash);
        nextBlock();
        _prove(thief);
        _prove(hunter);
        _payAll();
        assertEq(token.balanceOf(hunter), 99 ether);
        assertEq(token.balanceOf(thief), 8 ether);
        assertEq(faults.freeBond(thief), 2 ether);
    }

    /// @dev Rainbow bridge: the offender front-runs its challenger and recovers its bond. Here it loses the burned share,
    /// whoever proves it, and the graver fault is proven all the same.
    function test_offenderFrontRunsItsChallenger_losesTheBurnedShare() public {
        fund(miner.account, 2 ether);
        uint256 before = token.balanceOf(miner.account) + vault.activeOf(miner.account);
        commitChallengeOf(miner.account, evidenceHash);
        nextBlock();
        _prove(miner.account);
        _payAll();
        vm.prank(miner.account);
        faults.withdrawBond(2 ether);
        assertEq(before - token.balanceOf(miner.account) - vault.activeOf(miner.account), 19 ether);
    }

    /// @dev An accomplice proves the small fault first, with the earlier commit: it neither shields the miner from the
    /// grave one nor gets its bounty.
    function test_accompliceWithASmallFault_neitherShieldsNorCollects() public {
        a.specHash = b.specHash = keccak256("another spec");
        (sigA, sigB) = (signed(a), signed(b));
        handIn(a);
        evidenceHash = keccak256(abi.encode(a, sigA, b, sigB));
        commitChallengeOf(thief, evidenceHash);
        nextBlock();
        _prove(thief);
        vm.prank(address(faults));
        verdicts.convict(Fault.WrongData, miner.account, ROUND, hunter, uint64(block.number));
        assertEq(vault.activeOf(miner.account), 50 ether);
        assertEq(verdicts.creditOf(thief), 1 ether);
        // Its earlier commit of the lighter fault wins nothing any more.
        Submission memory s = a;
        bytes memory sig = sigA;
        commitChallengeOf(thief, keccak256(abi.encode(s, sig)));
        nextBlock();
        vm.prank(thief);
        faults.proveWrongSpec(SALT, s, sig);
        _payAll();
        assertEq(token.balanceOf(hunter), 112 ether);
        assertEq(verdicts.bountiesHeld(), verdicts.creditOf(thief));
    }

    /// @dev OpenZeppelin: one signature in its 64-byte form, or with the other s, passes as another one.
    function test_otherFormOfASignature_isRefused() public {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(miner.operatorKey, faults.submissionDigest(b));
        bytes memory short = abi.encodePacked(r, bytes32(uint256(s) | uint256(v - 27) << 255));
        bytes32 highS = bytes32(0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141 - uint256(s));
        bytes memory high = abi.encodePacked(r, highS, v == 27 ? uint8(28) : uint8(27));
        _expectRefusal(short, abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 64));
        _expectRefusal(high, abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureS.selector, highS));
        // And nothing depends on the form: one digest signed twice is no equivocation.
        b = a;
        _expectRefusal(
            short, abi.encodeWithSelector(IObjectiveFaults.SameSubmission.selector, faults.submissionDigest(a))
        );
    }

    function _expectRefusal(bytes memory sig, bytes memory reason) private {
        (Submission memory x, Submission memory y) = (a, b);
        commitChallenge(keccak256(abi.encode(x, sigA, y, sig)));
        vm.prank(hunter);
        vm.expectRevert(reason);
        faults.proveEquivocation(SALT, x, sigA, y, sig);
    }

    /// @dev Nitro, Plasma: a bond that never comes back. Here it does after every proof, the first or not, and can be
    /// withdrawn even while the run stands still.
    function test_bond_alwaysComesBack() public {
        commitChallengeOf(hunter, evidenceHash);
        commitChallengeOf(thief, evidenceHash);
        nextBlock();
        _prove(thief);
        _prove(hunter);
        vm.mockCallRevert(address(epochs), abi.encodeCall(epochs.runningBlock, ()), "paused");
        vm.prank(hunter);
        faults.withdrawBond(2 ether);
        vm.prank(thief);
        faults.withdrawBond(2 ether);
        assertEq(token.balanceOf(hunter), 100 ether);
        assertEq(token.balanceOf(thief), 10 ether);
        assertEq(faults.bondsHeld(), 0);
    }

    /// @dev OpenZeppelin, EigenLayer: an inner node accepted as a leaf. Its bytes hash under the other prefix, and a leaf
    /// can't be one level up.
    function test_innerNode_isNoLeaf() public {
        bytes32[] memory leaves = assigned();
        Submission memory s = submission();
        s.payloadRoot = root(leaves);
        handIn(s);
        bytes memory sig = signed(s);
        bytes32 left = MerkleSha256.nodeHash(leaves[0], leaves[1]);
        bytes32 right = MerkleSha256.nodeHash(leaves[2], leaves[3]);
        bytes memory pair = abi.encodePacked(left, right);
        bytes32[] memory rest = new bytes32[](1);
        rest[0] = proof(leaves, 0)[2];
        commitChallenge(keccak256(abi.encode(s, sig, uint256(0), pair, rest)));
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        vm.prank(hunter);
        faults.proveBadEncoding(SALT, s, sig, 0, pair, rest);

        // As a data leaf, a node one level up needs a proof one sibling shorter.
        bytes32[] memory shorter = new bytes32[](2);
        (shorter[0], shorter[1]) = (right, proof(leaves, 0)[2]);
        bytes32[] memory trueProof = proof(dataset(), 0);
        bytes32 real = dataset()[0];
        commitChallenge(keccak256(abi.encode(s, sig, uint32(0), left, shorter, real, trueProof)));
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        vm.prank(hunter);
        faults.proveWrongData(SALT, s, sig, 0, left, shorter, real, trueProof);
    }
}
