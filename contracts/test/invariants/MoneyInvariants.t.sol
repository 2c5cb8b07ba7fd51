// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../../src/interfaces/IRun.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {Fault, IVerdicts} from "../../src/interfaces/IVerdicts.sol";
import {InvariantTest} from "../base/InvariantTest.sol";

/// @notice Stakes: invariants 1, 2, 4 and 5. Accounts come and go, games lock them, and judges take whatever they please,
/// in any mix, between pauses.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract MoneyInvariantsTest is InvariantTest {
    uint256 private constant ACTORS = 5;

    Actor[5] private _actors;
    address private _hunter = makeAddr("hunter");
    uint256 private _locked;
    mapping(address account => uint256) private _locks;

    function setUp() public override {
        super.setUp();
        for (uint256 i = 0; i < ACTORS; ++i) {
            _actors[i] = join(string.concat("actor", vm.toString(i)), _roleOf(i), STAKE);
            fund(_actors[i].account, 5000 ether);
            stakers.push(_actors[i].account);
        }
        goToEpoch(1);
        openBooks();
        bytes4[] memory actions = new bytes4[](20);
        actions[0] = this.actPass.selector;
        actions[1] = this.actDeposit.selector;
        actions[2] = this.actUnbond.selector;
        actions[3] = this.actWithdraw.selector;
        actions[4] = this.actRegister.selector;
        actions[5] = this.actSlash.selector;
        actions[6] = this.actConvict.selector;
        actions[7] = this.actFine.selector;
        actions[8] = this.actLock.selector;
        actions[9] = this.actUnlock.selector;
        actions[10] = this.actPayBounty.selector;
        actions[11] = this.actOutlast.selector;
        actions[12] = this.actDonate.selector;
        actions[13] = this.actVoid.selector;
        actions[14] = this.actPause.selector;
        actions[15] = this.actResume.selector;
        actions[16] = this.actAnnounce.selector;
        actions[17] = this.actWithdrawTerms.selector;
        // Exits take long, and everything hangs on them.
        actions[18] = this.actOutlast.selector;
        actions[19] = this.actUnlock.selector;
        target(actions);
    }

    function _roleOf(uint256 i) private pure returns (Role) {
        return i < 3 ? Role.Miner : Role.Validator;
    }

    function _account(uint8 who) private view returns (address) {
        return _actors[who % ACTORS].account;
    }

    function _total(address account) private view returns (uint256 active, uint256 unbonding) {
        active = vault.activeOf(account);
        (unbonding,) = vault.unbondingOf(account);
    }

    // ---------------------------------------------------------------- what stakers do

    function actPass(uint16 seconds_) external logged {
        vm.warp(block.timestamp + 1 + seconds_ % 400);
        vm.roll(block.number + 1 + seconds_ % 200);
    }

    function actDeposit(uint8 who, uint64 amount) external logged {
        vm.prank(_account(who));
        vault.deposit(uint256(amount) * 3);
    }

    function actUnbond(uint8 who, uint256 amount, bool all) external logged {
        address account = _account(who);
        uint256 active = vault.activeOf(account);
        amount = all ? active : amount % (active + 1);
        vm.prank(account);
        vault.requestUnbond(amount);
    }

    function actWithdraw(uint8 who) external logged {
        vm.prank(_account(who));
        vault.withdraw();
    }

    /// @dev Everything that holds an exit, one after the other: the settlement, the unlock time to the second, games.
    function actOutlast(uint8 who, bool settlesFirst) external logged {
        address account = _account(who);
        if (epochs.paused()) endPause();
        (, uint64 unlock) = vault.unbondingOf(account);
        if (unlock == 0) {
            vm.prank(account);
            vault.deposit(10 ether);
            vm.prank(account);
            vault.requestUnbond(5 ether);
            readLogs();
            (, unlock) = vault.unbondingOf(account);
        }
        if (unlock > epochs.time()) goTo(unlock);
        if (settlesFirst) _settleExit(account);
        if (unlock == epochs.time()) {
            expect(2, !_withdraws(account), "at the unlock time");
            super.goTo(unlock + 1);
        }
        _settleExit(account);
        bool free = _locks[account] == 0;
        expect(2, _withdraws(account) == free, free ? "a free stake is held back" : "a held stake left");
    }

    function _settleExit(address account) private {
        while (rewards.nextEpoch() <= exitEpoch[account]) {
            expect(2, !_withdraws(account), "before the settlement");
            rewards.voidEpoch(rewards.nextEpoch());
        }
    }

    function _withdraws(address account) private returns (bool) {
        return tryAs(account, address(vault), abi.encodeCall(IStakeVault.withdraw, ()));
    }

    function actRegister(uint8 who) external logged {
        Actor memory a = _actors[who % ACTORS];
        vm.prank(a.account);
        registry.register(_roleOf(who % ACTORS), a.operator, "", address(0), "");
    }

    function actVoid() external logged {
        rewards.voidEpoch(rewards.nextEpoch());
    }

    function actDonate(uint8 to, uint64 amount) external logged {
        address account = to % 2 == 0 ? address(vault) : address(verdicts);
        require(token.transfer(account, amount));
        donated[account] += amount;
    }

    // ---------------------------------------------------------------- what judges do

    /// @dev Invariant 5: any amount, any bounty, any mix; what is taken is what there was, up to what was asked.
    function actSlash(uint8 who, uint256 amount, uint256 bounty, bool exact, bool byScores) external logged {
        address account = _account(who);
        (uint256 active, uint256 unbonding) = _total(account);
        uint256 kind = amount % 8;
        if (kind == 0) amount = active;
        else if (kind == 1) amount = active + unbonding;
        else if (kind == 2) amount = active + unbonding + 1;
        else if (kind != 3) amount %= 1 ether;
        if (exact) bounty = amount;
        readLogs();
        vm.prank(byScores ? address(scores) : address(verdicts));
        try vault.slash(account, amount, bounty % 3 == 0 ? address(0) : _hunter, bounty) returns (uint256 taken) {
            uint256 most = active + unbonding;
            expect(5, taken == (amount < most ? amount : most), "not what there was");
            (uint256 activeLeft, uint256 unbondingLeft) = _total(account);
            expect(5, activeLeft + unbondingLeft == most - taken, "stake left");
            expect(5, unbondingLeft <= unbonding, "unbonding grew");
            expect(5, activeLeft == 0 || unbondingLeft == unbonding, "unbonding before active");
        } catch {
            vm.getRecordedLogs();
            expect(5, epochs.paused(), "slash reverted");
        }
    }

    /// @dev Verdicts of all kinds, of late and early hunters.
    function actConvict(uint8 who, uint8 kind, uint8 round, uint8 early) external logged {
        address account = _account(who);
        bool isGame = kind % 8 >= 5;
        bytes memory data = abi.encodeCall(
            IVerdicts.convict, (Fault(1 + kind % 8), account, 1 + round % 2, _hunter, epochs.blockNumber() - early % 30)
        );
        bool ok = tryAs(isGame ? address(disputes) : address(faults), address(verdicts), data);
        expect(5, ok || epochs.paused(), "a verdict reverted");
    }

    function actFine(uint8 who, uint128 amount, uint128 bounty) external logged {
        bytes memory data = abi.encodeCall(IVerdicts.fine, (_account(who), amount % 20 ether, _hunter, bounty));
        expect(5, tryAs(address(requests), address(verdicts), data) || epochs.paused(), "a fine reverted");
    }

    function actPayBounty(uint8 who, uint8 round) external logged {
        verdicts.payBounty(_account(who), 1 + round % 2);
    }

    function actLock(uint8 who) external logged {
        address account = _account(who);
        // Not all of them all the time.
        if (_locks[account] > 1) revert("enough");
        expect(5, tryAs(address(disputes), address(vault), abi.encodeCall(IStakeVault.lock, (account))), "lock");
        ++_locks[account];
    }

    function actUnlock(uint8 who) external logged {
        address account = _account(who);
        if (_locks[account] == 0) revert("no game");
        expect(5, tryAs(address(disputes), address(vault), abi.encodeCall(IStakeVault.unlock, (account))), "unlock");
        --_locks[account];
    }

    // ---------------------------------------------------------------- invariants

    function invariant_1_balancesAreActiveUnbondingBondsEscrowAndUnclaimed() public view {
        assertMoney();
    }

    function invariant_2_liableStakeNeverLeavesBeforeFinality() public view {
        assertFlawless(2);
        for (uint256 i = 0; i < ACTORS; ++i) {
            address account = _actors[i].account;
            assertEq(vault.locksOf(account), _locks[account]);
            Role role = registry.roleOf(account);
            if (role == Role.Miner) assertGe(vault.activeOf(account), params().minMinerStake);
            if (role == Role.Validator) assertGe(vault.activeOf(account), params().minValidatorStake);
        }
        assertMoney();
    }

    function invariant_4_slashedIsBountyAndBurnedExactly() public view {
        assertSlashesAddUp();
        assertMoney();
    }

    function invariant_5_slashNeverRevertsAndUnbondingIsPartOfTheTotal() public view {
        assertFlawless(5);
        for (uint256 i = 0; i < ACTORS; ++i) {
            (uint256 active, uint256 unbonding) = _total(_actors[i].account);
            assertLe(unbonding, booked[_actors[i].account]);
            assertEq(active + unbonding, booked[_actors[i].account]);
        }
        assertMoney();
    }

    function afterInvariant() public view {
        assertReached("slash");
        assertReached("exit");
        assertReached("withdrawal");
        assertReached("conviction");
        assertReached("bounty");
        assertReached("pause");
        assertReached("terms");
    }
}
