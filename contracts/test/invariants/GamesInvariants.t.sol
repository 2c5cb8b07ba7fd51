// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Fault} from "../../src/interfaces/IVerdicts.sol";
import {GamesHandler} from "../base/GamesHandler.sol";

/// @notice Games with an arithmetic judge: invariants 1, 2, 6, 7 and 9.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract GamesInvariantsTest is GamesHandler {
    function setUp() public override {
        super.setUp();
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = this.actOpen.selector;
        actions[1] = this.actPlay.selector;
        actions[2] = this.actPlay.selector;
        actions[3] = this.actPlayOn.selector;
        actions[4] = this.actPlayOn.selector;
        actions[5] = this.actPass.selector;
        actions[6] = this.actAgain.selector;
        actions[7] = this.actFlee.selector;
        actions[8] = this.actWithdrawBond.selector;
        actions[9] = this.actBounty.selector;
        actions[10] = this.actPause.selector;
        actions[11] = this.actResume.selector;
        actions[12] = this.actAnnounce.selector;
        actions[13] = this.actWithdrawTerms.selector;
        target(actions);
    }

    /// @dev Each action is several moves.
    function invariant_6_anHonestDefenderNeverLosesAndAnHonestChallengerAlwaysWins() public view {
        assertFlawless(6);
        assertEq(vault.activeOf(honestMiner.account), STAKE);
        assertTrue(verdicts.verdictOf(honestMiner.account, ROUND).kind == Fault.None);
        (uint32 count,) = registry.faultsOf(honestMiner.account);
        assertEq(count, 0);
        assertMoney();
    }

    function invariant_7_and_9_everyDisputeEndsByItsBoundOnceAndForEver() public view {
        assertBound();
        assertFlawless(9);
        for (uint256 i = 0; i < games.length; ++i) {
            assertTrue(isOpen(games[i]));
            assertEq(endings[games[i]], 0);
        }
        assertEq(vault.locksOf(honestMiner.account) + vault.locksOf(liar.account), games.length);
        assertMoney();
    }

    function afterInvariant() public logged {
        assertReached("game");
        assertReached("game over");
        assertReached("honest challenge");
        endAll();
        assertMoney();
    }
}
