// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "../src/interfaces/IRegistry.sol";
import {IRewardsDistributor} from "../src/interfaces/IRewardsDistributor.sol";
import {Role} from "../src/interfaces/IRun.sol";
import {Leaf, Node, Sibling} from "../src/interfaces/ISettlement.sol";
import {IStakeVault} from "../src/interfaces/IStakeVault.sol";
import {StakeTrace} from "../src/libraries/StakeTrace.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

/// @notice Faults that other protocols shipped, where stakes and rewards are concerned: one test per fault, named after it.
contract FaultsOfOthersTest is SettlementTest {
    address internal offender = makeAddr("offender");
    address internal hunter = makeAddr("hunter");

    function setUp() public override {
        super.setUp();
        fund(offender, 1000 ether);
    }

    function _deposit(uint256 amount) private {
        vm.prank(offender);
        vault.deposit(amount);
    }

    function _unbond(uint256 amount) private {
        vm.prank(offender);
        vault.requestUnbond(amount);
    }

    function _slash(uint256 amount) private returns (uint256) {
        vm.prank(address(verdicts));
        return vault.slash(offender, amount, hunter, amount / 3);
    }

    function _unbonding() private view returns (uint256 amount) {
        (amount,) = vault.unbondingOf(offender);
    }

    /// @dev To a time at which only what a test is about can hold back stake.
    function _outlast() private {
        (, uint64 unlock) = vault.unbondingOf(offender);
        goTo(unlock + 1);
        uint64 epoch = rewards.nextEpoch();
        while (epochs.settlementVoidAt(epoch) < block.timestamp) {
            rewards.voidEpoch(epoch++);
        }
    }

    function _withdraw() private returns (uint256) {
        vm.prank(offender);
        return vault.withdraw();
    }

    /// @dev Prime Intellect: a partly consumed unbonding queue skips a matured entry; the rest is stuck for ever. Here there is
    /// one bucket: what a slash leaves of it, all requests together, is paid out.
    function test_aPartlyConsumedUnbondingQueueSkipsNothing() public {
        _deposit(100 ether);
        for (uint64 i = 0; i < 5; ++i) {
            _unbond(10 ether);
            goToEpoch(2 + i);
        }
        _slash(50 ether + 13 ether);
        assertEq(_unbonding(), 37 ether);
        _outlast();
        assertEq(_withdraw(), 37 ether);
        assertEq(vault.activeOf(offender), 0);
        _deposit(10 ether);
        _unbond(10 ether);
        _outlast();
        assertEq(_withdraw(), 10 ether);
    }

    /// @dev The Graph: an exact-amount slash reverts because the offender withdrew a wei first.
    function test_anExactAmountSlashAfterWithdrawingAWei() public {
        _deposit(100 ether);
        _unbond(1);
        _outlast();
        _withdraw();
        assertEq(_slash(100 ether), 100 ether - 1);
        assertEq(_slash(1), 0);
    }

    /// @dev The Graph: the offender chooses parameters, or recreates its position, so that slashing reverts.
    function test_theOffenderRecreatesItsPosition() public {
        Actor memory a = actor("offender");
        _deposit(100 ether);
        register(a, Role.Miner);
        goToEpoch(2);
        _unbond(100 ether);
        _deposit(20 ether);
        vm.prank(offender);
        registry.register(Role.Miner, a.operator, "", address(vault), "");
        _unbond(15 ether);
        assertEq(_slash(type(uint256).max), 120 ether);
        assertEq(vault.activeOf(offender), 0);
        assertEq(_unbonding(), 0);
        assertEq(uint8(registry.roleOf(offender)), uint8(Role.None));
    }

    /// @dev The Graph: pausing stops slashing while exits stay open. Here the clock that a pause stops is asked by both.
    function test_pausingStopsSlashingWhileExitsStayOpen() public {
        _deposit(100 ether);
        _unbond(10 ether);
        _outlast();
        bytes memory paused = abi.encodeWithSignature("Paused()");
        vm.mockCallRevert(address(epochs), abi.encodeCall(epochs.runningTime, ()), paused);
        vm.expectRevert(paused);
        _slash(1 ether);
        vm.expectRevert(paused);
        _unbond(1 ether);
        vm.expectRevert(paused);
        _withdraw();
        vm.clearMockedCalls();
        assertEq(_slash(95 ether), 95 ether);
        assertEq(_withdraw(), 5 ether);
    }

    /// @dev The Graph: a dispute opened late; the stake unlocks before the verdict.
    function test_aDisputeOpenedLate() public {
        _deposit(100 ether);
        _unbond(100 ether);
        _outlast();
        vm.prank(address(disputes));
        vault.lock(offender);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.GamesOpen.selector, offender, 1));
        _withdraw();
        goTo(uint64(block.timestamp) + 100_000);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.GamesOpen.selector, offender, 1));
        _withdraw();
        assertEq(_slash(100 ether), 100 ether);
    }

    /// @dev The Graph: share maths; a tiny slash leaves unbonding > tokens, repeated near-total slashes inflate shares until
    /// overflow. Here there are amounts and no shares.
    function testFuzz_shareMathsOfTinyAndNearTotalSlashes(uint256 seed) public {
        uint256 stakes = 0;
        for (uint256 i = 0; i < 60; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 total = vault.activeOf(offender) + _unbonding();
            if (seed % 4 == 0) stakes += _slash(total == 0 ? 1 : total - 1);
            else if (seed % 4 == 1) stakes += _slash(1 + (seed >> 8) % 3);
            else if (seed % 4 == 2) _deposit(1 + (seed >> 8) % 1 ether);
            else if (vault.activeOf(offender) > 1) _unbond(vault.activeOf(offender) / 2);
            uint256 others = 3 * STAKE + 240 ether;
            assertEq(token.balanceOf(address(vault)), others + vault.activeOf(offender) + _unbonding());
        }
        _slash(type(uint256).max);
        assertEq(vault.activeOf(offender) + _unbonding(), 0);
        _deposit(5 ether);
        assertEq(vault.activeOf(offender), 5 ether);
    }

    /// @dev EigenLayer: an unsigned/signed cast mints slashable stake.
    function testFuzz_anUnsignedSignedCastMintsStake(uint256 amount) public {
        amount = bound(amount, 901 ether, type(uint256).max);
        _deposit(100 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.InsufficientActive.selector, offender, 100 ether, amount));
        _unbond(amount);
        assertEq(_slash(amount), 100 ether);
        assertEq(vault.activeOf(offender), 0);
        assertEq(_unbonding(), 0);
        if (amount > StakeTrace.MOST_AMOUNT) vm.expectPartialRevert(StakeTrace.AmountTooLarge.selector);
        else vm.expectRevert();
        _deposit(amount);
    }

    /// @dev OpenZeppelin, EigenLayer: an inner node accepted as a leaf. Leaves and nodes have tags, and paths one length.
    function test_anInnerNodeAsALeaf() public {
        settle(1);
        for (uint256 level = 1; level < 13; ++level) {
            Node memory inner = node(1, level, 0);
            Sibling[13] memory path;
            Sibling[13] memory real = packed(1, 0);
            for (uint256 i = 0; i + level < 13; ++i) {
                path[i] = real[i + level];
            }
            Leaf memory leaf = Leaf(0, offender, inner.w, inner.amount, inner.amount, 0, inner.hash);
            vm.expectRevert(IRewardsDistributor.InvalidOpening.selector);
            rewards.claim(1, leaf, path);
        }
    }

    /// @dev EigenLayer: an attacker registers an honest operator's key and collects its rewards.
    function test_anAttackerRegistersAnHonestOperatorsKey() public {
        _deposit(100 ether);
        Actor memory honest = actor("newcomer");
        // The newcomer's consent for itself, seen in the mempool.
        bytes memory seen = consent(honest);
        vm.prank(offender);
        vm.expectPartialRevert(IRegistry.InvalidConsent.selector);
        registry.register(Role.Miner, honest.operator, seen, offender, "");
        vm.prank(offender);
        vm.expectPartialRevert(IRegistry.OperatorTaken.selector);
        registry.register(Role.Miner, miners[0].operator, "", offender, "");
    }

    /// @dev The same kind: a stolen operator key moves no stake, no rewards and no keys.
    function test_aStolenOperatorKey() public {
        address thief = miners[0].operator;
        vm.startPrank(thief);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.NotRegistered.selector, thief));
        registry.setPayout(thief);
        vm.expectRevert(abi.encodeWithSelector(IRegistry.NotRegistered.selector, thief));
        registry.rotateOperator(thief, "");
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.InsufficientActive.selector, thief, 0, 1));
        vault.requestUnbond(1);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NothingUnbonding.selector, thief));
        vault.withdraw();
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.OnlyRegistry.selector, thief));
        rewards.setPayout(miners[0].account, thief);
        vm.stopPrank();
        settle(1);
        Leaf memory leaf = leafAt(1, 0);
        Sibling[13] memory path = packed(1, 0);
        vm.prank(thief);
        rewards.claim(1, leaf, path);
        assertEq(token.balanceOf(miners[0].account), leaf.amount);
    }

    /// @dev Rainbow bridge: the offender front-runs its own challenger and recovers its bond. Here most of it burns.
    function test_theOffenderFrontRunsItsOwnChallenger() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        uint256 before = token.balanceOf(offender);
        postAs(offender, Node(keccak256("false"), 1, 1), Node(0, 0, 0));
        vm.prank(offender);
        rewards.challengeLeaf(1, 1, 0, 0);
        goTo(uint64(block.timestamp) + 16);
        rewards.resolveTimeout(1, 1, 0, 0);
        rewards.withdrawBonds(offender);
        assertEq(before - token.balanceOf(offender), 12 ether);
    }

    /// @dev Nitro, Plasma: a last-second move, and a bond that never comes back.
    function test_aLastSecondMoveAndABondThatNeverComesBack() public {
        giveUsual(1);
        playWeights(1);
        buildHonest(1);
        built[1][1].cumulative += 1;
        post(1);
        goTo(newest().windowEnds);
        challenge(1, 0, 0);
        goTo(newest().windowEnds + 15);
        open(1, 0, 0);
        // Opened at its last second, after the window's end: there is a turn to challenge next, to its last second.
        goTo(newest().windowEnds);
        challenge(1, 1, 0);
        open(1, 1, 0);
        assertFalse(newestStands());
        rewards.releaseChallenge(1, 1, 0, 0);
        assertEq(rewards.bondsOf(challenger), 2 * 2 ether + 8 ether);
        assertBalanced();
    }

    /// @dev Cannon, opML: a repeatable payout.
    function test_aRepeatablePayout() public {
        settle(1);
        Leaf memory leaf = leafAt(1, 0);
        Sibling[13] memory path = packed(1, 0);
        rewards.claim(1, leaf, path);
        vm.expectRevert(abi.encodeWithSelector(IRewardsDistributor.NothingToClaim.selector, leaf.account));
        rewards.claim(1, leaf, path);
        assertBalanced();
    }

    /// @dev Liquity: a front-run permit reverts stake-with-permit.
    function test_aFrontRunPermit() public {
        (address owner, uint256 key) = makeAddrAndKey("owner");
        require(token.transfer(owner, 5 ether));
        bytes32 permit = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        bytes32 hash = keccak256(abi.encode(permit, owner, address(vault), 5 ether, 0, type(uint256).max));
        hash = keccak256(abi.encodePacked("\x19\x01", token.DOMAIN_SEPARATOR(), hash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, hash);
        vm.prank(offender);
        token.permit(owner, address(vault), 5 ether, type(uint256).max, v, r, s);
        vm.prank(owner);
        vault.depositWithPermit(5 ether, type(uint256).max, v, r, s);
        assertEq(vault.activeOf(owner), 5 ether);
    }
}
