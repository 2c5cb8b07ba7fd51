// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "../src/interfaces/IDataRequests.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {IVerdicts} from "../src/interfaces/IVerdicts.sol";
import {RequestsTest} from "./base/RequestsTest.sol";

/// @notice What withheld data really cost, by the verdicts and the vault, and what a pause does to a request.
contract WithheldTest is RequestsTest {
    function setUp() public override {
        super.setUp();
        vm.clearMockedCalls();
    }

    function test_resolve_takesTheSameOfEachAndPaysTheRequester() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 1);
        ask(wanted);
        rollTo(requests.requestOf(wanted).deadline + 1);
        uint256 supply = token.totalSupply();
        uint256 before = token.balanceOf(requester);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Fined(validators[0].account, address(requests), FINE, requester, BOUNTY);
        requests.resolve(wanted);
        uint256[4] memory left = [100 ether - FINE, 60 ether - FINE, 60 ether - FINE, 60 ether];
        for (uint256 i = 0; i < 4; ++i) {
            assertEq(vault.activeOf(validators[i].account), left[i]);
        }
        assertEq(token.balanceOf(requester) - before, 3 * BOUNTY);
        assertEq(supply - token.totalSupply(), 3 * (FINE - BOUNTY));
        assertEq(requests.held(), BOND);
        assertEq(token.balanceOf(address(requests)), BOND);
    }

    /// @dev The first one has nothing left but its promise: the others pay all the same.
    function test_resolve_succeedsIfAStakeIsGone() public {
        vm.prank(address(scores));
        vault.slash(validators[0].account, 1000 ether, address(0), 0);
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 1);
        ask(wanted);
        rollTo(requests.requestOf(wanted).deadline + 1);
        uint256 before = token.balanceOf(requester);
        requests.resolve(wanted);
        assertEq(vault.activeOf(validators[0].account), 0);
        assertEq(token.balanceOf(requester) - before, 2 * BOUNTY);
    }

    /// @dev Five kinds, a fine each, and no sixth.
    function test_resolve_costsAValidatorFiveFinesAtMost() public {
        for (uint256 kind = 0; kind < 5; ++kind) {
            for (uint64 index = 0; index < (kind == 0 ? 1 : 2); ++index) {
                ask(item(IDataRequests.Kind(kind), index));
            }
            rollTo(block.number + TURNS + OPEN + 9);
            for (uint64 index = 0; index < (kind == 0 ? 1 : 2); ++index) {
                requests.resolve(item(IDataRequests.Kind(kind), index));
            }
        }
        assertEq(vault.activeOf(validators[1].account), 60 ether - 5 * FINE);
    }

    /// @dev Turns and deadline stand still in a pause; what is shown meanwhile counts.
    function test_answer_countsNoBlocksOfAPause() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        (uint32 slot, uint64 lastBlock) = requests.turnOf(wanted);
        vm.prank(governor);
        epochs.pause();
        vm.roll(block.number + 1000);
        vm.warp(block.timestamp + 200);
        (uint32 still, uint64 stillLast) = requests.turnOf(wanted);
        assertEq(still, slot);
        assertEq(stillLast, lastBlock);
        vm.prank(requester);
        vm.expectRevert(IEpochManager.Paused.selector);
        requests.request(item(IDataRequests.Kind.Trace, 2), ballots());
        vm.expectRevert(IEpochManager.Paused.selector);
        requests.resolve(wanted);
        uint256 state = vm.snapshotState();
        answerAs(validators[slot].operator, wanted);
        vm.revertToState(state);
        vm.prank(governor);
        epochs.resume();
        vm.roll(block.number + lastBlock - epochs.blockNumber());
        answerAs(validators[slot].operator, wanted);
        assertEq(requests.balanceOf(validators[slot].account), 0.15 ether);
    }
}
