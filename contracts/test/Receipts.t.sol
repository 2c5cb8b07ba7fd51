// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Leaf, Node, Opening, Sibling} from "../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../src/libraries/SettlementTree.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

/// @notice What transactions cost by receipt, in steady state: slots in use, receivers that hold tokens, cold storage.
/// @dev Each call of the test contract is a transaction of its own, calldata and the 21,000 included.
/// forge-config: default.isolate = true
contract ReceiptsTest is SettlementTest {
    /// @dev What the last call cost, which may be `most`.
    function assertCost(string memory what, uint256 most) private {
        uint256 gas = vm.lastCallGas().gasTotalUsed;
        emit log_named_uint(what, gas);
        assertLe(gas, most, what);
    }

    function test_deposit_costsAtMost90kAtFirstAnd60kLater() public {
        address alice = makeAddr("alice");
        fund(alice, 1000 ether);
        vm.prank(alice);
        vault.deposit(123_456_789_012_345_678);
        assertCost("first stake", 90_000);
        uint64 epoch = epochs.currentEpoch();
        // A change in each epoch: the most that the ring must bear. Its first lap fills it.
        uint256 lap = vault.epochsKnown() + 4;
        for (uint256 i = 0; i < 2 * lap; ++i) {
            goToEpoch(++epoch);
            vm.prank(alice);
            vault.deposit(123_456_789_012_345_678);
            assertCost("stake more", i < lap ? 90_000 : 60_000);
        }
    }

    /// @dev Of an account whose ring is full.
    function _old(address account) private returns (uint64 epoch) {
        fund(account, 1000 ether);
        epoch = epochs.currentEpoch();
        for (uint256 i = 0; i < 30; ++i) {
            goToEpoch(++epoch);
            vm.prank(account);
            vault.deposit(123_456_789_012_345_678);
        }
    }

    function test_requestUnbond_costsAtMost90k() public {
        address account = miners[0].account;
        uint64 epoch = _old(account);
        goToEpoch(++epoch);
        vm.prank(account);
        vault.requestUnbond(1 ether);
        assertCost("first exit, keeps the slot", 90_000);
        goToEpoch(++epoch);
        uint256 active = vault.activeOf(account);
        vm.prank(account);
        vault.requestUnbond(active);
        assertCost("exit that gives up the slot", 90_000);
    }

    function test_slash_costsAtMost120k() public {
        address account = miners[0].account;
        uint64 epoch = _old(account);
        goToEpoch(++epoch);
        vm.prank(account);
        vault.requestUnbond(50 ether);
        goToEpoch(++epoch);
        vm.prank(address(verdicts));
        vault.slash(account, 96 ether, challenger, 1 ether);
        assertCost("slash that ends a slot", 120_000);
        vm.prank(address(verdicts));
        vault.slash(account, 10 ether, challenger, 1 ether);
        assertCost("slash of active and unbonding stake", 120_000);
    }

    function test_postSettlement_costsAtMost100k() public {
        settle(1);
        settle(2);
        giveUsual(3);
        playWeights(3);
        buildHonest(3);
        post(3);
        assertCost("post", 100_000);
        challenge(3, 0, 0);
        assertCost("challenge", 90_000);
        Opening memory o = openingOf(3, 0, 0);
        rewards.openLeaf(3, 1, 0, 0, o);
        assertCost("opening by three weight vectors", 200_000);
        finalise(3);
        assertCost("finalise", 180_000);
    }

    /// @dev A tree without one empty leaf, and a leaf without one empty field, as a validator's.
    function test_claim_costsAtMost65kInAFullTree() public {
        address account = miners[0].account;
        token.transfer(account, 1);
        for (uint64 epoch = 1; epoch <= 2; ++epoch) {
            giveUsual(epoch);
            playWeights(epoch);
            Leaf memory leaf = Leaf(2741, account, 31_234, 161_234_567_890_123_456, 0, epoch - 1, keccak256("cells"));
            leaf.cumulative = leaf.amount * uint128(epoch);
            Sibling[13] memory path;
            Node memory up = leafNode(epoch, leaf);
            Node memory half;
            for (uint256 level = 0; level < 13; ++level) {
                if (level == 12) half = up;
                Node memory other = Node(keccak256(abi.encode(level)), up.w + 77, up.amount - 1_234_567);
                path[level] = Sibling(other.hash, uint256(other.w) << 128 | other.amount);
                up = (2741 >> level) & 1 == 0 ? SettlementTree.parent(up, other) : SettlementTree.parent(other, up);
                if (level == 12) path[12] = Sibling(other.hash, uint256(1e30) << 128 | 299_123_456_789_012_345_678);
            }
            postAs(poster, half, Node(path[12].hash, 1e30, 299_123_456_789_012_345_678));
            finalise(epoch);
            rewards.claim(epoch, leaf, path);
            assertCost("claim", 65_000);
        }
    }
}
