// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../../src/interfaces/IEpochManager.sol";
import {GamesHandler} from "../base/GamesHandler.sol";

/// @notice The governor, with games under way: invariant 8. Whatever it announces, withdraws or pauses writes into the epoch
/// manager alone and changes no word of what is open; terms of an epoch that began never change; and no pause outlasts
/// its bound.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract GovernanceInvariantsTest is GamesHandler {
    /// Hash of an epoch's terms, as they were when it began or was the next.
    mapping(uint64 epoch => bytes32) private _terms;
    uint64[] private _seen;

    function setUp() public override {
        super.setUp();
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = this.actOpen.selector;
        actions[1] = this.actPlay.selector;
        actions[2] = this.actPass.selector;
        actions[3] = this.actEpoch.selector;
        actions[4] = this.actPause.selector;
        actions[5] = this.actResume.selector;
        actions[6] = this.actAnnounce.selector;
        actions[7] = this.actWithdrawTerms.selector;
        actions[8] = this.actUsurp.selector;
        actions[9] = this.actPause.selector;
        actions[10] = this.actEpoch.selector;
        actions[11] = this.actNoteTerms.selector;
        // Most attempts come in a pause or without a fault to open about: a run must not end without any game.
        actions[12] = this.actOpen.selector;
        actions[13] = this.actOpen.selector;
        target(actions);
    }

    /// @dev Time alone, as the games count blocks.
    function actEpoch(uint256 seed) external logged started(seed) {
        _note();
        if (epochs.paused()) endPause();
        vm.warp(block.timestamp + 1 + roll(100));
        _note();
    }

    function actNoteTerms() external logged {
        _note();
    }

    /// @dev Nobody else is the governor.
    function actUsurp(uint8 who) external logged {
        address[4] memory others = [liar.account, hunter, address(verdicts), address(this)];
        address usurper = others[who % 4];
        expect(8, !tryAs(usurper, address(epochs), abi.encodeCall(IEpochManager.pause, ())), "a stranger paused");
        bytes memory terms = abi.encodeCall(IEpochManager.announceTerms, (epochs.termsAt(1)));
        expect(8, !tryAs(usurper, address(epochs), terms), "a stranger announced");
        expect(8, !tryAs(usurper, address(epochs), abi.encodeCall(IEpochManager.withdrawTerms, ())), "or withdrew");
        // The terms that apply can't be announced anew, not even by the governor.
        expect(8, !tryAs(governor, address(epochs), terms), "terms of the past");
    }

    function _note() private {
        uint64 epoch = epochs.currentEpoch();
        for (uint64 e = epoch; e <= epoch + 1; ++e) {
            if (_terms[e] != 0) continue;
            _terms[e] = keccak256(abi.encode(epochs.termsAt(e)));
            _seen.push(e);
        }
    }

    function invariant_8_aParameterChangeLeavesOpenDisputesByteIdentical() public view {
        assertFlawless(8);
        for (uint256 i = 0; i < _seen.length; ++i) {
            assertEq(keccak256(abi.encode(epochs.termsAt(_seen[i]))), _terms[_seen[i]], "terms of an epoch that began");
        }
        // The run's clock never goes faster than time.
        assertLe(epochs.time(), block.timestamp);
        assertLe(epochs.blockNumber(), block.number);
        assertBound();
        assertMoney();
    }

    function afterInvariant() public logged {
        assertReached("pause");
        assertReached("terms");
        assertReached("game");
        endAll();
        assertMoney();
    }
}
