// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../src/interfaces/IRun.sol";
import {IScoreRegistry} from "../src/interfaces/IScoreRegistry.sol";
import {RunTest} from "./base/RunTest.sol";

contract ScoresTest is RunTest {
    bytes32 internal constant SALT = keccak256("salt");
    bytes internal constant WEIGHTS = hex"0001ffff0100";
    Actor internal a;
    Actor internal b;

    function setUp() public override {
        super.setUp();
        a = join("a", Role.Validator, 100 ether);
        b = join("b", Role.Validator, 100 ether);
    }

    function _commitment(Actor memory who, uint64 epoch, bytes memory weights) private view returns (bytes32) {
        return keccak256(abi.encode(epochs.run(), who.account, epoch, scores.weightsRootOf(weights), SALT));
    }

    function _commit(Actor memory who, uint64 epoch, bytes memory weights) private {
        bytes32 commitment = _commitment(who, epoch, weights);
        vm.prank(who.operator);
        scores.commitWeights(epoch, commitment);
    }

    function _reveal(Actor memory who, uint64 epoch, bytes memory weights) private {
        _revealIn(who.account == a.account ? 0 : 1, who, epoch, weights);
    }

    /// @dev Sent by nobody in particular.
    function _revealIn(uint32 slot, Actor memory who, uint64 epoch, bytes memory weights) private {
        scores.revealWeights(epoch, slot, who.account, weights, SALT);
    }

    function test_commitWeights_succeedsAfterTheEpochUntilTheDeadline() public {
        uint64 end = epochs.epochEnd(1);
        goTo(end);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end, end));
        scores.commitWeights(1, bytes32(uint256(1)));
        goTo(end + 1);
        bytes32 commitment = _commitment(a, 1, WEIGHTS);
        vm.expectEmit(address(scores));
        emit IScoreRegistry.WeightsCommitted(1, a.account, 0, commitment);
        _commit(a, 1, WEIGHTS);
        assertEq(scores.commitmentOf(1, 0), commitment);
        goTo(end + 20);
        _commit(b, 1, WEIGHTS);
        goTo(end + 21);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, end + 21, end + 20));
        scores.commitWeights(1, bytes32(uint256(1)));
    }

    function test_commitWeights_revertsIfTwiceOrNoValidatorOrZero() public {
        goTo(epochs.epochEnd(1) + 1);
        _commit(a, 1, WEIGHTS);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.AlreadyCommitted.selector, 1, 0));
        vm.prank(a.operator);
        scores.commitWeights(1, bytes32(uint256(1)));
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.NotValidator.selector, a.account, 1));
        vm.prank(a.account);
        scores.commitWeights(1, bytes32(uint256(1)));
        vm.expectRevert(IScoreRegistry.ZeroCommitment.selector);
        scores.commitWeights(1, 0);
    }

    function test_commitWeights_revertsIfTheSlotIsYoungerThanTheEpoch() public {
        goTo(epochs.epochEnd(1) - 1);
        Actor memory late = join("late", Role.Validator, 100 ether);
        goTo(epochs.epochEnd(1) + 1);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.NotValidator.selector, late.operator, 1));
        vm.prank(late.operator);
        scores.commitWeights(1, bytes32(uint256(1)));
    }

    function test_revealWeights_succeedsInItsWindow() public {
        uint64 end = epochs.epochEnd(1);
        goTo(end + 20);
        _commit(a, 1, WEIGHTS);
        _commit(b, 1, "");
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end + 20, end + 20));
        _reveal(a, 1, WEIGHTS);
        goTo(end + 21);
        bytes32 root = keccak256(abi.encodePacked(keccak256(WEIGHTS)));
        vm.expectEmit(address(scores));
        emit IScoreRegistry.WeightsRevealed(1, a.account, 0, root, WEIGHTS);
        _reveal(a, 1, WEIGHTS);
        assertEq(scores.weightsRoot(1, 0), root);
        assertEq(scores.weightsRoot(1, 1), 0);
        assertTrue(scores.hasQuorum(1));
        goTo(end + 40);
        _reveal(b, 1, "");
        IScoreRegistry.EpochScores memory found = scores.epochScores(1);
        assertEq(found.committed, 3);
        assertEq(found.revealed, 3);
        assertEq(found.revealedStake, 200 ether);
        assertEq(found.totalStake, 200 ether);
    }

    function test_revealWeights_revertsAfterTheDeadline() public {
        uint64 end = epochs.epochEnd(1);
        goTo(end + 1);
        _commit(a, 1, WEIGHTS);
        goTo(end + 41);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, end + 41, end + 40));
        _reveal(a, 1, WEIGHTS);
        assertFalse(scores.hasQuorum(1));
    }

    /// @dev Seen elsewhere: a copied commitment, then a copied reveal. Here the account is inside.
    function test_revealWeights_revertsIfCopied() public {
        goTo(epochs.epochEnd(1) + 1);
        _commit(a, 1, WEIGHTS);
        bytes32 copied = _commitment(a, 1, WEIGHTS);
        vm.prank(b.operator);
        scores.commitWeights(1, copied);
        goTo(epochs.weightCommitDeadline(1) + 1);
        _reveal(a, 1, WEIGHTS);
        vm.expectPartialRevert(IScoreRegistry.CommitmentMismatch.selector);
        _reveal(b, 1, WEIGHTS);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.NotTheCommitter.selector, a.account, b.account));
        _revealIn(1, a, 1, WEIGHTS);
    }

    function test_revealWeights_revertsIfNotCommittedOrTwiceOrMalformed() public {
        goTo(epochs.epochEnd(1) + 1);
        _commit(a, 1, WEIGHTS);
        goTo(epochs.weightCommitDeadline(1) + 1);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.NotCommitted.selector, 1, 1));
        _reveal(b, 1, WEIGHTS);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.InvalidWeightsLength.selector, 3, 512));
        _reveal(a, 1, hex"000102");
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.InvalidWeightsLength.selector, 514, 512));
        _reveal(a, 1, new bytes(514));
        _reveal(a, 1, WEIGHTS);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.AlreadyRevealed.selector, 1, 0));
        _reveal(a, 1, WEIGHTS);
    }

    function test_penaliseMissingReveal_succeedsOnceAfterTheDeadline() public {
        uint64 end = epochs.epochEnd(1);
        goTo(end + 1);
        _commit(a, 1, WEIGHTS);
        goTo(end + 40);
        _reveal(a, 1, WEIGHTS);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooEarly.selector, end + 40, end + 40));
        scores.penaliseMissingReveal(1, 1);
        goTo(end + 41);
        uint256 supply = token.totalSupply();
        vm.expectEmit(address(scores));
        emit IScoreRegistry.MissingRevealPenalised(1, b.account, 1, 3 ether);
        scores.penaliseMissingReveal(1, 1);
        assertEq(supply - token.totalSupply(), 3 ether);
        assertEq(vault.activeOf(b.account), 97 ether);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.AlreadyPenalised.selector, 1, 1));
        scores.penaliseMissingReveal(1, 1);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.AlreadyRevealed.selector, 1, 0));
        scores.penaliseMissingReveal(1, 0);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.NoSuchValidator.selector, 1, 2));
        scores.penaliseMissingReveal(1, 2);
    }

    function test_penaliseMissingReveal_revertsAfterTheFraudWindow() public {
        uint64 closes = epochs.epochEnd(4);
        goTo(closes);
        vm.expectRevert(abi.encodeWithSelector(IScoreRegistry.TooLate.selector, closes, closes - 1));
        scores.penaliseMissingReveal(1, 0);
        vm.warp(closes - 1);
        scores.penaliseMissingReveal(1, 0);
    }

    /// @dev What a validator withdraws from its stake between commit and reveal changes nothing of its vote.
    function test_revealWeights_succeedsWithTheSnapshotsStake() public {
        goTo(epochs.epochEnd(1) + 1);
        _commit(a, 1, WEIGHTS);
        vm.prank(a.account);
        vault.requestUnbond(40 ether);
        goTo(epochs.weightCommitDeadline(1) + 1);
        _reveal(a, 1, WEIGHTS);
        assertEq(scores.epochScores(1).revealedStake, 100 ether);
    }

    function test_hasQuorum_failsAUnitBelowHalf() public {
        stake(b.account, 1);
        goTo(epochs.epochEnd(1) + 1);
        _commit(a, 1, WEIGHTS);
        goTo(epochs.weightCommitDeadline(1) + 1);
        assertFalse(scores.hasQuorum(1));
        _reveal(a, 1, WEIGHTS);
        assertEq(epochs.snapshotStake(1), 200 ether + 1);
        assertFalse(scores.hasQuorum(1));
        goTo(epochs.epochEnd(2) + 1);
        _commit(b, 2, WEIGHTS);
        goTo(epochs.weightCommitDeadline(2) + 1);
        _reveal(b, 2, WEIGHTS);
        assertTrue(scores.hasQuorum(2));
        assertFalse(scores.hasQuorum(0));
    }

    /// @dev Epoch after epoch in the same places: each is kept until it can't be settled or punished any more, and is never
    /// taken for another one.
    function testFuzz_epochScores_lastsAsLongAsItMayBeNeeded(uint256 seed) public {
        bytes32[32] memory roots;
        for (uint64 epoch = 1; epoch < 28; ++epoch) {
            goTo(epochs.epochEnd(epoch) + 1);
            bytes memory weights = abi.encodePacked(uint64(uint256(keccak256(abi.encode(seed, epoch)))));
            bool reveals = uint256(keccak256(abi.encode(seed, epoch, "reveals"))) % 4 != 0;
            _commit(a, epoch, weights);
            goTo(epochs.weightCommitDeadline(epoch) + 1);
            if (reveals) {
                _reveal(a, epoch, weights);
                roots[epoch] = scores.weightsRootOf(weights);
            }
            // As many epochs as unbonding lasts.
            uint64 kept = params().unbondingS / EPOCH_S;
            if (epoch > kept) assertEq(scores.weightsRoot(epoch - kept, 0), roots[epoch - kept]);
            uint64 old = uint64(1 + seed % epoch);
            bytes32 found = scores.weightsRoot(old, 0);
            if (old + kept >= epoch) assertEq(found, roots[old]);
            else assertTrue(found == 0 || found == roots[old]);
            assertEq(scores.weightsRoot(epoch + 1 + uint64(seed % 20), 0), 0);
            assertEq(scores.weightsRoot(old, 1), 0);
            assertEq(scores.commitmentOf(old, 1), 0);
            assertEq(scores.commitmentOf(old, 32), 0);
        }
    }

    function test_penaliseMissingReveal_succeedsInAPlaceOfAnOlderEpoch() public {
        stake(a.account, 1000 ether);
        goTo(epochs.epochEnd(1) + 41);
        scores.penaliseMissingReveal(1, 0);
        for (uint64 epoch = 2; epoch < 24; ++epoch) {
            goTo(epochs.epochEnd(epoch) + 41);
            scores.penaliseMissingReveal(epoch, 0);
            assertEq(scores.epochScores(epoch).penalised, 1);
            assertEq(scores.epochScores(epoch).committed, 0);
        }
        vm.expectPartialRevert(IScoreRegistry.AlreadyPenalised.selector);
        scores.penaliseMissingReveal(23, 0);
    }
}
