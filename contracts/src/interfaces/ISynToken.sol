// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";

/// @title The token of Syntience
/// @notice ERC-20 with permit. At most `cap` is ever minted: the genesis allocation, then the emission schedule of the
/// rewards distributor and nothing else. Burning is for ever; it makes no room under the cap.
interface ISynToken is IERC20, IERC20Permit {
    /// @notice Only the rewards distributor mints.
    error OnlyMinter(address caller);
    /// @notice Minting would exceed the cap.
    error CapExceeded(uint256 amount, uint256 mintable);

    /// @notice Mints by the emission schedule.
    /// @param to Receiver.
    /// @param amount In base units; refused above `mintable()`.
    function mint(address to, uint256 amount) external;

    /// @notice Destroys tokens of the caller.
    function burn(uint256 amount) external;

    /// @notice Destroys tokens of `account` out of the caller's allowance.
    function burnFrom(address account, uint256 amount) external;

    /// @notice Most that is ever minted, in base units.
    function cap() external view returns (uint256);

    /// @notice All that was minted so far, burned tokens included.
    function totalMinted() external view returns (uint256);

    /// @notice What can still be minted: cap - totalMinted.
    function mintable() external view returns (uint256);

    /// @notice The rewards distributor.
    function minter() external view returns (address);
}
