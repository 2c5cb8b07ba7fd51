// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "../../src/interfaces/IDataRequests.sol";
import {Role} from "../../src/interfaces/IRun.sol";
import {Courts} from "./Courts.sol";

/// @notice Honest and adversarial participants in any order: the money always adds up. Invariants 1 to 5 and 10 of the
/// list in docs/testing.md; 6 to 9 are those of Games.t.sol.
/// @dev The test contract is its own handler; its `act` functions are the actions. One campaign checks them all: each
/// `invariant_` function would be a campaign of its own over the same actions.
contract BooksInvariants is Courts {
    function setUp() public override {
        super.setUp();
        bytes4[] memory actions = new bytes4[](28);
        actions[0] = this.actPass.selector;
        actions[1] = this.actPause.selector;
        actions[2] = this.actResume.selector;
        actions[3] = this.actDeposit.selector;
        actions[4] = this.actUnbond.selector;
        actions[5] = this.actWithdraw.selector;
        actions[6] = this.actLock.selector;
        actions[7] = this.actRegister.selector;
        actions[8] = this.actSlash.selector;
        actions[9] = this.actFees.selector;
        actions[10] = this.actChore.selector;
        actions[11] = this.actPenalise.selector;
        actions[12] = this.actSettle.selector;
        actions[13] = this.actClose.selector;
        actions[14] = this.actClaim.selector;
        actions[15] = this.actConvict.selector;
        actions[16] = this.actPayBounty.selector;
        actions[17] = this.actWithdrawCredit.selector;
        actions[18] = this.actAwait.selector;
        actions[19] = this.actFine.selector;
        actions[20] = this.actCommit.selector;
        actions[21] = this.actExpire.selector;
        actions[22] = this.actRound.selector;
        actions[23] = this.actEquivocate.selector;
        actions[24] = this.actRequest.selector;
        actions[25] = this.actAnswer.selector;
        actions[26] = this.actResolve.selector;
        actions[27] = this.actWithdrawBalance.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    function invariant_books() public view {
        assertEq(violation, "", "an action saw what must not happen");
        _balancesAreAccountedFor();
        _liableStakeStays();
        _claimsStayWithinBudget();
        _slashedIsPaidOrBurned();
        _supplyFollowsTheSchedule();
    }

    /// @dev 1. Each contract that holds money holds exactly what it accounts for.
    function _balancesAreAccountedFor() private view {
        uint256 stakes = 0;
        for (uint256 i = 0; i < 6; ++i) {
            stakes += stakeOf(actorAt(i).account);
        }
        assertEq(token.balanceOf(address(vault)), stakes, "vault: all active and unbonding stake");
        assertEq(token.balanceOf(address(rewards)), rewards.held() + unclaimed(), "rewards: held and unclaimed");
        assertEq(token.balanceOf(address(faults)), faults.bondsHeld(), "faults: bonds");
        assertEq(token.balanceOf(address(disputes)), disputes.bondsHeld(), "disputes: bonds");
        assertEq(token.balanceOf(address(verdicts)), verdicts.bountiesHeld(), "verdicts: bounties");
        assertEq(token.balanceOf(address(requests)), requests.held(), "requests: bonds and balances");
        assertEq(requests.held(), _owedByRequests(), "requests: to whom");
    }

    /// @dev Bonds of 2 tokens for open requests, and what everybody can withdraw.
    function _owedByRequests() private view returns (uint256 owed) {
        for (uint256 i = 0; i < items.length; ++i) {
            if (requests.requestOf(items[i]).status == IDataRequests.Status.Open) owed += 2 ether;
        }
        for (uint256 i = 0; i < 3; ++i) {
            owed += requests.balanceOf(validators[i].account);
        }
        owed += requests.balanceOf(hunters[0]) + requests.balanceOf(hunters[1]);
    }

    /// @dev 2. Whoever holds a slot has its role's least stake; what leaves is checked where it leaves (`actWithdraw`).
    function _liableStakeStays() private view {
        for (uint256 i = 0; i < 6; ++i) {
            address account = actorAt(i).account;
            Role role = registry.roleOf(account);
            if (role == Role.Miner) assertGe(vault.activeOf(account), 10 ether, "a miner below the minimum");
            if (role == Role.Validator) assertGe(vault.activeOf(account), 50 ether, "a validator below the minimum");
            assertEq(vault.locksOf(account), locks[account], "locks");
        }
    }

    /// @dev 3. All that was emitted or added as fees is settled, or still in a pot; of what is settled, what was claimed is
    /// what the accounts claimed.
    function _claimsStayWithinBudget() private view {
        uint256 emitted = token.totalMinted() - GENESIS_ALLOCATION - refunded;
        assertEq(rewards.settled() + rewards.rollover() + rewards.pendingFees(), emitted + fees, "pots");
        assertEq(claimed + unclaimed(), rewards.settled(), "claims");
    }

    /// @dev 4.
    function _slashedIsPaidOrBurned() private view {
        assertEq(slashed, slashPaid + slashBurned, "slashed = bounties + burned");
    }

    /// @dev 10.
    function _supplyFollowsTheSchedule() private view {
        assertEq(token.totalSupply(), token.totalMinted() - slashBurned - otherBurned, "supply");
        uint256 chores = 0;
        uint64 next = rewards.nextEpoch();
        for (uint64 epoch = next; epoch <= epochs.currentEpoch() + 1; ++epoch) {
            chores += rewards.choresOf(epoch);
        }
        assertLe(token.totalMinted() - GENESIS_ALLOCATION, 1000 ether * uint256(next - 1) + chores, "schedule");
        assertLe(token.totalMinted() + rewards.refundsOwed(), CAP, "cap");
    }
}
