// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../../src/interfaces/IChallengeBook.sol";
import {IObjectiveFaults} from "../../src/interfaces/IObjectiveFaults.sol";
import {Params, Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Fault, IVerdicts} from "../../src/interfaces/IVerdicts.sol";
import {FaultsTest} from "../base/FaultsTest.sol";
import {InvariantTest} from "../base/InvariantTest.sol";
import {RunTest} from "../base/RunTest.sol";

/// @notice Objective faults, their bonds and their bounties: invariants 1, 4 and 9. Hunters commit, reveal, copy each
/// other and forget; an accomplice proves the lighter fault first; everybody tries the same against an honest miner.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract VerdictsInvariantsTest is FaultsTest, InvariantTest {
    /// What a hunter knows, in the order of its gravity.
    uint256 private constant EVIDENCE = 4;

    address[3] private _hunters;
    Actor private _honest;
    Submission private _a;
    Submission private _b;
    Submission private _good;
    bool private _handedIn;
    /// Commitments that are open, by hunter and evidence: salt.
    mapping(address hunter => mapping(uint256 evidence => bytes32)) private _open;
    uint256 private _salt;
    /// Bonds paid in and out, by the hunters' own calls.
    uint256 private _paidIn;
    uint256 private _stakeBefore;

    function params() internal view override(FaultsTest, RunTest) returns (Params memory) {
        return FaultsTest.params();
    }

    function setUp() public override(FaultsTest, RunTest) {
        FaultsTest.setUp();
        for (uint256 i = 0; i < 3; ++i) {
            _hunters[i] = makeAddr(string.concat("hunter", vm.toString(i)));
            fund(_hunters[i], 10_000 ether);
        }
        stakers.push(miner.account);
        stakers.push(_honest.account);
        // Of the liar: a wrong sample, committed; and another submission, only signed. Of the honest one: its claim.
        _a = submission();
        _a.dataRoot = root(_falseData());
        _b = submission();
        _b.payloadRoot = keccak256("other payload");
        handIn(_a);
        Actor memory bad = miner;
        miner = _honest;
        _good = submission();
        handIn(_good);
        miner = bad;
        _stakeBefore = STAKE;
        openBooks();
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = this.actCommit.selector;
        actions[1] = this.actReveal.selector;
        actions[2] = this.actReveal.selector;
        actions[3] = this.actExpire.selector;
        actions[4] = this.actPass.selector;
        actions[5] = this.actPayBounty.selector;
        actions[6] = this.actWithdrawCredit.selector;
        actions[7] = this.actWithdrawBond.selector;
        actions[8] = this.actGame.selector;
        actions[9] = this.actUnbond.selector;
        actions[10] = this.actPause.selector;
        actions[11] = this.actResume.selector;
        actions[12] = this.actAnnounce.selector;
        actions[13] = this.actAccuseTheHonest.selector;
        target(actions);
    }

    function joinOthers() internal override {
        _honest = join("honest", Role.Miner, STAKE);
    }

    function goTo(uint64 time) internal override(RunTest, InvariantTest) {
        InvariantTest.goTo(time);
    }

    function _falseData() private view returns (bytes32[] memory leaves) {
        leaves = assigned();
        leaves[2] = keccak256("another sample");
    }

    // ---------------------------------------------------------------- evidence

    /// @dev With the revealing transaction, as any hunter would send it with this salt.
    function _evidence(uint256 which, bytes32 salt) private view returns (bytes32 hash, bytes memory call) {
        (bytes memory sigA, bytes memory sigB) = (signed(_a), signed(_b));
        if (which == 0) {
            hash = keccak256(abi.encode(_a, sigA, _b, sigB));
            call = abi.encodeCall(IObjectiveFaults.proveEquivocation, (salt, _a, sigA, _b, sigB));
        } else if (which == 1) {
            return _wrongData(_a, sigA, 2, salt);
        } else if (which == 2) {
            // Its own submission twice: no fault.
            hash = keccak256(abi.encode(_a, sigA, _a, sigA));
            call = abi.encodeCall(IObjectiveFaults.proveEquivocation, (salt, _a, sigA, _a, sigA));
        } else {
            // A right sample: no fault.
            return _wrongData(_a, sigA, 1, salt);
        }
    }

    function _wrongData(Submission memory s, bytes memory sig, uint32 i, bytes32 salt)
        private
        view
        returns (bytes32 hash, bytes memory call)
    {
        bytes32[] memory claimed_ = _falseData();
        uint256 sample = faults.assignedSample(ROUND, beaconValue, s.miner, i);
        (bytes32[] memory left, bytes32[] memory right) = (proof(claimed_, i), proof(dataset(), sample));
        hash = keccak256(abi.encode(s, sig, i, claimed_[i], left, dataset()[sample], right));
        call = abi.encodeCall(
            IObjectiveFaults.proveWrongData, (salt, s, sig, i, claimed_[i], left, dataset()[sample], right)
        );
    }

    // ---------------------------------------------------------------- actions

    function actPass(uint8 blocks, bool slow) external logged {
        rollTo(epochs.blockNumber() + 1 + blocks % 25, slow ? 4 : 0);
    }

    function actCommit(uint8 who, uint8 which) external logged {
        (address account, uint256 evidence) = (_hunters[who % 3], which % EVIDENCE);
        if (_open[account][evidence] != 0) revert("committed");
        bytes32 salt = keccak256(abi.encode(++_salt));
        (bytes32 hash,) = _evidence(evidence, salt);
        vm.prank(account);
        faults.commitChallenge(keccak256(abi.encode(account, hash, salt)));
        _open[account][evidence] = salt;
        reach("commit");
    }

    function actReveal(uint8 who, uint8 which) external logged {
        (address account, uint256 evidence) = (_hunters[who % 3], which % EVIDENCE);
        bytes32 salt = _open[account][evidence];
        if (salt == 0) revert("not committed");
        (bytes32 hash, bytes memory call) = _evidence(evidence, salt);
        uint64 committed = faults.challengeBlock(account, keccak256(abi.encode(account, hash, salt)));
        uint64 now_ = epochs.blockNumber();
        bool inTime = now_ > committed && now_ <= committed + params().challengeRevealBlocks && !epochs.paused()
            && epochs.currentEpoch() <= 1 + params().fraudWindowEpochs;
        // A copier with everything but its own commitment gets nothing.
        expect(9, !tryAs(makeAddr("copier"), address(faults), call), "a copied reveal");
        bool ok = tryAs(account, address(faults), call);
        expect(6, ok == (inTime && evidence < 2), ok ? "a fault without evidence" : "evidence refused");
        if (ok) _open[account][evidence] = 0;
        if (ok) expect(9, !tryAs(account, address(faults), call), "revealed twice");
    }

    function actExpire(uint8 who, uint8 which) external logged {
        (address account, uint256 evidence) = (_hunters[who % 3], which % EVIDENCE);
        bytes32 salt = _open[account][evidence];
        (bytes32 hash,) = _evidence(evidence, salt);
        bytes32 commitment = keccak256(abi.encode(account, hash, salt));
        uint64 committed = faults.challengeBlock(account, commitment);
        if (committed == 0) revert("none");
        bool ok = tryAs(
            address(0xa11), address(faults), abi.encodeCall(IChallengeBook.expireChallenge, (account, commitment))
        );
        bool over = epochs.blockNumber() > committed + params().challengeRevealBlocks && !epochs.paused();
        expect(7, ok == over, "an expiry out of time");
        if (ok) _open[account][evidence] = 0;
    }

    /// @dev A game ends against the liar, or one opens or ends that may.
    function actGame(uint8 who, uint8 early, uint8 what) external logged {
        uint64 committed = epochs.blockNumber() - early % 20;
        bool opens = what % 3 == 1 && vault.locksOf(miner.account) == 0;
        vm.prank(address(disputes));
        if (what % 3 == 0) {
            verdicts.convict(Fault.NativeComputation, miner.account, ROUND, _hunters[who % 3], committed);
        } else if (opens) {
            vault.lock(miner.account);
        } else {
            vault.unlock(miner.account);
        }
    }

    function actPayBounty(uint8 who) external logged {
        IVerdicts.Verdict memory v = verdicts.verdictOf(miner.account, ROUND);
        if (v.hunter == address(0)) revert("none");
        uint256 before = token.balanceOf(v.hunter);
        bytes memory data = abi.encodeCall(IVerdicts.payBounty, (miner.account, ROUND));
        bool ok = tryAs(_hunters[who % 3], address(verdicts), data);
        expect(7, ok == (epochs.blockNumber() > v.payableAfter), "a bounty out of time");
        if (!ok) return;
        expect(4, token.balanceOf(v.hunter) == before + v.bounty, "another bounty");
        expect(9, !tryAs(v.hunter, address(verdicts), data), "paid twice");
    }

    function actWithdrawCredit(uint8 who) external logged {
        vm.prank(_hunters[who % 3]);
        verdicts.withdrawCredit();
    }

    function actWithdrawBond(uint8 who) external logged {
        address account = _hunters[who % 3];
        uint256 free = faults.freeBond(account);
        bytes memory more = abi.encodeCall(IChallengeBook.withdrawBond, (free + 1));
        expect(1, !tryAs(account, address(faults), more), "more than its bond");
        bytes memory all = abi.encodeCall(IChallengeBook.withdrawBond, (free));
        expect(9, tryAs(account, address(faults), all), "a bond does not come back");
    }

    function actUnbond(uint64 amount) external logged {
        vm.prank(miner.account);
        vault.requestUnbond(1 + amount);
    }

    /// @dev All that can be said against the honest one, in one go.
    function actAccuseTheHonest(uint8 who) external logged {
        address account = _hunters[who % 3];
        Actor memory bad = miner;
        miner = _honest;
        bytes memory sig = signed(_good);
        miner = bad;
        bytes32 salt = keccak256(abi.encode(++_salt));
        (bytes32 hash, bytes memory call) = _wrongData(_good, sig, 2, salt);
        vm.prank(account);
        faults.commitChallenge(keccak256(abi.encode(account, hash, salt)));
        rollTo(epochs.blockNumber() + 1, 0);
        expect(6, !tryAs(account, address(faults), call), "an honest miner convicted");
        (bytes32 same, bytes memory twice) = (
            keccak256(abi.encode(_good, sig, _a, signed(_a))),
            abi.encodeCall(IObjectiveFaults.proveEquivocation, (salt, _good, sig, _a, signed(_a)))
        );
        vm.prank(account);
        faults.commitChallenge(keccak256(abi.encode(account, same, salt)));
        rollTo(epochs.blockNumber() + 1, 0);
        expect(6, !tryAs(account, address(faults), twice), "convicted by another's word");
    }

    // ---------------------------------------------------------------- invariants

    function invariant_4_slashedIsBountyAndBurnedAndABountyIsCapped() public view {
        assertSlashesAddUp();
        // All verdicts of the round together took the gravest one's part, down to a unit each.
        uint256 bps = verdicts.verdictOf(miner.account, ROUND).takenBps;
        assertLe(slashed, _stakeBefore * bps / 10_000);
        assertGe(slashed + 3, _stakeBefore * bps / 10_000);
        assertEq(booked[_honest.account], STAKE);
        assertMoney();
    }

    function invariant_9_onePayoutPerFaultAndNoneReopens() public view {
        assertFlawless(9);
        bytes32 key = keccak256(abi.encode(miner.account, bytes32(uint256(ROUND))));
        assertEq(verdicts.verdictOf(miner.account, ROUND).bounty, heldBounty[key]);
        uint256 credits = 0;
        for (uint256 i = 0; i < 3; ++i) {
            credits += verdicts.creditOf(_hunters[i]);
        }
        assertEq(verdicts.bountiesHeld(), heldBounty[key] + credits);
        (uint32 count,) = registry.faultsOf(miner.account);
        assertLe(count, 1);
        assertMoney();
    }

    function afterInvariant() public view {
        assertReached("commit");
        assertReached("expired");
        assertReached("conviction");
        assertReached("bounty");
    }
}
