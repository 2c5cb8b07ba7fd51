// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

contract TallyTest is RunTest {
    bytes32 internal constant ROOT = keccak256("root");
    bytes32 internal constant OTHER_ROOT = keccak256("other root");
    uint32 internal constant VALIDATORS = 5;
    Actor[VALIDATORS] internal validators;
    /// What each validator attested in the round; no root: nothing.
    bytes32[VALIDATORS] internal roots;
    bytes[VALIDATORS] internal bitmaps;

    function setUp() public override {
        super.setUp();
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            validators[v] =
                join(string.concat("validator", vm.toString(v)), Role.Validator, uint256(50 + 10 * v) * 1 ether);
        }
        for (uint256 i = 0; i < 20; ++i) {
            join(vm.toString(i), Role.Miner, 10 ether);
        }
    }

    // ---------------------------------------------------------------- helpers

    function _attest(uint64 round, uint32 v, bytes32 root, bytes memory bitmap) private {
        (roots[v], bitmaps[v]) = (root, bitmap);
        vm.prank(validators[v].operator);
        epochs.attest(round, root, bitmap);
    }

    function _ballots(uint32 mask) private view returns (IEpochManager.Ballot[] memory ballots) {
        ballots = new IEpochManager.Ballot[](VALIDATORS);
        uint256 count = 0;
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            if (mask >> v & 1 == 1) ballots[count++] = IEpochManager.Ballot(v, roots[v], bitmaps[v]);
        }
        assembly {
            mstore(ballots, count)
        }
    }

    /// @dev One question at a time, straight from the definition.
    function _reference(uint32 opened, uint32 minerSlot, uint64 epoch)
        private
        view
        returns (IEpochManager.Tally memory t)
    {
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            t.total += vault.stakeAt(validators[v].account, epoch);
        }
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            if (roots[v] != 0 && opened >> v & 1 == 0) t.unopened += vault.stakeAt(validators[v].account, epoch);
        }
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            if (opened >> v & 1 == 1 && roots[v] == ROOT) t.forRoot += vault.stakeAt(validators[v].account, epoch);
        }
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            if (opened >> v & 1 == 0 || minerSlot >= bitmaps[v].length * 8) continue;
            if (uint256(uint8(bitmaps[v][minerSlot / 8])) / 2 ** (minerSlot % 8) % 2 == 0) continue;
            t.bitSet += vault.stakeAt(validators[v].account, epoch);
            t.setters += uint32(2 ** v);
        }
    }

    // ---------------------------------------------------------------- tests

    function test_tally_succeedsAfterTheAttestDeadline() public {
        goTo(epochs.attestDeadline(1));
        _attest(1, 0, ROOT, hex"02");
        _attest(1, 1, ROOT, hex"00");
        _attest(1, 3, OTHER_ROOT, hex"0302");
        uint64 deadline = epochs.attestDeadline(1);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooEarly.selector, deadline, deadline));
        epochs.tally(1, 1, ROOT, _ballots(1));
        goTo(deadline + 1);
        IEpochManager.Tally memory t = epochs.tally(1, 1, ROOT, _ballots(9));
        assertEq(t.total, 350 ether);
        assertEq(t.forRoot, 50 ether);
        assertEq(t.bitSet, 130 ether);
        assertEq(t.unopened, 60 ether);
        assertEq(t.setters, 9);
        t = epochs.tally(1, 9, ROOT, _ballots(11));
        assertEq(t.bitSet, 80 ether);
        assertEq(t.setters, 8);
        assertEq(t.unopened, 0);
        assertEq(epochs.tally(1, 16, ROOT, _ballots(11)).bitSet, 0);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidRound.selector, 0));
        epochs.tally(0, 1, ROOT, _ballots(1));
    }

    function test_tally_revertsIfABallotDoesNotFit() public {
        goTo(epochs.attestDeadline(1));
        _attest(1, 0, ROOT, hex"02");
        _attest(1, 1, ROOT, hex"02");
        goTo(epochs.attestDeadline(1) + 1);
        IEpochManager.Ballot[] memory ballots = _ballots(3);
        ballots[0].root = OTHER_ROOT;
        _expectMismatch(ballots, 0);
        ballots = _ballots(3);
        ballots[1].bitmap = hex"03";
        _expectMismatch(ballots, 1);
        ballots[1].bitmap = hex"0200";
        _expectMismatch(ballots, 1);
        ballots = _ballots(3);
        (ballots[0], ballots[1]) = (ballots[1], ballots[0]);
        _expectMismatch(ballots, 0);
        ballots[0].slot = 0;
        ballots[1].slot = 0;
        _expectMismatch(ballots, 0);
        ballots = _ballots(3);
        ballots[1].slot = 2;
        _expectMismatch(ballots, 2);
        ballots[1].slot = 40;
        _expectMismatch(ballots, 40);
    }

    /// @dev Else a round whose attestations were written over would look like one that nobody attested.
    function test_tally_succeedsInTheLastRoundOfTheRingAndRevertsAfterIt() public {
        goTo(epochs.attestDeadline(1));
        _attest(1, 0, ROOT, hex"02");
        uint64 next = epochs.roundStart(1 + epochs.ringSize());
        goTo(next - 1);
        assertEq(epochs.tally(1, 1, ROOT, _ballots(1)).bitSet, 50 ether);
        goTo(next);
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooOld.selector, 1));
        epochs.tally(1, 1, ROOT, _ballots(1));
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.TooOld.selector, 1));
        epochs.tally(1, 1, ROOT, _ballots(0));
    }

    function _expectMismatch(IEpochManager.Ballot[] memory ballots, uint32 slot) private {
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.BallotMismatch.selector, 1, slot));
        epochs.tally(1, 1, ROOT, ballots);
    }

    /// @dev With and without noted stakes, in any lap of the ring, whatever is opened.
    function testFuzz_tally_equalsTheReference(uint256 seed, uint32 opened, uint32 minerSlot, bool finalised) public {
        minerSlot %= 26;
        uint64 round = uint64(1 + seed % 3 * epochs.ringSize());
        if (round != 1) _abstainAndAttestBefore(round);
        goTo(epochs.attestDeadline(round));
        uint32 attesters = 0;
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            seed = uint256(keccak256(abi.encode(seed)));
            if (seed % 5 == 0) continue;
            attesters |= uint32(1) << v;
            bytes memory bitmap = abi.encodePacked(uint16(seed >> 8), uint8(seed >> 24 & 0x0f));
            if (seed >> 32 & 1 == 1) bitmap = abi.encodePacked(uint8(seed >> 40));
            _attest(round, v, seed >> 48 & 3 == 0 ? OTHER_ROOT : ROOT, bitmap);
        }
        opened &= attesters;
        goTo(epochs.attestDeadline(round) + 1);
        if (finalised) _tryFinalise(round);
        // Stakes of later epochs don't matter.
        stake(validators[0].account, 1000 ether);
        IEpochManager.Tally memory t = epochs.tally(round, minerSlot, ROOT, _ballots(opened));
        assertEq(abi.encode(t), abi.encode(_reference(opened, minerSlot, epochs.epochOf(round))));
    }

    /// @dev Everyone attests in the same places one lap earlier: that must not count.
    function _abstainAndAttestBefore(uint64 round) private {
        uint64 before = round - epochs.ringSize();
        goTo(epochs.attestDeadline(before));
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            _attest(before, v, ROOT, hex"ffff0f");
        }
        goTo(epochs.attestDeadline(before) + 1);
        _tryFinalise(before);
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            (roots[v], bitmaps[v]) = (0, "");
        }
    }

    function _tryFinalise(uint64 round) private {
        bytes32[] memory hashes = new bytes32[](VALIDATORS);
        (uint256 count, uint32 mask) = (0, 0);
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            if (roots[v] != ROOT) continue;
            mask |= uint32(1) << v;
            hashes[count++] = keccak256(bitmaps[v]);
        }
        assembly {
            mstore(hashes, count)
        }
        try epochs.finaliseRoot(round, ROOT, hashes, mask) {} catch {}
    }
}
