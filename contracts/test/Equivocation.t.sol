// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault, IVerdicts} from "../src/interfaces/IVerdicts.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

contract EquivocationTest is FaultsTest {
    Submission internal a;
    Submission internal b;

    function setUp() public override {
        super.setUp();
        a = submission();
        b = submission();
        b.payloadRoot = keccak256("other payload");
    }

    function _prove(bytes memory sigA, bytes memory sigB) private {
        (Submission memory x, Submission memory y) = (a, b);
        commitChallenge(keccak256(abi.encode(x, sigA, y, sigB)));
        vm.prank(hunter);
        faults.proveEquivocation(SALT, x, sigA, y, sigB);
    }

    /// @dev Commits first, then expects the reveal to fail with this.
    function _expectRefusal(bytes memory sigA, bytes memory sigB, bytes memory reason) private {
        (Submission memory x, Submission memory y) = (a, b);
        commitChallenge(keccak256(abi.encode(x, sigA, y, sigB)));
        vm.prank(hunter);
        vm.expectRevert(reason);
        faults.proveEquivocation(SALT, x, sigA, y, sigB);
    }

    function test_proveEquivocation_succeedsSlashingAndExcluding() public {
        bytes memory sigA = signed(a);
        bytes memory sigB = signed(b);
        uint256 supply = token.totalSupply();
        commitChallenge(keccak256(abi.encode(a, sigA, b, sigB)));
        vm.expectEmit(address(faults));
        emit IObjectiveFaults.FaultProven(ROUND, miner.account, hunter, Fault.Equivocation);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Convicted(ROUND, miner.account, hunter, Fault.Equivocation, 20 ether, 1 ether);
        vm.prank(hunter);
        faults.proveEquivocation(SALT, a, sigA, b, sigB);
        assertEq(supply - token.totalSupply(), 19 ether);
        assertEq(vault.activeOf(miner.account), 80 ether);
        assertEq(token.balanceOf(address(verdicts)), 1 ether);
        assertEq(faults.freeBond(hunter), 2 ether);
        assertKind(kindOf(ROUND), Fault.Equivocation);
        assertEq(registry.slotAccount(Role.Miner, 0, 2), address(0));
        (uint32 count, uint64 until) = registry.faultsOf(miner.account);
        assertEq(count, 1);
        assertEq(until, 5);
    }

    function test_proveEquivocation_succeedsAgainWithTheBondAlone() public {
        _prove(signed(a), signed(b));
        b.traceRoot = keccak256("a third one");
        _prove(signed(a), signed(b));
        assertEq(faults.freeBond(hunter), 2 ether);
        assertEq(verdicts.bountiesHeld(), 1 ether);
        assertEq(vault.activeOf(miner.account), 80 ether);
        (uint32 count,) = registry.faultsOf(miner.account);
        assertEq(count, 1);
    }

    function test_proveEquivocation_succeedsIfAllStakeIsUnbonding() public {
        vm.prank(miner.account);
        vault.requestUnbond(STAKE);
        _prove(signed(a), signed(b));
        (uint256 unbonding,) = vault.unbondingOf(miner.account);
        assertEq(unbonding, 80 ether);
    }

    function test_proveEquivocation_succeedsUntilTheLastEpochOfTheWindow() public {
        goTo(epochs.epochEnd(4) - 1);
        _prove(signed(a), signed(b));
    }

    function test_proveEquivocation_revertsAfterTheWindow() public {
        goTo(epochs.epochEnd(4));
        _expectRefusal(
            signed(a), signed(b), abi.encodeWithSelector(IObjectiveFaults.FraudWindowClosed.selector, ROUND, 4, 5)
        );
    }

    /// @dev A miner that exits at once stays liable: its stake unlocks after the window closed.
    function test_withdraw_neverBeforeTheFraudWindowCloses() public {
        vm.prank(miner.account);
        vault.requestUnbond(STAKE);
        (, uint64 unlock) = vault.unbondingOf(miner.account);
        assertGe(unlock + 1, epochs.epochEnd(4));
    }

    function test_proveEquivocation_revertsIfTheSubmissionsAreEqual() public {
        b = a;
        bytes memory sig = signed(a);
        _expectRefusal(
            sig, sig, abi.encodeWithSelector(IObjectiveFaults.SameSubmission.selector, faults.submissionDigest(a))
        );
    }

    function test_proveEquivocation_revertsIfRoundsDiffer() public {
        b.round = 2;
        _expectRefusal(signed(a), signed(b), abi.encodeWithSelector(IObjectiveFaults.DifferentSubmissions.selector));
    }

    /// @dev A reorg changes the beacon: honest nodes may then have signed twice.
    function test_proveEquivocation_revertsIfTheBeaconIsNotCanonical() public {
        a.beacon = b.beacon = keccak256("orphaned");
        _expectRefusal(
            signed(a),
            signed(b),
            abi.encodeWithSelector(
                IObjectiveFaults.NotCanonicalBeacon.selector, ROUND, keccak256("orphaned"), beaconValue
            )
        );
    }

    function test_proveEquivocation_revertsIfTheRoundHasNoBeacon() public {
        a.round = b.round = 2;
        a.beacon = b.beacon = 0;
        _expectRefusal(
            signed(a),
            signed(b),
            abi.encodeWithSelector(IObjectiveFaults.NotCanonicalBeacon.selector, 2, bytes32(0), bytes32(0))
        );
    }

    function test_proveEquivocation_revertsIfTheRunIsAnother() public {
        a.run = b.run = keccak256("another run");
        _expectRefusal(
            signed(a), signed(b), abi.encodeWithSelector(IObjectiveFaults.WrongRun.selector, keccak256("another run"))
        );
    }

    function test_proveEquivocation_revertsIfSomebodyElseSigned() public {
        (address other, uint256 key) = makeAddrAndKey("other");
        bytes memory forged = sign(key, faults.submissionDigest(b));
        _expectRefusal(
            signed(a), forged, abi.encodeWithSelector(IObjectiveFaults.NotSigned.selector, miner.account, ROUND, other)
        );
    }

    function test_proveEquivocation_revertsIfTheKeyWasNotValidInThatRound() public {
        Actor memory next = miner;
        (next.operator, next.operatorKey) = makeAddrAndKey("next");
        bytes memory sig = consent(next);
        vm.prank(miner.account);
        registry.rotateOperator(next.operator, sig);
        bytes memory late = sign(next.operatorKey, faults.submissionDigest(b));
        _expectRefusal(
            signed(a),
            late,
            abi.encodeWithSelector(IObjectiveFaults.NotSigned.selector, miner.account, ROUND, next.operator)
        );
        // The old key's signatures of that round still count after the rotation.
        goTo(epochs.roundStart(2));
        _prove(signed(a), signed(b));
    }

    function test_proveEquivocation_revertsIfASignatureIsHighOrShort() public {
        bytes memory sigA = signed(a);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(miner.operatorKey, faults.submissionDigest(b));
        bytes32 high = bytes32(0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141 - uint256(s));
        _expectRefusal(
            sigA,
            abi.encodePacked(r, high, v == 27 ? uint8(28) : uint8(27)),
            abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureS.selector, high)
        );
        bytes memory short = abi.encodePacked(r, v == 27 ? s : bytes32(uint256(s) | 1 << 255));
        _expectRefusal(sigA, short, abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 64));
        _expectRefusal(short, sigA, abi.encodeWithSelector(ECDSA.ECDSAInvalidSignatureLength.selector, 64));
    }

    /// @dev Of one submission only one digest is signed, whatever the signature looks like.
    function testFuzz_proveEquivocation_neverAgainstOneSubmission(bytes calldata sigA, bytes calldata sigB, bool real)
        public
    {
        b = a;
        bytes memory honest = signed(a);
        bytes memory x = real ? honest : sigA;
        Submission memory s = a;
        commitChallenge(keccak256(abi.encode(s, x, s, sigB)));
        vm.prank(hunter);
        vm.expectRevert();
        faults.proveEquivocation(SALT, s, x, s, sigB);
    }
}
