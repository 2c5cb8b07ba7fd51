// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

contract WrongDataTest is FaultsTest {
    struct Evidence {
        Submission s;
        bytes sig;
        uint32 i;
        bytes32 claimed;
        bytes32[] claimedProof;
        bytes32 real;
        bytes32[] realProof;
    }

    /// @dev The miner trained on a sample of its liking in place of its third one, and committed to it.
    function _evidence() private returns (Evidence memory e) {
        bytes32[] memory leaves = assigned();
        leaves[2] = keccak256("a nicer sample");
        e.s = submission();
        e.s.dataRoot = root(leaves);
        e.sig = signed(e.s);
        e.i = 2;
        e.claimed = leaves[2];
        e.claimedProof = proof(leaves, 2);
        uint64 sample = faults.assignedSample(ROUND, beaconValue, miner.account, 2);
        e.real = dataset()[sample];
        e.realProof = proof(dataset(), sample);
        handIn(e.s);
    }

    function _commitTo(Evidence memory e) private {
        commitChallenge(keccak256(abi.encode(e.s, e.sig, e.i, e.claimed, e.claimedProof, e.real, e.realProof)));
    }

    function _prove(Evidence memory e) private {
        _commitTo(e);
        vm.prank(hunter);
        faults.proveWrongData(SALT, e.s, e.sig, e.i, e.claimed, e.claimedProof, e.real, e.realProof);
    }

    function _expectRefusal(Evidence memory e, bytes memory reason) private {
        _commitTo(e);
        vm.prank(hunter);
        vm.expectRevert(reason);
        faults.proveWrongData(SALT, e.s, e.sig, e.i, e.claimed, e.claimedProof, e.real, e.realProof);
    }

    function test_proveWrongData_succeedsSlashingHalf() public {
        Evidence memory e = _evidence();
        uint256 supply = token.totalSupply();
        _prove(e);
        assertEq(vault.activeOf(miner.account), 50 ether);
        assertEq(verdicts.bountiesHeld(), 20 ether);
        assertEq(supply - token.totalSupply(), 30 ether);
        assertKind(kindOf(ROUND), Fault.WrongData);
    }

    function test_proveWrongData_succeedsUntilTheWindowCloses() public {
        Evidence memory e = _evidence();
        goTo(epochs.epochEnd(4) - 1);
        _prove(e);
    }

    function test_proveWrongData_revertsAfterTheWindow() public {
        Evidence memory e = _evidence();
        goTo(epochs.epochEnd(4));
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.FraudWindowClosed.selector, ROUND, 4, 5));
    }

    function test_proveWrongData_revertsIfTheDataAreRight() public {
        Submission memory s = submission();
        handIn(s);
        Evidence memory e;
        e.s = s;
        e.sig = signed(s);
        e.i = 4;
        e.claimed = assigned()[4];
        e.claimedProof = proof(assigned(), 4);
        uint64 sample = faults.assignedSample(ROUND, beaconValue, miner.account, 4);
        e.real = dataset()[sample];
        e.realProof = proof(dataset(), sample);
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.DataMatches.selector, 4, e.real));
    }

    function test_proveWrongData_revertsIfNotCommitted() public {
        Evidence memory e = _evidence();
        e.s.payloadBytes += 1;
        e.sig = signed(e.s);
        _expectRefusal(
            e,
            abi.encodeWithSelector(
                IObjectiveFaults.NotCommitted.selector, miner.account, ROUND, faults.submissionDigest(e.s)
            )
        );
    }

    function test_proveWrongData_revertsIfTheSpecIsWrong() public {
        Submission memory s = submission();
        s.specHash = keccak256("another spec");
        handIn(s);
        Evidence memory e;
        e.s = s;
        e.sig = signed(s);
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.WrongSpec.selector, s.specHash, SPEC_HASH));
    }

    function test_proveWrongData_revertsIfThePositionIsBeyondTheRound() public {
        Evidence memory e = _evidence();
        e.i = 5;
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.NoSuchSample.selector, 5, 5));
    }

    function test_proveWrongData_revertsIfAProofIsWrong() public {
        Evidence memory e = _evidence();
        e.claimed = keccak256("not claimed");
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        e = _again(e);
        e.realProof[0] = keccak256("x");
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
        e.realProof = new bytes32[](2);
        _expectRefusal(e, abi.encodeWithSelector(IObjectiveFaults.InvalidProof.selector));
    }

    function _again(Evidence memory e) private view returns (Evidence memory) {
        bytes32[] memory leaves = assigned();
        leaves[2] = keccak256("a nicer sample");
        e.claimed = leaves[2];
        return e;
    }

    function testFuzz_proveWrongData_neverAgainstHonestData(uint32 i, bytes32 claimed, bytes32 real, uint8 sample)
        public
    {
        Submission memory s = submission();
        handIn(s);
        Evidence memory e;
        e.s = s;
        e.sig = signed(s);
        e.i = i % 8;
        e.claimed = i % 3 == 0 ? claimed : assigned()[e.i];
        e.claimedProof = proof(assigned(), e.i);
        e.real = i % 5 == 0 ? real : dataset()[sample % 8];
        e.realProof = proof(dataset(), sample % 8);
        _commitTo(e);
        vm.prank(hunter);
        vm.expectRevert();
        faults.proveWrongData(SALT, e.s, e.sig, e.i, e.claimed, e.claimedProof, e.real, e.realProof);
    }
}
