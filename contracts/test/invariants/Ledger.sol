// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Params, Role} from "../../src/interfaces/IRun.sol";
import {SettlementTest} from "../base/SettlementTest.sol";

/// @notice What the actions of an invariant test share: who acts, time with pauses, what was burned, and what went wrong.
/// @dev A handler's revert is dropped by forge, and so would a failed `require` or `assert` be: what must not happen is
/// noted in storage instead, and the invariants look there.
abstract contract Ledger is SettlementTest {
    /// The first thing that must not happen and did; empty if nothing.
    string internal violation;

    address[2] internal hunters = [makeAddr("hunter 0"), makeAddr("hunter 1")];
    address internal anyone = makeAddr("anyone");

    /// Taken from stakes, and where it went.
    uint256 internal slashed;
    uint256 internal slashPaid;
    uint256 internal slashBurned;
    /// Bonds that burned.
    uint256 internal otherBurned;

    function setUp() public virtual override {
        super.setUp();
        fund(address(this), 1000 ether);
        fund(hunters[0], 1000 ether);
        fund(hunters[1], 1000 ether);
        for (uint256 i = 0; i < 6; ++i) {
            fund(actorAt(i).account, 1000 ether);
        }
    }

    function must(bool holds, string memory what) internal {
        if (!holds && bytes(violation).length == 0) violation = what;
    }

    function actorAt(uint256 i) internal view returns (Actor memory) {
        i %= 6;
        return i < 3 ? miners[i] : validators[i - 3];
    }

    /// @dev All stake of an account, which answers for its faults.
    function stakeOf(address account) internal view returns (uint256) {
        (uint256 unbonding,) = vault.unbondingOf(account);
        return vault.activeOf(account) + unbonding;
    }

    /// @dev To a time of the run's clock, unless it is past or the clock stands still.
    function toTime(uint64 time) internal {
        uint64 now_ = epochs.time();
        if (!epochs.paused() && time > now_) goTo(uint64(block.timestamp) + time - now_);
    }

    function drawIt(uint64 round, uint8 purpose) internal {
        toTime(epochs.beaconOpensAfter(round, purpose) + 1);
        epochs.fixBeacon(round, purpose);
        vm.roll(block.number + 3);
        epochs.recordBeacon(round, purpose);
    }

    function params() internal view virtual override returns (Params memory p) {
        p = super.params();
        p.pauseEveryS = 600;
    }

    function slotHolder(Role role, uint32 slot, uint64 epoch) internal view returns (address) {
        return registry.slotAccount(role, slot, epoch);
    }
}
