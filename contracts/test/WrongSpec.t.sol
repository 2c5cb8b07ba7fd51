// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

contract WrongSpecTest is FaultsTest {
    function _wrong() private view returns (Submission memory s) {
        s = submission();
        s.specHash = keccak256("another spec");
    }

    function _prove(Submission memory s) private {
        bytes memory sig = signed(s);
        commitChallenge(keccak256(abi.encode(s, sig)));
        vm.expectEmit(address(faults));
        emit IObjectiveFaults.FaultProven(ROUND, miner.account, hunter, Fault.WrongSpec);
        vm.prank(hunter);
        faults.proveWrongSpec(SALT, s, sig);
    }

    function _expectRefusal(Submission memory s, bytes memory sig, bytes memory reason) private {
        commitChallenge(keccak256(abi.encode(s, sig)));
        vm.prank(hunter);
        vm.expectRevert(reason);
        faults.proveWrongSpec(SALT, s, sig);
    }

    function test_proveWrongSpec_succeedsAsAnEquivocationCosts() public {
        Submission memory s = _wrong();
        handIn(s);
        _prove(s);
        assertKind(kindOf(ROUND), Fault.WrongSpec);
        assertEq(vault.activeOf(miner.account), 80 ether);
        assertEq(verdicts.bountiesHeld(), 1 ether);
    }

    function test_proveWrongSpec_succeedsUntilTheWindowCloses() public {
        Submission memory s = _wrong();
        handIn(s);
        goTo(epochs.epochEnd(4) - 1);
        _prove(s);
    }

    function test_proveWrongSpec_revertsAfterTheWindow() public {
        Submission memory s = _wrong();
        handIn(s);
        goTo(epochs.epochEnd(4));
        _expectRefusal(s, signed(s), abi.encodeWithSelector(IObjectiveFaults.FraudWindowClosed.selector, ROUND, 4, 5));
    }

    function test_proveWrongSpec_revertsIfTheSpecIsRight() public {
        Submission memory s = submission();
        handIn(s);
        _expectRefusal(s, signed(s), abi.encodeWithSelector(IObjectiveFaults.SpecMatches.selector, SPEC_HASH));
    }

    function test_proveWrongSpec_revertsIfNotCommitted() public {
        Submission memory s = _wrong();
        _expectRefusal(
            s,
            signed(s),
            abi.encodeWithSelector(
                IObjectiveFaults.NotCommitted.selector, miner.account, ROUND, faults.submissionDigest(s)
            )
        );
    }

    function test_proveWrongSpec_revertsIfSomebodyElseSigned() public {
        Submission memory s = _wrong();
        handIn(s);
        (address other, uint256 key) = makeAddrAndKey("other");
        _expectRefusal(
            s,
            sign(key, faults.submissionDigest(s)),
            abi.encodeWithSelector(IObjectiveFaults.NotSigned.selector, miner.account, ROUND, other)
        );
    }

    function test_proveWrongSpec_revertsIfTheBeaconIsNotCanonical() public {
        Submission memory s = _wrong();
        s.beacon = keccak256("orphaned");
        handIn(s);
        _expectRefusal(
            s,
            signed(s),
            abi.encodeWithSelector(IObjectiveFaults.NotCanonicalBeacon.selector, ROUND, s.beacon, beaconValue)
        );
    }

    function testFuzz_proveWrongSpec_neverAgainstTheRegisteredSpec(Submission memory claimed, bool mine) public {
        Submission memory s = submission();
        handIn(s);
        if (mine) claimed = s;
        else claimed.specHash = SPEC_HASH;
        bytes memory sig = signed(claimed);
        commitChallenge(keccak256(abi.encode(claimed, sig)));
        vm.prank(hunter);
        vm.expectRevert();
        faults.proveWrongSpec(SALT, claimed, sig);
    }
}
