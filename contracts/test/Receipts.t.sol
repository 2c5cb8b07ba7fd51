// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "../src/interfaces/IRun.sol";
import {Leaf, Node, Opening, Sibling} from "../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../src/libraries/SettlementTree.sol";
import {SettlementTest} from "./base/SettlementTest.sol";

/// @notice What transactions cost by receipt, in steady state: slots in use, receivers that hold tokens, cold storage.
/// @dev Each call of the test contract is a transaction of its own, calldata and the 21,000 included.
/// forge-config: default.isolate = true
contract ReceiptsTest is SettlementTest {
    function _gas() private returns (uint256 gas) {
        gas = vm.lastCallGas().gasTotalUsed;
        emit log_uint(gas);
    }

    /// @dev An allowance that a transfer counts down, as a careful owner gives one.
    function _fund(address account) private {
        fund(account, 1000 ether);
        vm.prank(account);
        token.approve(address(vault), 900 ether);
    }

    function test_receipts_stake() public {
        address alice = makeAddr("alice");
        _fund(alice);
        vm.prank(alice);
        vault.deposit(123456789012345678);
        assertLe(_gas(), 90_000);
        uint256 most = 0;
        uint64 epoch = epochs.currentEpoch();
        for (uint256 i = 0; i < 3 * vault.epochsKnown(); ++i) {
            goToEpoch(++epoch);
            vm.prank(alice);
            vault.deposit(123456789012345678);
            uint256 gas = _gas();
            if (i > vault.epochsKnown() + 3 && gas > most) most = gas;
        }
        emit log_named_uint("stake more, steady", most);
        assertLe(most, 60_000);
    }

    function test_receipts_exit() public {
        _fund(miners[0].account);
        uint64 epoch = epochs.currentEpoch();
        for (uint256 i = 0; i < 30; ++i) {
            goToEpoch(++epoch);
            vm.prank(miners[0].account);
            vault.deposit(123456789012345678);
        }
        goToEpoch(++epoch);
        vm.prank(miners[0].account);
        vault.requestUnbond(1 ether);
        emit log_named_uint("exit, first, keeps slot", _gas());
        goToEpoch(++epoch);
        uint256 active = vault.activeOf(miners[0].account);
        vm.prank(miners[0].account);
        vault.requestUnbond(active);
        emit log_named_uint("exit, second, gives up slot", _gas());
        active = vault.activeOf(miners[1].account);
        vm.prank(miners[1].account);
        vault.requestUnbond(active);
        emit log_named_uint("exit, first of all, gives up slot", _gas());
        goToEpoch(++epoch);
        vm.prank(address(verdicts));
        vault.slash(miners[0].account, 5 ether, challenger, 1 ether);
        emit log_named_uint("slash of unbonding", _gas());
        vm.prank(address(verdicts));
        vault.slash(miners[2].account, 95 ether, challenger, 1 ether);
        emit log_named_uint("slash of active, slot lost", _gas());
    }

    function test_receipts_settlement() public {
        settle(1);
        settle(2);
        giveUsual(3);
        playWeights(3);
        buildHonest(3);
        post(3);
        assertLe(_gas(), 100_000);
        challenge(3, 0, 0);
        emit log_named_uint("challengeLeaf", _gas());
        Opening memory o = openingOf(3, 0, 0);
        rewards.openLeaf(3, 1, 0, 0, o);
        emit log_named_uint("openLeaf", _gas());
        finalise(3);
        emit log_named_uint("finalise", _gas());
        Leaf memory leaf = leafAt(2, V);
        Sibling[13] memory path = packed(2, V);
        token.transfer(leaf.account, 1);
        rewards.claim(2, leaf, path);
        emit log_named_uint("claim, first, small tree", _gas());
        leaf = leafAt(3, V);
        path = packed(3, V);
        rewards.claim(3, leaf, path);
        emit log_named_uint("claim, repeat, small tree", _gas());
    }

    /// @dev A tree without one empty leaf: 4096 miners paid for some epochs.
    function test_receipts_claimInAFullTree() public {
        address account = miners[0].account;
        token.transfer(account, 1);
        for (uint64 epoch = 1; epoch <= 2; ++epoch) {
            giveUsual(epoch);
            playWeights(epoch);
            Leaf memory leaf = Leaf(2741, account, 31_234, 161234567890123456, 0, epoch - 1, 0);
            leaf.cumulative = leaf.amount * uint128(epoch);
            Sibling[13] memory path;
            Node memory up = leafNode(epoch, leaf);
            Node memory half;
            for (uint256 level = 0; level < 13; ++level) {
                if (level == 12) half = up;
                Node memory other = Node(keccak256(abi.encode(level)), up.w + 77, up.amount - 1234567);
                path[level] = Sibling(other.hash, uint256(other.w) << 128 | other.amount);
                up = (2741 >> level) & 1 == 0 ? SettlementTree.parent(up, other) : SettlementTree.parent(other, up);
                if (level == 12) path[12] = Sibling(other.hash, uint256(1e30) << 128 | 299123456789012345678);
            }
            postAs(poster, half, Node(path[12].hash, 1e30, 299123456789012345678));
            finalise(epoch);
            rewards.claim(epoch, leaf, path);
            emit log_named_uint("claim, full tree", _gas());
        }
    }
}
