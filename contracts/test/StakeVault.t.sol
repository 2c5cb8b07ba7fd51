// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Genesis, Role} from "../src/interfaces/IRun.sol";
import {IStakeVault} from "../src/interfaces/IStakeVault.sol";
import {StakeTrace} from "../src/libraries/StakeTrace.sol";
import {StakeVault} from "../src/StakeVault.sol";
import {RunTest} from "./base/RunTest.sol";

contract StakeVaultTest is RunTest {
    address internal alice = makeAddr("alice");
    address internal hunter = makeAddr("hunter");

    function setUp() public override {
        super.setUp();
        fund(alice, 1000 ether);
    }

    function _deposit(uint256 amount) private {
        vm.prank(alice);
        vault.deposit(amount);
    }

    function _unbond(uint256 amount) private {
        vm.prank(alice);
        vault.requestUnbond(amount);
    }

    function test_constructor_revertsIfUnbondingIsShorterThanFraudWindowAndGame() public {
        Genesis memory g = genesis();
        // Four epochs, and a game of 2 * 40 + 64 * 5 + 10 + 10 blocks of two seconds.
        g.params.unbondingS = 1639;
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.UnbondingTooShort.selector, 1639, 1640));
        new StakeVault(g);
        g.params.unbondingS = 1640;
        assertEq(new StakeVault(g).epochsKnown(), 10);
    }

    function test_deposit_succeedsAndCountsFromTheNextSnapshot() public {
        goToEpoch(3);
        vm.expectEmit(address(vault));
        emit IStakeVault.Deposited(alice, 5 ether, 5 ether);
        _deposit(5 ether);
        _deposit(2 ether);
        assertEq(vault.activeOf(alice), 7 ether);
        assertEq(vault.stakeAt(alice, 3), 0);
        assertEq(vault.stakeAt(alice, 4), 7 ether);
        goToEpoch(6);
        _deposit(1 ether);
        assertEq(vault.stakeAt(alice, 3), 0);
        assertEq(vault.stakeAt(alice, 5), 7 ether);
        assertEq(vault.stakeAt(alice, 6), 7 ether);
        assertEq(vault.stakeAt(alice, 7), 8 ether);
    }

    function test_deposit_revertsIfZero() public {
        vm.expectRevert(IStakeVault.ZeroAmount.selector);
        _deposit(0);
    }

    function _permit(uint256 key, address owner, uint256 amount) private view returns (uint8 v, bytes32 r, bytes32 s) {
        bytes32 typehash =
            keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 structHash =
            keccak256(abi.encode(typehash, owner, address(vault), amount, token.nonces(owner), type(uint256).max));
        return vm.sign(key, keccak256(abi.encodePacked("\x19\x01", token.DOMAIN_SEPARATOR(), structHash)));
    }

    function test_depositWithPermit_succeeds() public {
        (address bob, uint256 key) = makeAddrAndKey("bob");
        require(token.transfer(bob, 5 ether));
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, bob, 5 ether);
        vm.prank(bob);
        vault.depositWithPermit(5 ether, type(uint256).max, v, r, s);
        assertEq(vault.activeOf(bob), 5 ether);
    }

    /// @dev Seen elsewhere: a front-run permit reverts stake-with-permit.
    function test_depositWithPermit_succeedsIfThePermitWasFrontRun() public {
        (address bob, uint256 key) = makeAddrAndKey("bob");
        require(token.transfer(bob, 5 ether));
        (uint8 v, bytes32 r, bytes32 s) = _permit(key, bob, 5 ether);
        token.permit(bob, address(vault), 5 ether, type(uint256).max, v, r, s);
        vm.prank(bob);
        vault.depositWithPermit(5 ether, type(uint256).max, v, r, s);
        assertEq(vault.activeOf(bob), 5 ether);
    }

    function test_requestUnbond_succeedsMergingIntoOneBucketWithTheLaterUnlock() public {
        _deposit(10 ether);
        goToEpoch(1);
        _unbond(3 ether);
        (uint256 amount, uint64 unlock) = vault.unbondingOf(alice);
        assertEq(amount, 3 ether);
        assertEq(unlock, block.timestamp + 1640);
        goToEpoch(2);
        _unbond(4 ether);
        (amount, unlock) = vault.unbondingOf(alice);
        assertEq(amount, 7 ether);
        assertEq(unlock, block.timestamp + 1640);
        assertEq(vault.activeOf(alice), 3 ether);
        assertEq(vault.stakeAt(alice, 1), 10 ether);
        assertEq(vault.stakeAt(alice, 2), 7 ether);
        assertEq(vault.stakeAt(alice, 3), 3 ether);
    }

    function test_requestUnbond_revertsIfMoreThanActive() public {
        _deposit(10 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.InsufficientActive.selector, alice, 10 ether, 10 ether + 1));
        _unbond(10 ether + 1);
    }

    function test_requestUnbond_revertsIfZero() public {
        vm.expectRevert(IStakeVault.ZeroAmount.selector);
        _unbond(0);
    }

    function test_requestUnbond_succeedsGivingUpTheSlotBelowTheMinimum() public {
        Actor memory m = join("miner", Role.Miner, 20 ether);
        goToEpoch(2);
        vm.prank(m.account);
        vault.requestUnbond(10 ether);
        assertEq(uint8(registry.roleOf(m.account)), uint8(Role.Miner));
        vm.prank(m.account);
        vault.requestUnbond(1);
        assertEq(uint8(registry.roleOf(m.account)), uint8(Role.None));
        assertEq(registry.slotAccount(Role.Miner, 0, 2), m.account);
        assertEq(registry.slotAccount(Role.Miner, 0, 3), address(0));
    }

    function test_withdraw_revertsAtTheUnlockTimeAndSucceedsAfterIt() public {
        _deposit(10 ether);
        _unbond(4 ether);
        (, uint64 unlock) = vault.unbondingOf(alice);
        goTo(unlock);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.StillLocked.selector, alice, unlock, unlock));
        vault.withdraw();
        goTo(unlock + 1);
        vm.prank(alice);
        assertEq(vault.withdraw(), 4 ether);
        assertEq(token.balanceOf(alice), 994 ether);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NothingUnbonding.selector, alice));
        vault.withdraw();
    }

    /// @dev Nothing else than the settlement keeps it: the unlock time passed long ago.
    function test_withdraw_revertsUntilTheEpochOfTheExitIsSettled() public {
        _deposit(10 ether);
        goToEpoch(2);
        _unbond(4 ether);
        (, uint64 unlock) = vault.unbondingOf(alice);
        goTo(unlock + 1);
        rewards.voidEpoch(1);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotSettled.selector, alice, 2, 2));
        vault.withdraw();
        rewards.voidEpoch(2);
        vm.prank(alice);
        assertEq(vault.withdraw(), 4 ether);
    }

    function test_withdraw_revertsWhileAGameIsOpen() public {
        _deposit(10 ether);
        _unbond(4 ether);
        (, uint64 unlock) = vault.unbondingOf(alice);
        goTo(unlock + 1);
        vm.startPrank(address(disputes));
        vm.expectEmit(address(vault));
        emit IStakeVault.Locked(alice, 1);
        vault.lock(alice);
        vault.lock(alice);
        vault.unlock(alice);
        vm.stopPrank();
        assertEq(vault.locksOf(alice), 1);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.GamesOpen.selector, alice, 1));
        vault.withdraw();
        vm.prank(address(disputes));
        vault.unlock(alice);
        vm.prank(alice);
        assertEq(vault.withdraw(), 4 ether);
    }

    function test_lock_revertsIfNotDisputes() public {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.OnlyDisputes.selector, address(this)));
        vault.lock(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.OnlyDisputes.selector, address(this)));
        vault.unlock(alice);
        vm.prank(address(disputes));
        vault.unlock(alice);
        assertEq(vault.locksOf(alice), 0);
    }

    /// @dev Epochs are counted as the epoch manager counts them.
    function testFuzz_deposit_countsFromTheEpochAfterTheManagersOwn(uint32 ahead) public {
        vm.warp(block.timestamp + ahead % 100_000);
        _deposit(1 ether);
        uint64 epoch = epochs.currentEpoch();
        assertEq(vault.stakeAt(alice, epoch), 0);
        assertEq(vault.stakeAt(alice, epoch + 1), 1 ether);
    }

    /// @dev With a change in each epoch the vault still knows as many as it promises.
    function test_stakeAt_succeedsForAllEpochsKnownAndRevertsForForgottenOnes() public {
        for (uint64 epoch = 1; epoch <= 40; ++epoch) {
            goToEpoch(epoch);
            _deposit(1 ether);
        }
        for (uint64 epoch = 40 - uint64(vault.epochsKnown()); epoch <= 41; ++epoch) {
            assertEq(vault.stakeAt(alice, epoch), uint256(epoch - 1) * 1 ether);
        }
        vm.expectPartialRevert(StakeTrace.EpochForgotten.selector);
        vault.stakeAt(alice, 20);
    }

    function test_slash_revertsIfNotJudge() public {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.OnlyJudge.selector, address(this)));
        vault.slash(alice, 1, address(0), 0);
    }

    function test_slash_succeedsTakingActiveFirst() public {
        _deposit(10 ether);
        _unbond(4 ether);
        uint256 supply = token.totalSupply();
        vm.expectEmit(address(vault));
        emit IStakeVault.Slashed(alice, address(verdicts), 7 ether, hunter, 2 ether);
        vm.prank(address(verdicts));
        assertEq(vault.slash(alice, 7 ether, hunter, 2 ether), 7 ether);
        assertEq(vault.activeOf(alice), 0);
        (uint256 unbonding,) = vault.unbondingOf(alice);
        assertEq(unbonding, 3 ether);
        assertEq(token.balanceOf(hunter), 2 ether);
        assertEq(supply - token.totalSupply(), 5 ether);
    }

    /// @dev Seen elsewhere: a slash of an exact amount reverts because the offender withdrew a wei first.
    function test_slash_succeedsIfTheOffenderLeftFirst() public {
        _deposit(10 ether);
        _unbond(10 ether);
        vm.prank(address(scores));
        assertEq(vault.slash(alice, 11 ether, address(0), 0), 10 ether);
        vm.prank(address(scores));
        assertEq(vault.slash(alice, 11 ether, hunter, 5 ether), 0);
    }

    function test_slash_succeedsGivingUpTheSlotBelowTheMinimum() public {
        Actor memory v = join("validator", Role.Validator, 50 ether);
        goToEpoch(1);
        vm.prank(address(scores));
        vault.slash(v.account, 1, address(0), 0);
        assertEq(registry.slotAccount(Role.Validator, 0, 1), v.account);
        assertEq(registry.slotAccount(Role.Validator, 0, 2), address(0));
    }

    function testFuzz_slash_neverRevertsAndSplitsExactly(
        uint128 active,
        uint128 unbonding,
        uint256 amount,
        uint256 bounty,
        bool named
    ) public {
        uint256 total = bound(active, 1, 1000 ether);
        uint256 out = bound(unbonding, 0, total);
        _deposit(total);
        if (out != 0) _unbond(out);
        uint256 supply = token.totalSupply();
        vm.prank(address(verdicts));
        uint256 taken = vault.slash(alice, amount, named ? hunter : address(0), bounty);
        assertEq(taken, amount < total ? amount : total);
        assertEq(token.balanceOf(hunter) + supply - token.totalSupply(), taken);
        (uint256 left,) = vault.unbondingOf(alice);
        assertEq(token.balanceOf(address(vault)), vault.activeOf(alice) + left);
        assertEq(vault.activeOf(alice) + left, total - taken);
    }
}
