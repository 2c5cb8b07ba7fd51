// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Genesis, Terms} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

/// @notice Terms change forward only, and what applies or is about to never does.
contract TermsTest is RunTest {
    uint64 internal constant NOTICE = 4;

    function _terms(uint64 fromEpoch) private view returns (Terms memory) {
        return Terms({
            fromEpoch: fromEpoch,
            specHash: keccak256(abi.encode("spec", fromEpoch)),
            judge: address(registry),
            datasetRoot: keccak256("other data"),
            trainSamples: 16,
            datasetDepth: 4,
            samplesPerRound: 7,
            steps: 9,
            traceEvery: 3,
            codecChunk: 4096,
            codecBits: 4
        });
    }

    function _announce(Terms memory terms) private {
        vm.prank(governor);
        epochs.announceTerms(terms);
    }

    function _withdraw() private {
        vm.prank(governor);
        epochs.withdrawTerms();
    }

    function _expectInvalid(Terms memory terms, string memory what) private {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidTerms.selector, what));
        _announce(terms);
    }

    function test_termsAt_succeedsWithTheFirstOnes() public view {
        Terms memory first = epochs.termsAt(1);
        assertEq(first.fromEpoch, 1);
        assertEq(first.specHash, SPEC_HASH);
        assertEq(first.judge, address(committee));
        assertEq(first.datasetRoot, keccak256("dataset"));
        assertEq(first.trainSamples, 6);
        assertEq(first.datasetDepth, 3);
        assertEq(first.samplesPerRound, 5);
        assertEq(first.steps, 5);
        assertEq(first.traceEvery, 2);
        assertEq(abi.encode(epochs.termsAt(1e6)), abi.encode(first));
        Terms memory none;
        assertEq(abi.encode(epochs.termsAt(0)), abi.encode(none));
    }

    function test_termsAt_succeedsWithAJudgeOfItsOwn() public {
        Genesis memory g = genesis();
        g.judge = address(this);
        deployRun(g);
        assertEq(epochs.termsAt(1).judge, address(this));
    }

    function test_announceTerms_succeedsAfterTheNoticeAndRevertsBelowIt() public {
        goToEpoch(3);
        Terms memory terms = _terms(3 + NOTICE - 1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoticeTooShort.selector, 6, 7));
        _announce(terms);
        terms = _terms(3 + NOTICE);
        vm.expectEmit(address(epochs));
        emit IEpochManager.TermsAnnounced(7, terms);
        _announce(terms);
        assertEq(epochs.specHashAt(6), SPEC_HASH);
        assertEq(epochs.specHashAt(7), terms.specHash);
        assertEq(abi.encode(epochs.termsAt(100)), abi.encode(terms));
        assertEq(epochs.schedule().length, 2);
        assertEq(abi.encode(epochs.schedule()[1]), abi.encode(terms));
    }

    function test_announceTerms_succeedsInTheLastSecondOfAnEpoch() public {
        goTo(epochs.epochEnd(3) - 1);
        _announce(_terms(3 + NOTICE));
        goTo(epochs.epochEnd(3));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoticeTooShort.selector, 7, 8));
        _announce(_terms(3 + NOTICE));
    }

    function test_announceTerms_revertsIfNotAfterTheLast() public {
        _announce(_terms(9));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoticeTooShort.selector, 9, 10));
        _announce(_terms(9));
        _announce(_terms(10));
    }

    function test_announceTerms_revertsIfTheyContradict() public {
        Terms memory t = _terms(9);
        t.specHash = 0;
        _expectInvalid(t, "specHash");
        t = _terms(9);
        t.judge = makeAddr("nobody");
        _expectInvalid(t, "judge");
        t.judge = address(0);
        _expectInvalid(t, "judge");
        t = _terms(9);
        t.trainSamples = 0;
        _expectInvalid(t, "samples");
        t = _terms(9);
        t.samplesPerRound = 0;
        _expectInvalid(t, "samples");
        t = _terms(9);
        t.trainSamples = 17;
        _expectInvalid(t, "datasetDepth");
        t.datasetDepth = 64;
        _expectInvalid(t, "datasetDepth");
        t = _terms(9);
        t.steps = 0;
        _expectInvalid(t, "steps");
        t = _terms(9);
        t.traceEvery = 0;
        _expectInvalid(t, "traceEvery");
    }

    function test_terms_revertIfNotTheGovernor() public {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.OnlyGovernor.selector, address(this)));
        epochs.announceTerms(_terms(9));
        _announce(_terms(9));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.OnlyGovernor.selector, address(this)));
        epochs.withdrawTerms();
    }

    function test_withdrawTerms_succeedsUntilTwoEpochsBefore() public {
        _announce(_terms(6));
        goTo(epochs.epochEnd(4) - 1);
        vm.expectEmit(address(epochs));
        emit IEpochManager.TermsWithdrawn(6, _terms(6).specHash);
        _withdraw();
        assertEq(epochs.schedule().length, 1);
        assertEq(epochs.specHashAt(6), SPEC_HASH);
    }

    function test_withdrawTerms_revertsInTheEpochBefore() public {
        _announce(_terms(6));
        goTo(epochs.epochEnd(4));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TermsTooClose.selector, 6, 5));
        _withdraw();
    }

    function test_withdrawTerms_revertsForTheFirstOnes() public {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TermsTooClose.selector, 1, 0));
        _withdraw();
    }

    /// @dev Time stands still in a pause, and with it the notice.
    function test_announceTerms_succeedsInAPauseByTheFrozenEpoch() public {
        goToEpoch(3);
        vm.prank(governor);
        epochs.pause();
        goTo(uint64(block.timestamp) + 290);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.NoticeTooShort.selector, 6, 7));
        _announce(_terms(6));
        _announce(_terms(7));
    }

    /// @dev Against a plain table, whatever the governor announces and withdraws: an epoch's terms are fixed a whole epoch
    /// before it starts, and new ones were public for the whole notice, or had been the terms before.
    function testFuzz_termsAt_neverChangesWhatAppliesOrIsAboutTo(uint256 seed) public {
        bytes32[64] memory fixed_;
        for (uint64 step = 0; step < 24; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            goTo(uint64(block.timestamp) + uint64(seed % 260));
            uint64 epoch = epochs.currentEpoch();
            for (uint64 e = 1; e <= epoch + 1; ++e) {
                bytes32 found = epochs.specHashAt(e);
                if (fixed_[e] == 0) fixed_[e] = found;
                assertEq(found, fixed_[e]);
                assertEq(epochs.termsAt(e).specHash, found);
            }
            vm.prank(governor);
            if ((seed >> 16) % 3 == 0) {
                try epochs.withdrawTerms() {} catch {}
                continue;
            }
            bytes32 soon = epochs.specHashAt(epoch + NOTICE - 1);
            try epochs.announceTerms(_terms(epoch + uint64((seed >> 32) % 8))) {} catch {}
            assertEq(epochs.specHashAt(epoch + NOTICE - 1), soon);
        }
        Terms[] memory all = epochs.schedule();
        for (uint256 i = 1; i < all.length; ++i) {
            assertGt(all[i].fromEpoch, all[i - 1].fromEpoch);
        }
        for (uint64 e = 1; e < 64; ++e) {
            bytes32 expected;
            for (uint256 i = 0; i < all.length; ++i) {
                if (all[i].fromEpoch <= e) expected = all[i].specHash;
            }
            assertEq(epochs.specHashAt(e), expected);
        }
    }
}
