// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

/// @notice One miner and three validators with stakes of 1, 1 and 2: who attests what is told by masks of three bits.
contract LocalStateTest is FaultsTest {
    /// How the validators attested a round.
    struct Votes {
        /// Attested at all.
        uint8 cast;
        /// Attested the miner's initial root.
        uint8 root;
        /// Set the miner's bit.
        uint8 bit;
    }

    uint8 internal constant ALL = 7;
    uint8 internal constant HALF = 3;
    Votes internal yes = Votes(ALL, ALL, ALL);
    Actor[3] internal validators;
    bytes32[12] internal beacons;
    Submission[12] internal handedIn;
    Votes[12] internal votesOf;

    function joinOthers() internal override {
        for (uint256 i = 0; i < 3; ++i) {
            validators[i] =
                join(string.concat("validator", vm.toString(i)), Role.Validator, i == 2 ? 200 ether : 100 ether);
        }
    }

    // ---------------------------------------------------------------- rounds

    function _submission(uint64 round, uint64 from) private view returns (Submission memory s) {
        s = submission();
        s.round = round;
        s.beacon = beacons[round];
        s.localFromRound = from;
        s.localIn = from == 0 ? keccak256("zero root") : _localOut(from);
        s.localOut = _localOut(round);
    }

    function _localOut(uint64 round) private pure returns (bytes32) {
        return keccak256(abi.encode("local", round));
    }

    function _begin(uint64 round) private {
        beacons[round] = round == 1 ? beaconValue : drawBeacon(round, ASSIGNMENT);
        if (round != 1) goTo(epochs.putOpens(round));
    }

    function _vote(uint64 round, Votes memory votes) private {
        goTo(epochs.publishDeadline(round) + 1);
        votesOf[round] = votes;
        for (uint8 i = 0; i < 3; ++i) {
            if (votes.cast >> i & 1 == 0) continue;
            IEpochManager.Ballot memory ballot = _ballot(round, i);
            vm.prank(validators[i].operator);
            epochs.attest(round, ballot.root, ballot.bitmap);
        }
    }

    /// @dev A whole round, in which the miner hands in what carries over from `from`.
    function _play(uint64 round, uint64 from, Votes memory votes) private {
        _begin(round);
        _hand(_submission(round, from));
        _vote(round, votes);
    }

    function _hand(Submission memory s) private {
        handedIn[s.round] = s;
        handIn(s);
    }

    function _ballot(uint64 round, uint8 i) private view returns (IEpochManager.Ballot memory) {
        Votes memory votes = votesOf[round];
        return IEpochManager.Ballot({
            slot: i,
            root: votes.root >> i & 1 == 1 ? GENESIS_ROOT : keccak256("another root"),
            bitmap: votes.bit >> i & 1 == 1 ? bytes(hex"01") : bytes(hex"00")
        });
    }

    /// @dev Of those in the mask that attested.
    function _open(uint64 round, uint8 mask) private view returns (IEpochManager.Ballot[] memory ballots) {
        mask &= votesOf[round].cast;
        ballots = new IEpochManager.Ballot[]((mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1));
        uint256 count = 0;
        for (uint8 i = 0; i < 3; ++i) {
            if (mask >> i & 1 == 1) ballots[count++] = _ballot(round, i);
        }
    }

    // ---------------------------------------------------------------- proofs

    function _accuse(uint64 round, uint64 other, uint8 mask, bytes memory reason) private {
        _accuse(handedIn[round], handedIn[other], signed(handedIn[other]), _open(other, mask), reason);
    }

    function _accuseUnseen(uint64 round, uint64 other, uint8 mask, bytes memory reason) private {
        Submission memory none;
        _accuse(handedIn[round], none, "", _open(other, mask), reason);
    }

    /// @dev An empty reason: the proof must hold.
    function _accuse(
        Submission memory s,
        Submission memory other,
        bytes memory otherSig,
        IEpochManager.Ballot[] memory ballots,
        bytes memory reason
    ) private {
        bytes memory sig = signed(s);
        commitChallenge(keccak256(abi.encode(s, sig, other, otherSig, ballots)));
        if (reason.length != 0) {
            vm.expectRevert(reason);
        } else {
            vm.expectEmit(address(faults));
            emit IObjectiveFaults.FaultProven(s.round, s.miner, hunter, Fault.LocalState);
        }
        vm.prank(hunter);
        faults.proveLocalState(SALT, s, sig, other, otherSig, ballots);
        if (reason.length == 0) assertKind(kindOf(s.round), Fault.LocalState);
    }

    function _maybeAccepted(uint64 round) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IObjectiveFaults.MayBeAccepted.selector, round);
    }

    function _maybeRejected(uint64 round) private pure returns (bytes memory) {
        return abi.encodeWithSelector(IObjectiveFaults.MayBeRejected.selector, round);
    }

    // ---------------------------------------------------------------- not what came out

    function test_proveLocalState_succeedsIfLocalInIsNotWhatCameOut() public {
        _play(1, 0, yes);
        _begin(2);
        Submission memory s = _submission(2, 1);
        s.localIn = keccak256("made up");
        _hand(s);
        _accuse(2, 1, 0, "");
        assertEq(vault.activeOf(miner.account), 50 ether);
        assertEq(verdicts.bountiesHeld(), 20 ether);
    }

    function test_proveLocalState_succeedsUntilTheWindowCloses() public {
        _play(1, 0, yes);
        _begin(2);
        Submission memory s = _submission(2, 1);
        s.localIn = keccak256("made up");
        _hand(s);
        goTo(epochs.epochEnd(4));
        _accuse(2, 1, 0, abi.encodeWithSelector(IObjectiveFaults.FraudWindowClosed.selector, 2, 4, 5));
        vm.warp(block.timestamp - 1);
        _accuse(2, 1, ALL, "");
    }

    function test_proveLocalState_revertsIfCarriedFromWhatWasAccepted() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        _accuse(2, 1, ALL, _maybeAccepted(1));
        _accuseUnseen(2, 1, ALL, _maybeAccepted(1));
    }

    // ---------------------------------------------------------------- not accepted

    function test_proveLocalState_succeedsIfTheBitHadNoMajority() public {
        _play(1, 0, Votes(ALL, ALL, HALF));
        _play(2, 1, yes);
        _accuse(2, 1, ALL, "");
    }

    function test_proveLocalState_succeedsIfTheRootHadNoMajority() public {
        _play(1, 0, Votes(ALL, HALF, ALL));
        _play(2, 1, yes);
        // The bits don't say so.
        _accuseUnseen(2, 1, ALL, _maybeAccepted(1));
        _accuse(2, 1, ALL, "");
    }

    function test_proveLocalState_succeedsIfNobodyAttested() public {
        _play(1, 0, Votes(0, 0, 0));
        _play(2, 1, yes);
        _accuse(2, 1, ALL, "");
    }

    function test_proveLocalState_succeedsIfTheOtherBeaconWasNotCanonical() public {
        _begin(1);
        Submission memory orphan = _submission(1, 0);
        orphan.beacon = keccak256("orphaned");
        _hand(orphan);
        _vote(1, yes);
        _play(2, 1, yes);
        _accuse(2, 1, 0, "");
    }

    function test_proveLocalState_succeedsIfNothingWasHandedIn() public {
        _begin(1);
        _vote(1, Votes(ALL, ALL, 0));
        _play(2, 1, yes);
        _accuseUnseen(2, 1, ALL, "");
    }

    /// @dev Slot 0, whose bit the ballots carry, is somebody else's then.
    function test_proveLocalState_succeedsIfTheMinerHeldNoSlotThen() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        _noSlotIn(1);
        _accuseUnseen(2, 1, ALL, "");
        _accuse(2, 1, ALL, "");
    }

    function test_proveLocalState_revertsIfTheMinerHeldNoSlotLater() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        _play(3, 1, yes);
        _noSlotIn(1);
        _accuse(3, 2, ALL, _maybeRejected(2));
    }

    function _noSlotIn(uint64 epoch) private {
        vm.mockCall(
            address(registry), abi.encodeCall(registry.slotOf, (miner.account, epoch)), abi.encode(Role.None, uint32(0))
        );
    }

    /// @dev What is left out counts for the miner.
    function test_proveLocalState_revertsWhileUnopenedBallotsCouldSaveIt() public {
        _play(1, 0, Votes(ALL, HALF, HALF));
        _play(2, 1, yes);
        // Half are known to be against it: 1 of 4 unopened can't help, 2 can.
        _accuse(2, 1, 1, _maybeAccepted(1));
        _accuseUnseen(2, 1, 1, _maybeAccepted(1));
        _accuse(2, 1, 4, "");
    }

    /// @dev The places of the attestations are used again after ringSize rounds, and then nothing can be said.
    function test_proveLocalState_succeedsInTheLastRoundOfTheRingAndRevertsAfterIt() public {
        _play(1, 0, Votes(ALL, ALL, HALF));
        goTo(epochs.roundStart(10) - 9);
        _begin(10);
        _hand(_submission(10, 1));
        goTo(epochs.roundStart(11));
        _accuse(10, 1, ALL, abi.encodeWithSelector(IEpochManager.TooOld.selector, 1));
        _accuseUnseen(10, 1, ALL, abi.encodeWithSelector(IEpochManager.TooOld.selector, 1));
        vm.warp(block.timestamp - 1);
        _accuse(10, 1, 4, "");
    }

    // ---------------------------------------------------------------- a later one was accepted

    function test_proveLocalState_succeedsIfALaterOneWasAccepted() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        _play(3, 1, yes);
        _accuse(3, 2, ALL, "");
    }

    function test_proveLocalState_succeedsWithTheBallotsOfAMajority() public {
        _play(1, 0, yes);
        _play(2, 1, Votes(ALL, ALL, 5));
        _play(3, 1, yes);
        _accuse(3, 2, 3, _maybeRejected(2));
        _accuse(3, 2, 4, _maybeRejected(2));
        _accuse(3, 2, 5, "");
    }

    function test_proveLocalState_revertsIfTheLaterOneWasNotAccepted() public {
        _play(1, 0, yes);
        _play(2, 1, Votes(ALL, ALL, HALF));
        _play(3, 1, yes);
        _accuse(3, 2, ALL, _maybeRejected(2));
    }

    function test_proveLocalState_revertsIfTheLaterRootHadNoMajority() public {
        _play(1, 0, yes);
        _play(2, 1, Votes(ALL, HALF, ALL));
        _play(3, 1, yes);
        _accuse(3, 2, ALL, _maybeRejected(2));
    }

    function test_proveLocalState_revertsIfTheLaterBeaconWasNotCanonical() public {
        _play(1, 0, yes);
        _begin(2);
        Submission memory orphan = _submission(2, 1);
        orphan.beacon = keccak256("orphaned");
        _hand(orphan);
        _vote(2, yes);
        _play(3, 1, yes);
        _accuse(
            3,
            2,
            ALL,
            abi.encodeWithSelector(IObjectiveFaults.NotCanonicalBeacon.selector, 2, orphan.beacon, beacons[2])
        );
    }

    // ---------------------------------------------------------------- never a fault

    function test_proveLocalState_revertsAfterAReset() public {
        _play(1, 0, yes);
        _play(2, 0, yes);
        _accuse(2, 1, ALL, abi.encodeWithSelector(IObjectiveFaults.NothingCarried.selector, 2, 0));
    }

    function test_proveLocalState_revertsIfCarriedFromItselfOrTheFuture() public {
        _play(1, 0, yes);
        _begin(2);
        _hand(_submission(2, 2));
        _accuse(2, 1, ALL, abi.encodeWithSelector(IObjectiveFaults.NothingCarried.selector, 2, 2));
    }

    function test_proveLocalState_revertsIfTheOtherRoundIsUnrelated() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        _play(3, 2, yes);
        _play(4, 3, yes);
        _accuse(3, 1, ALL, abi.encodeWithSelector(IObjectiveFaults.UnrelatedRound.selector, 3, 2, 1));
        _accuse(3, 3, ALL, abi.encodeWithSelector(IObjectiveFaults.UnrelatedRound.selector, 3, 2, 3));
        _accuse(3, 4, ALL, abi.encodeWithSelector(IObjectiveFaults.UnrelatedRound.selector, 3, 2, 4));
    }

    function test_proveLocalState_revertsIfTheOtherIsSomebodyElses() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        bytes memory different = abi.encodeWithSelector(IObjectiveFaults.DifferentSubmissions.selector);
        Submission memory other = handedIn[1];
        other.miner = makeAddr("somebody");
        _accuse(handedIn[2], other, signed(other), _open(1, ALL), different);
        other = _submission(1, 0);
        other.run = keccak256("another run");
        _accuse(handedIn[2], other, signed(other), _open(1, ALL), different);
    }

    function test_proveLocalState_revertsIfEitherIsNotCommitted() public {
        _play(1, 0, yes);
        _play(2, 1, yes);
        Submission memory other = _submission(1, 0);
        other.localOut = keccak256("not what was handed in");
        _accuse(
            handedIn[2],
            other,
            signed(other),
            _open(1, ALL),
            abi.encodeWithSelector(
                IObjectiveFaults.NotCommitted.selector, miner.account, 1, faults.submissionDigest(other)
            )
        );
        Submission memory s = _submission(2, 1);
        s.localIn = keccak256("not what was handed in");
        _accuse(
            s,
            handedIn[1],
            signed(handedIn[1]),
            _open(1, ALL),
            abi.encodeWithSelector(IObjectiveFaults.NotCommitted.selector, miner.account, 2, faults.submissionDigest(s))
        );
    }

    /// @dev A miner that follows the rule, or resets, in any history of rounds: nothing that it handed in convicts it.
    function testFuzz_proveLocalState_neverAgainstAnHonestMiner(
        Votes[5] memory history,
        uint8 resets,
        uint8 skips,
        uint8 mask
    ) public {
        fund(hunter, 100 ether);
        if (mask & 8 == 0) mask = ALL;
        uint64 last = 0;
        for (uint64 round = 1; round <= 5; ++round) {
            Votes memory votes = history[round - 1];
            votes = Votes(_mostly(votes.cast), _mostly(votes.root), _mostly(votes.bit));
            _begin(round);
            bool handsIn = skips >> round & 3 != 0;
            if (handsIn) _hand(_submission(round, resets >> round & 3 == 0 ? 0 : last));
            else votes.bit = 0;
            _vote(round, votes);
            if (handsIn && _isMajority(votes.cast & votes.root) && _isMajority(votes.cast & votes.bit)) last = round;
        }
        for (uint64 accused = 1; accused <= 5; ++accused) {
            for (uint64 other = 0; other <= 5; ++other) {
                if (handedIn[accused].round != 0) _accuseInVain(handedIn[accused], other, mask);
            }
        }
    }

    /// @dev Other round 0: nothing is shown.
    function _accuseInVain(Submission memory s, uint64 other, uint8 mask) private {
        bytes memory sig = signed(s);
        Submission memory shown = handedIn[other];
        if (other != 0 && shown.round == 0) return;
        bytes memory shownSig = other == 0 ? bytes("") : signed(shown);
        IEpochManager.Ballot[] memory ballots = _open(other == 0 ? s.localFromRound : other, mask);
        commitChallenge(keccak256(abi.encode(s, sig, shown, shownSig, ballots)));
        vm.expectRevert();
        vm.prank(hunter);
        faults.proveLocalState(SALT, s, sig, shown, shownSig, ballots);
    }

    /// @dev All three, in three cases of four.
    function _mostly(uint8 seed) private pure returns (uint8) {
        return seed & 24 == 0 ? seed & ALL : ALL;
    }

    function _isMajority(uint8 mask) private pure returns (bool) {
        return (mask & 1) + (mask >> 1 & 1) + 2 * (mask >> 2 & 1) > 2;
    }
}
