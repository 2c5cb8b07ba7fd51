// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISynToken} from "../src/interfaces/ISynToken.sol";
import {SynToken} from "../src/SynToken.sol";
import {RunTest} from "./base/RunTest.sol";

contract SynTokenTest is RunTest {
    function test_constructor_succeedsMintingTheGenesisAllocation() public view {
        assertEq(token.totalSupply(), GENESIS_ALLOCATION);
        assertEq(token.balanceOf(address(this)), GENESIS_ALLOCATION);
        assertEq(token.minter(), address(rewards));
    }

    function test_constructor_revertsIfAllocationExceedsCap() public {
        vm.expectRevert(abi.encodeWithSelector(ISynToken.CapExceeded.selector, 11, 10));
        new SynToken(address(rewards), 10, 11);
    }

    function test_mint_revertsIfNotMinter() public {
        vm.expectRevert(abi.encodeWithSelector(ISynToken.OnlyMinter.selector, address(this)));
        token.mint(address(this), 1);
    }

    function test_mint_succeedsUpToTheCap() public {
        vm.startPrank(address(rewards));
        token.mint(address(1), CAP - GENESIS_ALLOCATION);
        assertEq(token.mintable(), 0);
        vm.expectRevert(abi.encodeWithSelector(ISynToken.CapExceeded.selector, 1, 0));
        token.mint(address(1), 1);
    }

    function testFuzz_burn_makesNoRoomUnderTheCap(uint256 amount) public {
        amount = bound(amount, 0, GENESIS_ALLOCATION);
        token.burn(amount);
        assertEq(token.totalSupply(), GENESIS_ALLOCATION - amount);
        assertEq(token.mintable(), CAP - GENESIS_ALLOCATION);
    }

    function test_burnFrom_succeedsWithAllowance() public {
        token.approve(address(1), 5);
        vm.prank(address(1));
        token.burnFrom(address(this), 5);
        assertEq(token.totalSupply(), GENESIS_ALLOCATION - 5);
    }

    /// @dev So that any sum of amounts fits into 96 bits, beside an address.
    function test_constructor_revertsIfTheCapNeedsMoreThan96Bits() public {
        vm.expectRevert();
        new SynToken(address(1), 2 ** 96, 0);
        assertEq(new SynToken(address(1), 2 ** 96 - 1, 0).cap(), 2 ** 96 - 1);
    }
}
