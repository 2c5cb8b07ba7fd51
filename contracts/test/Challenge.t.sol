// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../src/interfaces/IChallengeBook.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Genesis} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {FaultsTest} from "./base/FaultsTest.sol";

contract ChallengeTest is FaultsTest {
    Submission internal a;
    Submission internal b;
    bytes internal sigA;
    bytes internal sigB;
    bytes32 internal evidenceHash;
    bytes32 internal commitment;

    function setUp() public override {
        super.setUp();
        a = submission();
        b = submission();
        b.payloadRoot = keccak256("other payload");
        sigA = signed(a);
        sigB = signed(b);
        evidenceHash = keccak256(abi.encode(a, sigA, b, sigB));
        commitment = keccak256(abi.encode(hunter, evidenceHash, SALT));
    }

    function _commit() private {
        vm.prank(hunter);
        faults.commitChallenge(commitment);
    }

    function _prove(address sender) private {
        (Submission memory x, Submission memory y) = (a, b);
        vm.prank(sender);
        faults.proveEquivocation(SALT, x, sigA, y, sigB);
    }

    function test_commitChallenge_succeedsTakingTheBond() public {
        vm.expectEmit(address(faults));
        emit IChallengeBook.ChallengeCommitted(hunter, commitment, uint64(block.number) + 20, 2 ether);
        _commit();
        assertEq(faults.challengeBond(), 2 ether);
        assertEq(faults.bondsHeld(), 2 ether);
        assertEq(faults.freeBond(hunter), 0);
        assertEq(token.balanceOf(hunter), 98 ether);
        assertEq(faults.challengeBlock(hunter, commitment), block.number);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.AlreadyChallenged.selector, hunter, commitment));
        _commit();
    }

    function test_commitChallenge_succeedsWithTheBondOfTheLastOne() public {
        _commit();
        nextBlock();
        _prove(hunter);
        assertEq(faults.freeBond(hunter), 2 ether);
        _commit();
        assertEq(faults.freeBond(hunter), 0);
        assertEq(faults.bondsHeld(), 2 ether);
        assertEq(token.balanceOf(hunter), 98 ether);
    }

    function test_commitChallenge_succeedsTakingOnlyWhatIsMissing() public {
        _commit();
        nextBlock();
        _prove(hunter);
        vm.prank(hunter);
        faults.withdrawBond(0.5 ether);
        _commit();
        assertEq(token.balanceOf(hunter), 98 ether);
        assertEq(faults.bondsHeld(), 2 ether);
    }

    function test_withdrawBond_succeedsPayingTheFreeBalance() public {
        _commit();
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.InsufficientBond.selector, hunter, 0, 1));
        vm.prank(hunter);
        faults.withdrawBond(1);
        nextBlock();
        _prove(hunter);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.InsufficientBond.selector, hunter, 2 ether, 2 ether + 1));
        vm.prank(hunter);
        faults.withdrawBond(2 ether + 1);
        vm.expectEmit(address(faults));
        emit IChallengeBook.BondWithdrawn(hunter, 2 ether);
        vm.prank(hunter);
        faults.withdrawBond(2 ether);
        assertEq(token.balanceOf(hunter), 100 ether);
        assertEq(faults.bondsHeld(), 0);
        assertEq(token.balanceOf(address(faults)), 0);
    }

    function test_proveEquivocation_revertsIfNotCommitted() public {
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotChallenged.selector, hunter, commitment));
        _prove(hunter);
    }

    function test_proveEquivocation_revertsInTheBlockOfTheCommit() public {
        _commit();
        vm.expectRevert(
            abi.encodeWithSelector(IChallengeBook.RevealTooEarly.selector, uint64(block.number), uint64(block.number))
        );
        _prove(hunter);
        nextBlock();
        _prove(hunter);
    }

    function test_proveEquivocation_succeedsInTheLastBlockAndRevertsAfterIt() public {
        _commit();
        uint64 last = uint64(block.number) + 20;
        vm.roll(last + 1);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.RevealTooLate.selector, last, last + 1));
        _prove(hunter);
        vm.roll(last);
        _prove(hunter);
    }

    function test_proveEquivocation_revertsIfRevealedTwice() public {
        _commit();
        nextBlock();
        _prove(hunter);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotChallenged.selector, hunter, commitment));
        _prove(hunter);
    }

    /// @dev The book asks the clock that a pause stops, not the block.
    function test_commitChallenge_countsTheRunsBlocks() public {
        _commit();
        uint64 committed = faults.challengeBlock(hunter, commitment);
        assertEq(committed, epochs.runningBlock());
        vm.prank(governor);
        epochs.pause();
        vm.roll(block.number + 100);
        vm.expectRevert(IEpochManager.Paused.selector);
        _prove(hunter);
        vm.expectRevert(IEpochManager.Paused.selector);
        faults.expireChallenge(hunter, commitment);
        vm.prank(governor);
        epochs.resume();
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.RevealTooEarly.selector, committed, committed));
        _prove(hunter);
        vm.roll(block.number + 20);
        _prove(hunter);
    }

    /// @dev The first place is used again, the others are not: each challenge is found where it is, and only there.
    function testFuzz_challengeBlock_followsEveryChallenge(uint256 seed) public {
        uint256[6] memory committed;
        uint256 open = 0;
        uint256 free = 0;
        fund(hunter, 100 ether);
        for (uint256 step = 0; step < 40; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 which = seed % 6;
            bytes32 hash = keccak256(abi.encode(which));
            if (committed[which] == 0) {
                vm.prank(hunter);
                faults.commitChallenge(hash);
                committed[which] = block.number;
                ++open;
                if (free != 0) --free;
            } else {
                vm.prank(hunter);
                vm.expectRevert(abi.encodeWithSelector(IChallengeBook.AlreadyChallenged.selector, hunter, hash));
                faults.commitChallenge(hash);
                vm.roll(block.number + 21);
                faults.expireChallenge(hunter, hash);
                committed[which] = 0;
                --open;
            }
            if (seed >> 200 & 3 == 0) {
                _commit();
                nextBlock();
                if (free == 0) ++free;
                _prove(hunter);
            }
            for (uint256 i = 0; i < 6; ++i) {
                assertEq(faults.challengeBlock(hunter, keccak256(abi.encode(i))), committed[i]);
            }
            assertEq(faults.freeBond(hunter), free * 2 ether);
            assertEq(faults.bondsHeld(), (open + free) * 2 ether);
            assertEq(token.balanceOf(address(faults)), faults.bondsHeld());
        }
    }

    function test_expireChallenge_succeedsAfterTheLastBlock() public {
        _commit();
        uint64 last = uint64(block.number) + 20;
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotExpired.selector, last, last));
        faults.expireChallenge(hunter, commitment);
        vm.roll(last + 1);
        uint256 supply = token.totalSupply();
        vm.expectEmit(address(faults));
        emit IChallengeBook.ChallengeExpired(hunter, commitment, 2 ether);
        faults.expireChallenge(hunter, commitment);
        assertEq(supply - token.totalSupply(), 2 ether);
        assertEq(faults.bondsHeld(), 0);
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.NotChallenged.selector, hunter, commitment));
        faults.expireChallenge(hunter, commitment);
    }

    function test_constructor_revertsIfTheBondIsTooLarge() public {
        Genesis memory g = genesis();
        g.params.challengeBond = uint128(1) << 80;
        bytes memory code = abi.encodePacked(vm.getCode("ObjectiveFaults.sol:ObjectiveFaults"), abi.encode(g));
        vm.expectRevert(
            abi.encodeWithSelector(IChallengeBook.BondTooLarge.selector, uint256(1) << 80, type(uint80).max)
        );
        assembly {
            pop(create(0, add(code, 0x20), mload(code)))
        }
    }

    function test_commitChallenge_revertsIfTooManyAreOpen() public {
        _commit();
        // The hunter's word: tag, block, others, free, from the low bits up.
        bytes32 place = keccak256(abi.encode(hunter, uint256(0)));
        uint256 word = uint256(vm.load(address(faults), place));
        vm.store(address(faults), place, bytes32(word | uint256(type(uint16).max - 1) << 144));
        vm.startPrank(hunter);
        faults.commitChallenge("the last");
        vm.expectRevert(abi.encodeWithSelector(IChallengeBook.TooManyChallenges.selector, hunter));
        faults.commitChallenge("one too many");
    }
}
