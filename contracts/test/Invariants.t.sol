// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../src/interfaces/IRun.sol";
import {Leaf, Opening} from "../src/interfaces/ISettlement.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

/// @notice Honest and adversarial participants in any order: the money always adds up.
/// @dev The test contract is its own handler; its `act` functions are the actions.
contract InvariantsTest is SettlementTest {
    address internal hunter = makeAddr("hunter");
    uint256 internal slashed;
    uint256 internal bounties;
    uint256 internal slashBurned;
    uint256 internal otherBurned;
    uint256 internal claimed;
    uint256 internal refunded;
    uint256 internal fees;
    uint256 internal leftEarly;
    mapping(address account => uint64) internal lastExitEpoch;

    function setUp() public override {
        super.setUp();
        fund(address(this), 1000 ether);
        for (uint256 i = 0; i < 6; ++i) {
            fund(_actor(i).account, 1000 ether);
        }
        bytes4[] memory actions = new bytes4[](12);
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
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    function _actor(uint256 i) private view returns (Actor memory) {
        i %= 6;
        return i < 3 ? miners[i] : validators[i - 3];
    }

    // ---------------------------------------------------------------- actions

    function actPass(uint16 seconds_) external {
        goTo(uint64(block.timestamp + 1 + seconds_ % 300));
    }

    function actDeposit(uint8 who, uint64 amount) external {
        vm.prank(_actor(who).account);
        vault.deposit(uint256(amount) * 3);
    }

    function actUnbond(uint8 who, uint256 amount) external {
        address account = _actor(who).account;
        uint256 active = vault.activeOf(account);
        amount = bound(amount, 0, amount % 4 == 0 ? active : active / 3);
        vm.prank(account);
        vault.requestUnbond(amount);
        lastExitEpoch[account] = epochs.currentEpoch();
    }

    function actWithdraw(uint8 who) external {
        address account = _actor(who).account;
        vm.prank(account);
        vault.withdraw();
        if (epochs.currentEpoch() <= lastExitEpoch[account] + 3) ++leftEarly;
    }

    function actRegister(uint8 who) external {
        Actor memory a = _actor(who);
        if (vault.activeOf(a.account) < 100 ether) {
            vm.prank(a.account);
            vault.deposit(100 ether);
        }
        vm.prank(a.account);
        registry.register(who % 6 < 3 ? Role.Miner : Role.Validator, a.operator, "", address(0), "");
    }

    /// @dev A judge's verdict of any size, with any bounty.
    function actSlash(uint8 who, uint256 amount, uint256 bounty, bool small) external {
        address account = _actor(who).account;
        if (small || amount % 5 != 0) amount = amount % 10 ether;
        uint256 supply = token.totalSupply();
        uint256 held = token.balanceOf(hunter);
        vm.startPrank(address(verdicts));
        slashed += vault.slash(account, amount, hunter, bounty);
        if (amount % 9 == 0) registry.exclude(account);
        vm.stopPrank();
        bounties += token.balanceOf(hunter) - held;
        slashBurned += supply - token.totalSupply();
    }

    function actPenalise(uint8 slot) external {
        uint64 epoch = rewards.nextEpoch();
        address account = registry.slotAccount(Role.Validator, slot % 3, epoch);
        uint256 before = token.totalSupply();
        scores.penaliseMissingReveal(epoch, slot % 3);
        if (account != address(0)) {
            slashed += before - token.totalSupply();
            slashBurned += before - token.totalSupply();
        }
    }

    function actChore(uint8 purpose) external {
        uint64 round = epochs.currentRound() + 1;
        drawBeacon(round, 1 + purpose % 2);
        refunded += rewards.withdrawRefunds(address(this));
    }

    function actFees(uint64 amount) external {
        rewards.addFees(amount);
        fees += amount;
    }

    /// @dev One epoch from weights to finality or void; now and then a false post comes first and is struck.
    function actSettle(uint16[9] memory w, bool lie, uint8 victim) external {
        uint64 epoch = rewards.nextEpoch();
        uint64 end = epochs.epochEnd(epoch);
        if (block.timestamp <= end) goTo(end + 1);
        if (block.timestamp > epochs.weightCommitDeadline(epoch)) {
            if (block.timestamp <= epochs.settlementVoidAt(epoch)) goTo(epochs.settlementVoidAt(epoch) + 1);
            rewards.voidEpoch(epoch);
            return;
        }
        _vote(epoch, w);
        if (!scores.hasQuorum(epoch)) return;
        buildHonest(epoch);
        if (lie && victim % 2 == 0) _lie(epoch, victim);
        buildHonest(epoch);
        if (block.timestamp > epochs.settlementVoidAt(epoch)) return;
        uint32 right = _post();
        if (lie && victim % 2 == 1 && built[epoch].length != 0) {
            // Too late to become final: it burns when it is closed, or when the next epoch's post takes its place.
            Leaf storage leaf = built[epoch][victim % built[epoch].length];
            leaf.cumulative += 1 ether;
            _post();
            leaf.cumulative -= 1 ether;
        }
        if (victim % 3 == 0) {
            uint32 index = (victim / 3) % 3;
            vm.prank(challenger);
            rewards.challengeLeaf(epoch, right, index, 0);
            Opening memory o = openingOf(epoch, index, 0);
            rewards.openLeaf(epoch, right, index, 0, o);
        }
        require(rewards.postOf(epoch, right).poster != address(0), "an honest post fell");
        goTo(rewards.postOf(epoch, right).windowEnds + 1);
        rewards.finaliseSettlement(epoch, right);
        require(rewards.finalRoot(epoch) == node(epoch, 13, 0).hash, "a false settlement is final");
        rewards.withdrawBonds(poster);
    }

    function _post() private returns (uint32 attempt) {
        uint256 supply = token.totalSupply();
        attempt = post(rewards.nextEpoch());
        otherBurned += supply - token.totalSupply();
    }

    function actClose(uint8 attempt) external {
        uint64 epoch = rewards.nextEpoch() - 1;
        uint256 supply = token.totalSupply();
        rewards.closePost(epoch, 1 + attempt % 3);
        otherBurned += supply - token.totalSupply();
    }

    function _vote(uint64 epoch, uint16[9] memory w) private {
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
    }

    function _lie(uint64 epoch, uint8 victim) private {
        if (built[epoch].length == 0) return;
        Leaf storage leaf = built[epoch][victim % built[epoch].length];
        leaf.cumulative += 1 ether;
        uint32 index = leaf.index;
        _post();
        uint256 supply = token.totalSupply();
        challenge(epoch, index, 0);
        open(epoch, index, 0);
        require(!newestStands(), "a false post stood");
        otherBurned += supply - token.totalSupply();
        rewards.withdrawBonds(challenger);
    }

    function actClaim(uint8 back, uint8 which) external {
        uint64 epoch = rewards.lastFinalAt(rewards.nextEpoch() - 1);
        for (uint256 i = 0; i < back % 3 && epoch > 0; ++i) {
            epoch = rewards.lastFinalAt(epoch - 1);
        }
        if (epoch == 0 || built[epoch].length == 0) return;
        Leaf memory leaf = built[epoch][which % built[epoch].length];
        claimed += rewards.claim(epoch, leaf, packed(epoch, leaf.index));
    }

    // ---------------------------------------------------------------- invariants

    /// @dev Each contract that holds money holds exactly what it accounts for.
    function invariant_tokenBalancesAreAccountedFor() public view {
        uint256 stakes = 0;
        for (uint256 i = 0; i < 6; ++i) {
            address account = _actor(i).account;
            (uint256 unbonding,) = vault.unbondingOf(account);
            stakes += vault.activeOf(account) + unbonding;
        }
        assertEq(token.balanceOf(address(vault)), stakes);
        assertBalanced();
        assertEq(token.balanceOf(address(faults)), faults.bondsHeld());
    }

    /// @dev All that was emitted or added as fees is claimed, claimable, or still in a pot.
    function invariant_claimedWithinBudget() public view {
        uint256 emitted = token.totalMinted() - GENESIS_ALLOCATION - refunded;
        assertEq(rewards.settled() + rewards.rollover() + rewards.pendingFees(), emitted + fees);
        assertEq(claimed + unclaimed(), rewards.settled());
    }

    function invariant_supplyChangesOnlyByScheduleOrBurn() public view {
        assertEq(slashed, bounties + slashBurned);
        assertEq(token.totalSupply(), token.totalMinted() - slashBurned - otherBurned);
        uint256 open = 0;
        uint64 next = rewards.nextEpoch();
        for (uint64 epoch = next; epoch <= epochs.currentEpoch() + 1; ++epoch) {
            open += rewards.choresOf(epoch);
        }
        assertLe(token.totalMinted() - GENESIS_ALLOCATION, 1000 ether * uint256(next - 1) + open);
        assertLe(token.totalMinted() + rewards.refundsOwed(), CAP);
    }

    function invariant_liableStakeNeverLeavesEarly() public view {
        assertEq(leftEarly, 0);
        for (uint256 i = 0; i < 6; ++i) {
            address account = _actor(i).account;
            Role role = registry.roleOf(account);
            if (role == Role.Miner) assertGe(vault.activeOf(account), 10 ether);
            if (role == Role.Validator) assertGe(vault.activeOf(account), 50 ether);
        }
    }
}
