// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {RewardsDistributor} from "../../src/RewardsDistributor.sol";
import {SynToken} from "../../src/SynToken.sol";
import {Genesis} from "../../src/interfaces/IRun.sol";
import {Leaf, Node, Sibling} from "../../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../../src/libraries/SettlementTree.sol";

/// @dev Everything that the distributor asks others; the test sets what it hears.
contract Others {
    uint64 public runningTime;
    uint64 public constant currentEpoch = 1;

    function setTime(uint64 time) external {
        runningTime = time;
    }

    function hasQuorum(uint64) external pure returns (bool) {
        return true;
    }
}

/// @notice Proven by Halmos for every amount: a settlement promises no more than its pot, a claim pays each unit once, and
/// verdicts together take what the gravest costs.
contract MoneySymbolic is Test {
    uint256 internal constant POT = 2 ** 70;
    address internal constant MINER = address(0xa11ce);

    Others internal others;
    SynToken internal token;
    RewardsDistributor internal rewards;

    function setUp() public {
        others = new Others();
        // Nothing is emitted: the pot of epoch 1 is fees.
        token = new SynToken(address(0), 2 ** 95, 2 ** 94);
        Genesis memory g = _genesis();
        rewards = new RewardsDistributor(g);
        token.approve(address(rewards), type(uint256).max);
        rewards.addFees(POT);
    }

    function _genesis() private view returns (Genesis memory g) {
        g.addresses.registry = address(this);
        g.addresses.vault = address(others);
        g.addresses.epochs = address(others);
        g.addresses.scores = address(others);
        g.addresses.token = address(token);
        g.params.roundsPerEpoch = 1;
        g.params.trainS = 1024;
        g.params.settlementWindowS = 10;
        g.params.settlementVoidS = 100;
        g.params.unbondingS = 8192;
        g.params.minersBps = 6000;
        g.params.settlementBond = 1000;
        g.params.bountyBps = 4000;
    }

    // ---------------------------------------------------------------- settlements

    function check_postSettlement_neverPromisesMoreThanThePot(Node calldata miners, Node calldata validators) external {
        others.setTime(1025);
        uint256 pot = rewards.potOf(1);
        (bool succeeded,) = address(rewards).call(abi.encodeCall(rewards.postSettlement, (1, miners, validators)));
        if (!succeeded) return;
        assert(uint256(miners.amount) + validators.amount <= pot);
        assert(miners.amount <= pot * 6000 / 10_000);
        assert(rewards.postOf(1, 1).amount == uint256(miners.amount) + validators.amount);
    }

    /// @dev One leaf, alone in its tree, claimed twice: it pays what it says, once.
    function check_claim_paysEachUnitOnce(uint96 amount, uint128 cumulative) external {
        Leaf memory leaf;
        (leaf.account, leaf.amount, leaf.cumulative) = (MINER, amount, cumulative);
        Node memory miners = Node(_hashOf(leaf), 0, amount);
        Node memory none;
        Sibling[13] memory siblings;
        for (uint256 level = 0; level < 12; ++level) {
            siblings[level] = Sibling(none.hash, 0);
            miners = SettlementTree.parent(miners, none);
            none = SettlementTree.parent(none, none);
        }
        siblings[12] = Sibling(none.hash, 0);
        others.setTime(1025);
        (bool posted,) = address(rewards).call(abi.encodeCall(rewards.postSettlement, (1, miners, none)));
        if (!posted) return;
        others.setTime(1036);
        rewards.finaliseSettlement(1, 1);
        rewards.setPayout(MINER, MINER);
        uint256 before = token.balanceOf(address(rewards));
        (bool first,) = address(rewards).call(abi.encodeCall(rewards.claim, (1, leaf, siblings)));
        assert(token.balanceOf(MINER) == (first ? cumulative : 0));
        assert(token.balanceOf(address(rewards)) + token.balanceOf(MINER) == before);
        assert(rewards.claimedOf(MINER) == token.balanceOf(MINER));
        (bool second,) = address(rewards).call(abi.encodeCall(rewards.claim, (1, leaf, siblings)));
        assert(!first || !second);
        assert(rewards.claimedOf(MINER) == token.balanceOf(MINER));
    }

    function check_scheduledEmission_neverGrows(uint64 epoch) external {
        vm.assume(epoch != 0 && epoch < type(uint64).max);
        Genesis memory g = _genesis();
        (g.params.emissionPerEpoch, g.params.emissionHalvingEpochs) = (2 ** 80 + 1, 4);
        RewardsDistributor emitting = new RewardsDistributor(g);
        assert(emitting.scheduledEmission(epoch + 1) <= emitting.scheduledEmission(epoch));
    }

    // ---------------------------------------------------------------- verdicts

    /// @dev The rule of Verdicts, that a graver verdict takes (new - old) / (1 - old) of what the lighter one left: never
    /// more than the gravest fraction together, and less than one unit a verdict below it. For stakes of 32 bits. Quotients are said by what they
    /// mean, because a solver can't divide; that the contract follows the rule, testFuzz_convict_… tries.
    function check_topUp_takesWhatTheGravestCosts(uint32 stake, uint32 first, uint32 second) external pure {
        // first = stake * 2000 / 10,000
        vm.assume(uint256(first) * 10_000 <= uint256(stake) * 2000);
        vm.assume(uint256(stake) * 2000 < uint256(first) * 10_000 + 10_000);
        // second = (stake - first) * 3000 / 8000
        uint256 left = uint256(stake) - first;
        vm.assume(uint256(second) * 8000 <= left * 3000);
        vm.assume(left * 3000 < uint256(second) * 8000 + 8000);
        uint256 both = uint256(first) + second;
        assert(both * 10_000 <= uint256(stake) * 5000);
        assert(uint256(stake) * 5000 < both * 10_000 + 20_000);
    }

    function _hashOf(Leaf memory leaf) private pure returns (bytes32) {
        return keccak256(abi.encode(SettlementTree.LEAF_TAG, uint64(1), leaf));
    }
}
