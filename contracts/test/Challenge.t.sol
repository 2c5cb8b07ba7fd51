// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IObjectiveFaults} from "../src/interfaces/IObjectiveFaults.sol";
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
        emit IObjectiveFaults.ChallengeCommitted(hunter, commitment, uint64(block.number) + 20, 2 ether);
        _commit();
        assertEq(faults.bondsHeld(), 2 ether);
        assertEq(token.balanceOf(hunter), 98 ether);
        assertEq(faults.challengeBlock(hunter, commitment), block.number);
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.AlreadyChallenged.selector, hunter, commitment));
        _commit();
    }

    function test_proveEquivocation_revertsIfNotCommitted() public {
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.NotChallenged.selector, hunter, commitment));
        _prove(hunter);
    }

    function test_proveEquivocation_revertsInTheBlockOfTheCommit() public {
        _commit();
        vm.expectRevert(
            abi.encodeWithSelector(IObjectiveFaults.RevealTooEarly.selector, uint64(block.number), uint64(block.number))
        );
        _prove(hunter);
        nextBlock();
        _prove(hunter);
    }

    function test_proveEquivocation_succeedsInTheLastBlockAndRevertsAfterIt() public {
        _commit();
        uint64 last = uint64(block.number) + 20;
        vm.roll(last + 1);
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.RevealTooLate.selector, last, last + 1));
        _prove(hunter);
        vm.roll(last);
        _prove(hunter);
    }

    function test_proveEquivocation_revertsIfRevealedTwice() public {
        _commit();
        nextBlock();
        _prove(hunter);
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.NotChallenged.selector, hunter, commitment));
        _prove(hunter);
    }

    /// @dev Seen elsewhere: a copied commit, then a copied reveal; or the victim's hash registered first to block it.
    function test_commitChallenge_succeedsThoughAThiefCommittedTheSameHash() public {
        address thief = makeAddr("thief");
        fund(thief, 10 ether);
        vm.prank(thief);
        faults.commitChallenge(commitment);
        _commit();
        nextBlock();
        vm.expectRevert(
            abi.encodeWithSelector(
                IObjectiveFaults.NotChallenged.selector, thief, keccak256(abi.encode(thief, evidenceHash, SALT))
            )
        );
        _prove(thief);
        _prove(hunter);
        assertEq(token.balanceOf(hunter), 101 ether);
    }

    /// @dev The first place is used again, the others are not: each challenge is found where it is, and only there.
    function testFuzz_challengeBlock_followsEveryChallenge(uint256 seed) public {
        uint256[6] memory committed;
        uint256 open = 0;
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
            } else {
                vm.prank(hunter);
                vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.AlreadyChallenged.selector, hunter, hash));
                faults.commitChallenge(hash);
                vm.roll(block.number + 21);
                faults.expireChallenge(hunter, hash);
                committed[which] = 0;
                --open;
            }
            for (uint256 i = 0; i < 6; ++i) {
                assertEq(faults.challengeBlock(hunter, keccak256(abi.encode(i))), committed[i]);
            }
            assertEq(faults.bondsHeld(), open * 2 ether);
            assertEq(token.balanceOf(address(faults)), open * 2 ether);
        }
    }

    function test_expireChallenge_succeedsAfterTheLastBlock() public {
        _commit();
        uint64 last = uint64(block.number) + 20;
        vm.roll(last);
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.NotExpired.selector, last, last));
        faults.expireChallenge(hunter, commitment);
        vm.roll(last + 1);
        uint256 supply = token.totalSupply();
        faults.expireChallenge(hunter, commitment);
        assertEq(supply - token.totalSupply(), 2 ether);
        assertEq(faults.bondsHeld(), 0);
        vm.expectRevert(abi.encodeWithSelector(IObjectiveFaults.NotChallenged.selector, hunter, commitment));
        faults.expireChallenge(hunter, commitment);
    }

    /// @dev Seen elsewhere: the offender judges itself first and recovers its bond. Here it loses the burned share.
    function test_proveEquivocation_costsTheOffenderThatProvesItself() public {
        fund(miner.account, 2 ether);
        uint256 before = token.balanceOf(miner.account) + vault.activeOf(miner.account);
        vm.startPrank(miner.account);
        faults.commitChallenge(keccak256(abi.encode(miner.account, evidenceHash, SALT)));
        vm.stopPrank();
        nextBlock();
        _prove(miner.account);
        assertEq(before - token.balanceOf(miner.account) - vault.activeOf(miner.account), 19 ether);
    }
}
