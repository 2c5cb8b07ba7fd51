// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISynToken} from "./interfaces/ISynToken.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit, IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title SynToken
contract SynToken is ISynToken, ERC20Permit, ERC20Burnable {
    /// @inheritdoc ISynToken
    address public immutable minter;
    /// @inheritdoc ISynToken
    uint256 public immutable cap;
    /// @inheritdoc ISynToken
    uint256 public totalMinted;

    /// @param minter_ The rewards distributor.
    /// @param cap_ Most that is ever minted; below 2^96, so that any sum of amounts fits beside an address in a word.
    /// @param genesisAllocation Minted to the deployer.
    constructor(address minter_, uint256 cap_, uint256 genesisAllocation)
        ERC20("Syntience", "SYN")
        ERC20Permit("Syntience")
    {
        // Without a minter there is no emission, which a run may want.
        // slither-disable-next-line missing-zero-check
        minter = minter_;
        cap = SafeCast.toUint96(cap_);
        _mintCapped(msg.sender, genesisAllocation);
    }

    /// @inheritdoc ISynToken
    function mint(address to, uint256 amount) external {
        if (msg.sender != minter) revert OnlyMinter(msg.sender);
        _mintCapped(to, amount);
    }

    /// @inheritdoc ISynToken
    function burn(uint256 amount) public override(ERC20Burnable, ISynToken) {
        super.burn(amount);
    }

    /// @inheritdoc ISynToken
    function burnFrom(address account, uint256 amount) public override(ERC20Burnable, ISynToken) {
        super.burnFrom(account, amount);
    }

    /// @inheritdoc ISynToken
    function mintable() public view returns (uint256) {
        return cap - totalMinted;
    }

    /// @inheritdoc IERC20Permit
    function nonces(address owner) public view override(ERC20Permit, IERC20Permit) returns (uint256) {
        return super.nonces(owner);
    }

    function _mintCapped(address to, uint256 amount) private {
        uint256 left = mintable();
        if (amount > left) revert CapExceeded(amount, left);
        totalMinted += amount;
        _mint(to, amount);
    }
}
