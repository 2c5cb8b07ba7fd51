// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRewardsDistributor} from "../../src/interfaces/IRewardsDistributor.sol";
import {Role} from "../../src/interfaces/IRun.sol";
import {Leaf, Opening} from "../../src/interfaces/ISettlement.sol";
import {InvariantTest} from "../base/InvariantTest.sol";
import {RunTest} from "../base/RunTest.sol";
import {SettlementTest} from "../base/SettlementTest.sol";

/// @notice Settlements: invariants 1, 3, 7 and 10. Validators vote at random or not at all, liars post beside the honest, leaves
/// are challenged rightly and wrongly, and everybody claims.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract SettlementInvariantsTest is SettlementTest, InvariantTest {
    /// What was assigned in each epoch, and could have been.
    mapping(uint64 epoch => uint256) private _assigned;
    address private _hunter = makeAddr("hunter");

    function setUp() public override(SettlementTest, RunTest) {
        super.setUp();
        fund(address(this), 1000 ether);
        for (uint256 i = 0; i < 6; ++i) {
            fund(_actor(i).account, 1000 ether);
            stakers.push(_actor(i).account);
        }
        openBooks();
        bytes4[] memory actions = new bytes4[](16);
        actions[0] = this.actPass.selector;
        actions[1] = this.actDeposit.selector;
        actions[2] = this.actUnbond.selector;
        actions[3] = this.actWithdraw.selector;
        actions[4] = this.actRegister.selector;
        actions[5] = this.actSlash.selector;
        actions[6] = this.actChore.selector;
        actions[7] = this.actSettle.selector;
        actions[8] = this.actClaim.selector;
        actions[9] = this.actFees.selector;
        actions[10] = this.actPenalise.selector;
        actions[11] = this.actClose.selector;
        actions[12] = this.actPause.selector;
        actions[13] = this.actAnnounce.selector;
        actions[14] = this.actClaim.selector;
        actions[15] = this.actLieUnchallenged.selector;
        target(actions);
    }

    function goTo(uint64 time) internal override(RunTest, InvariantTest) {
        InvariantTest.goTo(time);
    }

    function _actor(uint256 i) private view returns (Actor memory) {
        i %= 6;
        return i < 3 ? miners[i] : validators[i - 3];
    }

    // ---------------------------------------------------------------- stakes

    function actPass(uint16 seconds_) external logged {
        goTo(epochs.time() + 1 + seconds_ % 300);
    }

    function actDeposit(uint8 who, uint64 amount) external logged {
        vm.prank(_actor(who).account);
        vault.deposit(uint256(amount) * 3);
    }

    function actUnbond(uint8 who, uint256 amount) external logged {
        address account = _actor(who).account;
        uint256 active = vault.activeOf(account);
        amount = bound(amount, 0, amount % 4 == 0 ? active : active / 3);
        vm.prank(account);
        vault.requestUnbond(amount);
    }

    function actWithdraw(uint8 who) external logged {
        vm.prank(_actor(who).account);
        vault.withdraw();
    }

    function actRegister(uint8 who) external logged {
        Actor memory a = _actor(who);
        if (vault.activeOf(a.account) < 100 ether) {
            vm.prank(a.account);
            vault.deposit(100 ether);
        }
        vm.prank(a.account);
        registry.register(who % 6 < 3 ? Role.Miner : Role.Validator, a.operator, "", address(0), "");
    }

    function actSlash(uint8 who, uint256 amount, uint256 bounty) external logged {
        address account = _actor(who).account;
        if (amount % 7 != 0) amount = amount % 10 ether;
        vm.prank(address(verdicts));
        vault.slash(account, amount, _hunter, bounty);
        if (amount % 9 != 0) return;
        vm.prank(address(verdicts));
        registry.exclude(account);
    }

    function actPenalise(uint8 slot) external logged {
        scores.penaliseMissingReveal(rewards.nextEpoch(), slot % 3);
    }

    function actChore(uint8 purpose) external logged {
        uint64 round = epochs.currentRound() + 1;
        drawBeacon(round, 1 + purpose % 2);
        rewards.withdrawRefunds(address(this));
    }

    function actFees(uint64 amount) external logged {
        rewards.addFees(amount);
    }

    // ---------------------------------------------------------------- settlements

    /// @dev One epoch from weights to finality or void; now and then false posts come before or after the right one.
    function actSettle(uint16[9] memory w, bool lie, uint8 victim) external logged {
        uint64 epoch = rewards.nextEpoch();
        if (!_voted(epoch, w)) return;
        buildHonest(epoch);
        if (lie && victim % 2 == 0 && built[epoch].length != 0) _lieAndStrike(epoch, victim);
        uint32 right = post(epoch);
        if (lie && victim % 2 == 1 && built[epoch].length != 0) {
            // Too late to become final: it burns when it is closed, or when the next epoch's post takes its place.
            Leaf storage leaf = built[epoch][victim % built[epoch].length];
            leaf.cumulative += 1 ether;
            post(epoch);
            leaf.cumulative -= 1 ether;
            reach("beside");
        }
        if (victim % 3 == 0) _challengeRight(epoch, right, (victim / 3) % 3);
        IRewardsDistributor.Post memory honest = rewards.postOf(epoch, right);
        expect(6, honest.poster != address(0), "an honest post fell");
        expect(7, honest.windowEnds <= honest.postedAt + 60 + 50 * 15, "a post without a bound");
        goTo(honest.windowEnds + 1);
        rewards.finaliseSettlement(epoch, right);
        _noteFinal(epoch, honest);
        expect(6, rewards.finalRoot(epoch) == node(epoch, 13, 0).hash, "a false settlement is final");
        rewards.withdrawBonds(poster);
        for (uint256 i = 0; i < built[epoch].length; ++i) {
            Leaf memory mine = built[epoch][i];
            if (mine.cumulative <= rewards.claimedOf(mine.account) || i != victim % built[epoch].length) continue;
            rewards.claim(epoch, mine, packed(epoch, mine.index));
        }
    }

    /// @dev Nobody looks: even so the false post pays within the budget.
    function actLieUnchallenged(uint16[9] memory w, uint8 victim) external logged {
        uint64 epoch = rewards.nextEpoch();
        if (epoch % 4 != 0 || !_voted(epoch, w)) return;
        buildHonest(epoch);
        if (built[epoch].length == 0) return;
        Leaf storage leaf = built[epoch][victim % built[epoch].length];
        uint128 pot = uint128(rewards.potOf(epoch));
        // What the half may pay, all to one account.
        uint128 share = leaf.index < V ? pot * 7 / 10 : pot - pot * 7 / 10;
        uint256 others = 0;
        for (uint256 i = 0; i < built[epoch].length; ++i) {
            if (leaf.index < V == built[epoch][i].index < V) others += built[epoch][i].amount;
        }
        uint128 more = share - uint128(others);
        leaf.amount += more;
        leaf.cumulative += more;
        uint32 attempt = post(epoch);
        IRewardsDistributor.Post memory lie = rewards.postOf(epoch, attempt);
        goTo(lie.windowEnds + 1);
        rewards.finaliseSettlement(epoch, attempt);
        _noteFinal(epoch, lie);
        rewards.withdrawBonds(poster);
        reach("lie");
    }

    function actClose(uint8 attempt) external logged {
        rewards.closePost(rewards.nextEpoch() - 1, 1 + attempt % 3);
    }

    function actClaim(uint8 back, uint8 which) external logged {
        uint64 epoch = rewards.lastFinalAt(rewards.nextEpoch() - 1);
        for (uint256 i = 0; i < back % 3 && epoch > 0; ++i) {
            epoch = rewards.lastFinalAt(epoch - 1);
        }
        if (epoch == 0 || built[epoch].length == 0) return;
        Leaf memory leaf = built[epoch][which % built[epoch].length];
        rewards.claim(epoch, leaf, packed(epoch, leaf.index));
    }

    function _noteFinal(uint64 epoch, IRewardsDistributor.Post memory final_) private {
        expect(3, _assigned[epoch] == 0, "an epoch settled twice");
        expect(3, final_.amount <= final_.pot, "over budget");
        _assigned[epoch] = final_.amount;
    }

    /// @dev Whether there is something to settle; else the epoch is void if it can be.
    function _voted(uint64 epoch, uint16[9] memory w) private returns (bool) {
        if (epochs.paused()) endPause();
        if (epochs.time() > epochs.weightCommitDeadline(epoch)) {
            // All that is late is void, so that the next call finds an epoch in time.
            for (; epochs.time() > epochs.weightCommitDeadline(epoch); ++epoch) {
                if (epochs.time() <= epochs.settlementVoidAt(epoch)) goTo(epochs.settlementVoidAt(epoch) + 1);
                rewards.voidEpoch(epoch);
            }
            reach("void");
            return false;
        }
        if (epochs.time() <= epochs.epochEnd(epoch)) goTo(epochs.epochEnd(epoch) + 1);
        bytes32 run = epochs.run();
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account == address(0)) continue;
            bytes memory weights = weightsOf(w[3 * v], w[3 * v + 1], w[3 * v + 2]);
            given[epoch][v] = weights;
            address operator = registry.operatorAt(account, epochs.currentRound());
            bytes32 root = scores.weightsRootOf(weights);
            vm.prank(operator);
            scores.commitWeights(epoch, keccak256(abi.encode(run, account, epoch, root, SALT)));
        }
        goTo(epochs.weightCommitDeadline(epoch) + 1);
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account == address(0)) continue;
            scores.revealWeights(epoch, v, account, given[epoch][v], SALT);
        }
        goTo(epochs.weightRevealDeadline(epoch) + 1);
        return scores.hasQuorum(epoch);
    }

    function _lieAndStrike(uint64 epoch, uint8 victim) private {
        Leaf storage leaf = built[epoch][victim % built[epoch].length];
        leaf.cumulative += 1 ether;
        uint32 attempt = post(epoch);
        challenge(epoch, leaf.index, 0);
        open(epoch, leaf.index, 0);
        expect(6, rewards.postOf(epoch, attempt).poster == address(0), "a false post stood");
        leaf.cumulative -= 1 ether;
        rewards.withdrawBonds(challenger);
    }

    /// @dev Anyone opens in the last second; the post stands.
    function _challengeRight(uint64 epoch, uint32 attempt, uint32 index) private {
        vm.prank(challenger);
        rewards.challengeLeaf(epoch, attempt, index, 0);
        goTo(rewards.challengeOf(epoch, attempt, index, 0).deadline);
        Opening memory o = openingOf(epoch, index, 0);
        rewards.openLeaf(epoch, attempt, index, 0, o);
        reach("answered challenge");
    }

    // ---------------------------------------------------------------- invariants

    function invariant_3_claimedWithinBudgetAndCumulativeClaimsOnlyGrow() public view {
        assertFlawless(3);
        // All that was emitted or added as fees is claimed, claimable, or still in a pot.
        assertEq(rewards.settled() + rewards.rollover() + rewards.pendingFees(), emitted + fees);
        assertLe(claimed, rewards.settled());
        uint256 assigned = 0;
        for (uint64 epoch = 1; epoch < rewards.nextEpoch(); ++epoch) {
            assigned += _assigned[epoch];
        }
        assertEq(rewards.settled(), assigned);
        for (uint256 i = 0; i < 6; ++i) {
            assertEq(rewards.claimedOf(stakers[i]), claimedBy[stakers[i]]);
        }
        assertMoney();
    }

    function invariant_10_supplyChangesOnlyByScheduleOrBurn() public view {
        assertSupply();
        uint256 open_ = 0;
        uint64 next = rewards.nextEpoch();
        for (uint64 epoch = next; epoch <= epochs.currentEpoch() + 1; ++epoch) {
            open_ += rewards.choresOf(epoch);
        }
        assertLe(token.totalMinted() - GENESIS_ALLOCATION, 1000 ether * uint256(next - 1) + open_);
        assertMoney();
    }

    function afterInvariant() public view {
        assertReached("final");
        assertReached("claim");
        assertReached("slash");
        assertReached("void");
        assertReached("pause");
    }
}
