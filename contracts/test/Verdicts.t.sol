// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../src/interfaces/IRun.sol";
import {Fault, IVerdicts} from "../src/interfaces/IVerdicts.sol";
import {BountyWord} from "../src/libraries/BountyWord.sol";
import {RunTest} from "./base/RunTest.sol";

contract VerdictsTest is RunTest {
    uint64 internal constant ROUND = 1;
    Actor internal miner;
    address internal early = makeAddr("early");
    address internal late = makeAddr("late");
    uint64 internal start;

    function setUp() public override {
        super.setUp();
        miner = join("miner", Role.Miner, STAKE);
        goTo(GENESIS_TIME);
        vm.roll(5000);
        start = 5000;
    }

    function _convict(Fault kind, address hunter, uint64 committedBlock) private {
        bool isGame = kind >= Fault.NativeComputation;
        vm.prank(isGame ? address(disputes) : address(faults));
        verdicts.convict(kind, miner.account, ROUND, hunter, committedBlock);
        uint256 held = _verdict().bounty + verdicts.creditOf(early) + verdicts.creditOf(late);
        assertEq(token.balanceOf(address(verdicts)), held);
        assertEq(verdicts.bountiesHeld(), held);
    }

    function _verdict() private view returns (IVerdicts.Verdict memory) {
        return verdicts.verdictOf(miner.account, ROUND);
    }

    function _stakeLeft() private view returns (uint256) {
        (uint256 unbonding,) = vault.unbondingOf(miner.account);
        return vault.activeOf(miner.account) + unbonding;
    }

    function _pay() private returns (uint256) {
        return verdicts.payBounty(miner.account, ROUND);
    }

    // ---------------------------------------------------------------- one verdict

    function test_convict_succeedsForEveryFault() public {
        uint16[8] memory bps = [2000, 2000, 5000, 5000, 5000, 2000, 10_000, 10_000];
        uint256[8] memory bounties =
            [uint256(1 ether), 1 ether, 20 ether, 20 ether, 20 ether, 1 ether, 40 ether, 40 ether];
        for (uint8 kind = 1; kind <= 8; ++kind) {
            uint256 snapshot = vm.snapshotState();
            uint256 taken = STAKE * bps[kind - 1] / 10_000;
            uint256 supply = token.totalSupply();
            vm.expectEmit(address(verdicts));
            emit IVerdicts.Convicted(ROUND, miner.account, early, Fault(kind), taken, bounties[kind - 1]);
            _convict(Fault(kind), early, start - 3);
            assertEq(_stakeLeft(), STAKE - taken);
            assertEq(supply - token.totalSupply(), taken - bounties[kind - 1]);
            IVerdicts.Verdict memory v = _verdict();
            assertEq(uint8(v.kind), kind);
            assertEq(v.takenBps, bps[kind - 1]);
            assertEq(v.hunter, early);
            assertEq(v.bounty, bounties[kind - 1]);
            assertEq(v.committedBlock, start - 3);
            assertEq(v.payableAfter, start + 17);
            (uint32 count,) = registry.faultsOf(miner.account);
            assertEq(count, 1);
            vm.revertToState(snapshot);
        }
    }

    function test_convict_revertsIfNotAJudge() public {
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.OnlyJudge.selector, address(this)));
        verdicts.convict(Fault.Computation, miner.account, ROUND, early, start);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.OnlyJudge.selector, address(requests)));
        vm.prank(address(requests));
        verdicts.convict(Fault.Computation, miner.account, ROUND, early, start);
    }

    function test_convict_succeedsIfAllStakeIsUnbondingOrGone() public {
        vm.prank(miner.account);
        vault.requestUnbond(STAKE);
        _convict(Fault.WrongData, early, start);
        assertEq(_stakeLeft(), 50 ether);
        address nobody = makeAddr("nobody");
        vm.prank(address(faults));
        verdicts.convict(Fault.WrongData, nobody, ROUND, early, start);
        assertEq(verdicts.verdictOf(nobody, ROUND).hunter, address(0));
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.NoBounty.selector, nobody, ROUND));
        verdicts.payBounty(nobody, ROUND);
    }

    function test_convict_excludesForEverAtTheThirdRound() public {
        for (uint64 round = 1; round <= 3; ++round) {
            vm.startPrank(address(faults));
            verdicts.convict(Fault.Equivocation, miner.account, round, early, start);
            // Further faults of the same round are not further faults.
            verdicts.convict(Fault.WrongData, miner.account, round, early, start);
            verdicts.convict(Fault.BadEncoding, miner.account, round, early, start);
            vm.stopPrank();
            (uint32 count, uint64 until) = registry.faultsOf(miner.account);
            assertEq(count, round);
            assertEq(until, round == 3 ? type(uint64).max : 5);
        }
    }

    // ---------------------------------------------------------------- several verdicts of a round

    function test_convict_takesTheDifferenceForAGraverFault() public {
        _convict(Fault.Equivocation, early, start);
        assertEq(_stakeLeft(), 80 ether);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.BountyCredited(ROUND, miner.account, early, 1 ether);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Convicted(ROUND, miner.account, late, Fault.WrongData, 30 ether, 12 ether);
        _convict(Fault.WrongData, late, start + 1);
        assertEq(_stakeLeft(), 50 ether);
        _convict(Fault.Computation, late, start + 2);
        assertEq(_stakeLeft(), 0);
        assertEq(verdicts.creditOf(early), 1 ether);
        assertEq(verdicts.creditOf(late), 12 ether);
        assertEq(_verdict().bounty, 20 ether);
        assertEq(verdicts.bountiesHeld(), 33 ether);
    }

    function test_convict_doesNothingForALighterOrEqualFault() public {
        _convict(Fault.WrongData, early, start);
        _convict(Fault.Equivocation, late, start - 1);
        _convict(Fault.BadEncoding, late, start - 1);
        _convict(Fault.NativeComputation, late, start - 1);
        assertEq(_stakeLeft(), 50 ether);
        assertEq(_verdict().hunter, early);
        assertEq(verdicts.bountiesHeld(), 20 ether);
    }

    function test_convict_movesTheBountyToTheEarlierCommit() public {
        _convict(Fault.WrongData, late, start);
        _convict(Fault.WrongData, early, start);
        assertEq(_verdict().hunter, late);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.BountyMoved(ROUND, miner.account, early);
        _convict(Fault.WrongData, early, start - 1);
        assertEq(_verdict().hunter, early);
        assertEq(_verdict().payableAfter, start + 19);
        assertEq(verdicts.bountiesHeld(), 20 ether);
        assertEq(_stakeLeft(), 50 ether);
    }

    /// @dev Rounded down each time: never more than the gravest fraction, less than a unit a verdict below it.
    function testFuzz_convict_takesTheGravestFraction(uint96 amount, uint8[6] memory kinds, bool unbonds) public {
        amount = uint96(bound(amount, 1, 299_000 ether));
        miner = join("another", Role.Miner, uint256(amount) < 10 ether ? 10 ether : amount);
        uint256 staked = _stakeLeft();
        if (unbonds) {
            vm.prank(miner.account);
            vault.requestUnbond(staked / 3);
        }
        uint256 gravest = 0;
        for (uint256 i = 0; i < 6; ++i) {
            Fault kind = Fault(1 + kinds[i] % 8);
            (uint256 bps,) = verdicts.penaltyOf(kind);
            if (bps > gravest) gravest = bps;
            _convict(kind, i % 2 == 0 ? early : late, start + uint64(i));
            assertEq(_verdict().takenBps, gravest);
        }
        uint256 taken = staked - _stakeLeft();
        assertLe(taken, staked * gravest / 10_000);
        assertGe(taken + 2, staked * gravest / 10_000);
        if (gravest == 10_000) assertEq(taken, staked);
    }

    // ---------------------------------------------------------------- bounties

    function test_payBounty_succeedsOnceNoEarlierCommitCanWin() public {
        _convict(Fault.WrongData, early, start);
        vm.roll(start + 20);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.TooEarly.selector, start + 20, start + 20));
        _pay();
        vm.roll(start + 21);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.BountyPaid(ROUND, miner.account, early, 20 ether);
        assertEq(_pay(), 20 ether);
        assertEq(token.balanceOf(early), 20 ether);
        assertEq(verdicts.bountiesHeld(), 0);
        assertEq(uint8(_verdict().kind), uint8(Fault.WrongData));
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.NoBounty.selector, miner.account, ROUND));
        _pay();
        // What was paid neither moves nor is paid again.
        _convict(Fault.WrongData, late, start - 1);
        assertEq(_verdict().hunter, address(0));
        _convict(Fault.Computation, late, start + 21);
        assertEq(verdicts.creditOf(early), 0);
        assertEq(_verdict().bounty, 20 ether);
    }

    /// @dev A challenge of a block earlier is revealed in block start + 19 at the latest, and its game is over 420 blocks
    /// after that.
    function test_payBounty_waitsForEarlierGames() public {
        assertEq(disputes.longestGameBlocks(), 420);
        _openGame();
        _convict(Fault.Computation, late, start);
        assertEq(_verdict().payableAfter, start + 440);
        vm.roll(start + 440);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.TooEarly.selector, start + 440, start + 440));
        _pay();
        // An earlier game is won in its last block.
        _convict(Fault.Computation, early, start - 1);
        assertEq(_verdict().payableAfter, start + 439);
        _pay();
        assertEq(token.balanceOf(early), 40 ether);
    }

    function test_payBounty_succeedsOnceNoGameIsOpen() public {
        _openGame();
        _convict(Fault.Computation, early, start);
        vm.roll(start + 21);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.TooEarly.selector, start + 21, start + 440));
        _pay();
        vm.prank(address(disputes));
        vault.unlock(miner.account);
        assertEq(_verdict().payableAfter, start + 20);
        _pay();
        assertEq(token.balanceOf(early), 40 ether);
    }

    /// @dev As a game's opening does.
    function _openGame() private {
        vm.prank(address(disputes));
        vault.lock(miner.account);
    }

    function test_payBounty_waitsForTheLongestGameWhereAKindTakesOne() public {
        _openGame();
        for (uint8 kind = uint8(Fault.Equivocation); kind <= uint8(Fault.StateRoot); ++kind) {
            uint256 snapshot = vm.snapshotState();
            _convict(Fault(kind), early, start);
            assertEq(_verdict().payableAfter, start + (kind >= uint8(Fault.NativeComputation) ? 440 : 20));
            vm.revertToState(snapshot);
        }
    }

    /// @dev What comes after the end of the game's own window can't hold a bounty up.
    function test_payBounty_doesNotWaitForALaterGame() public {
        _openGame();
        _convict(Fault.Computation, early, start);
        _convict(Fault.Computation, late, start + 1);
        assertEq(_verdict().payableAfter, start + 440);
        assertEq(_verdict().hunter, early);
    }

    function test_withdrawCredit_succeedsOnce() public {
        _convict(Fault.Equivocation, early, start);
        _convict(Fault.WrongData, late, start);
        vm.startPrank(early);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.CreditWithdrawn(early, 1 ether);
        assertEq(verdicts.withdrawCredit(), 1 ether);
        assertEq(token.balanceOf(early), 1 ether);
        assertEq(verdicts.bountiesHeld(), 12 ether);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.NoCredit.selector, early));
        verdicts.withdrawCredit();
    }

    /// @dev Whatever the order of the reveals, the earliest commit of the gravest kind gets its bounty, and each kind's
    /// bounty goes to a commit of that kind.
    function testFuzz_payBounty_goesToTheEarliestCommit(uint256 seed, uint8 count) public {
        count = uint8(bound(count, 1, 8));
        address[] memory hunters = new address[](count);
        uint64[] memory blocks = new uint64[](count);
        for (uint64 i = 0; i < count; ++i) {
            hunters[i] = address(uint160(0xbeef00 + i));
            blocks[i] = start + i;
        }
        for (uint256 i = count; i > 0; --i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 j = seed % i;
            _convict(Fault.WrongData, hunters[j], blocks[j]);
            (hunters[j], blocks[j]) = (hunters[i - 1], blocks[i - 1]);
            if (seed >> 200 & 3 == 0) _convict(Fault.Equivocation, late, start - 1);
        }
        vm.roll(start + 21);
        _pay();
        assertEq(token.balanceOf(address(uint160(0xbeef00))), 20 ether);
        assertEq(verdicts.bountiesHeld(), 0);
        assertEq(_stakeLeft(), 50 ether);
    }

    // ---------------------------------------------------------------- fines

    function test_fine_succeedsWithoutSuspension() public {
        uint256 supply = token.totalSupply();
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Fined(miner.account, address(requests), 5 ether, early, 2 ether);
        vm.prank(address(requests));
        assertEq(verdicts.fine(miner.account, 5 ether, early, 2 ether), 5 ether);
        assertEq(token.balanceOf(early), 2 ether);
        assertEq(supply - token.totalSupply(), 3 ether);
        (uint32 count,) = registry.faultsOf(miner.account);
        assertEq(count, 0);
        vm.prank(address(committee));
        assertEq(verdicts.fine(miner.account, 500 ether, address(0), 1), 95 ether);
    }

    function test_fine_revertsIfNotAJudge() public {
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.OnlyJudge.selector, address(faults)));
        vm.prank(address(faults));
        verdicts.fine(miner.account, 1, address(0), 0);
    }

    // ---------------------------------------------------------------- the word

    function testFuzz_pack_keepsEverythingButLowBits(
        uint8 kind,
        address hunter,
        uint64 committed,
        uint256 bounty,
        uint8 shift
    ) public pure {
        kind = kind % 9;
        committed = committed % (1 << 36);
        bounty >>= shift;
        uint256 word = BountyWord.pack(Fault(kind), hunter, committed, bounty);
        uint256 kept = BountyWord.bountyOf(word);
        assertEq(uint8(BountyWord.kindOf(word)), kind);
        assertEq(BountyWord.hunterOf(word), bounty == 0 ? address(0) : hunter);
        assertEq(BountyWord.committedBlockOf(word), bounty == 0 ? 0 : committed);
        // What a word keeps of a bounty, it keeps again.
        assertEq(BountyWord.pack(Fault(kind), hunter, committed, kept), word);
        if (bounty > type(uint112).max) bounty = type(uint112).max;
        assertLe(kept, bounty);
        assertLe(bounty - kept, bounty >> 49);
        if (bounty < 1 << 50) assertEq(kept, bounty);
    }
}
