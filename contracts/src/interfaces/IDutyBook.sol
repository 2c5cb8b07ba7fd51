// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "./IRun.sol";

/// @title Duty book
/// @notice What the registry last said of each operator, beside the clock: one storage read tells who a caller acts for.
/// @dev Only a shortcut. An entry holds for the rounds that it names; for all others the registry is asked.
interface IDutyBook {
    /// @notice Who an operator acts for from `fromRound` on and before `untilRound`.
    struct Duty {
        address account;
        uint16 slot;
        Role role;
        uint32 fromRound;
        uint32 untilRound;
    }

    error OnlyRegistry(address caller);

    /// @notice Replaces an operator's entry. Only the registry, whenever its operator or its account's slot changes.
    function noteDuty(address operator, Duty calldata duty_) external;

    /// @notice As `IRegistry.duty`, and cheaper for what the book knows.
    /// @return account 0 if the key is not valid in that round.
    /// @return role None without slot in that epoch.
    /// @return slot The slot, 0 without one.
    function dutyOf(address operator, uint64 round, uint64 epoch)
        external
        view
        returns (address account, Role role, uint32 slot);

    /// @notice `dutyOf` in the current round, with the time and the epoch's end. Reverts during a pause.
    function dutyNow(address operator, uint64 epoch)
        external
        view
        returns (uint64 time, uint64 end, address account, Role role, uint32 slot);
}
