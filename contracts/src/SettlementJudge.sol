// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Role} from "./interfaces/IRun.sol";
import {IScoreRegistry} from "./interfaces/IScoreRegistry.sol";
import {HALF_DEPTH, Leaf, Node, Opening, WeightsOpening} from "./interfaces/ISettlement.sol";
import {ISettlementJudge} from "./interfaces/ISettlementJudge.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SettlementTree} from "./libraries/SettlementTree.sol";
import {Weights} from "./libraries/Weights.sol";

/// @title SettlementJudge
contract SettlementJudge is ISettlementJudge {
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IScoreRegistry public immutable scores;
    IRewardsDistributor public immutable rewards;

    uint256 private immutable _minersBps;

    /// @param rewards_ Whose posts it judges.
    constructor(Genesis memory g, IRewardsDistributor rewards_) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        scores = IScoreRegistry(g.addresses.scores);
        rewards = rewards_;
        _minersBps = g.params.minersBps;
    }

    /// @inheritdoc ISettlementJudge
    function isRight(uint64 epoch, uint32 attempt, uint32 index, uint32 cell, Opening calldata opening)
        external
        view
        returns (bool)
    {
        if (opening.leaf.index != index) revert IRewardsDistributor.InvalidOpening();
        (Node memory half, Node memory root) =
            SettlementTree.climb(_leafNode(epoch, opening.leaf), index, opening.siblings);
        IRewardsDistributor.Post memory post = rewards.postOf(epoch, attempt);
        if (root.hash != post.root) revert IRewardsDistributor.InvalidOpening();
        return _recompute(epoch, cell, half.w, post.pot, opening);
    }

    /// @dev A leaf that names no account must be empty: it is the zero node.
    function _leafNode(uint64 epoch, Leaf calldata leaf) private pure returns (Node memory node) {
        if (leaf.account != address(0)) return SettlementTree.leafNode(epoch, leaf);
        if (!SettlementTree.isEmpty(leaf)) revert IRewardsDistributor.InvalidOpening();
    }

    /// @dev Recomputes an opened leaf from the revealed weights and the snapshot.
    /// @param halfW Sum of the weights in the leaf's half.
    // The share of a half is a whole number of base units, as in `postSettlement`; what both leave rolls over.
    // slither-disable-next-line divide-before-multiply
    function _recompute(uint64 epoch, uint32 cell, uint256 halfW, uint256 pot, Opening calldata opening)
        private
        view
        returns (bool)
    {
        Leaf calldata leaf = opening.leaf;
        bool isMiner = leaf.index < SettlementTree.VALIDATORS;
        uint32 slot = isMiner ? leaf.index : leaf.index - SettlementTree.VALIDATORS;
        address account = registry.slotAccount(isMiner ? Role.Miner : Role.Validator, slot, epoch);
        if (leaf.account != account) return false;
        if (account == address(0)) return true;
        uint256 share = pot * _minersBps / RunLib.BPS;
        if (!isMiner) share = pot - share;
        if (leaf.amount != (halfW == 0 ? 0 : share * leaf.w / halfW)) return false;
        if (!_continues(epoch, opening)) return false;
        if (!isMiner) return _isValidatorRight(epoch, slot, cell, opening);
        (uint256 weight,) = _consensus(epoch, slot, type(uint32).max, opening);
        return leaf.w == weight && leaf.cells == 0;
    }

    /// @dev Whether the cumulative amount continues the account's last leaf of a final epoch.
    function _continues(uint64 epoch, Opening calldata opening) private view returns (bool) {
        Leaf calldata leaf = opening.leaf;
        uint64 prevEpoch = rewards.prevEpochOf(leaf.account, epoch);
        if (leaf.prevEpoch != prevEpoch) return false;
        if (prevEpoch == 0) return leaf.cumulative == leaf.amount;
        Leaf calldata prev = opening.prevLeaf;
        (Role role, uint32 slot) = registry.slotOf(leaf.account, prevEpoch);
        uint32 index = role == Role.Validator ? SettlementTree.VALIDATORS + slot : slot;
        if (prev.account != leaf.account || prev.index != index) revert IRewardsDistributor.InvalidOpening();
        bytes32 root = SettlementTree.rootHash(SettlementTree.leafNode(prevEpoch, prev), index, opening.prevSiblings);
        if (root != rewards.finalRoot(prevEpoch)) revert IRewardsDistributor.InvalidOpening();
        return leaf.cumulative == uint256(prev.cumulative) + leaf.amount;
    }

    function _isValidatorRight(uint64 epoch, uint32 slot, uint32 cell, Opening calldata opening)
        private
        view
        returns (bool)
    {
        Leaf calldata leaf = opening.leaf;
        if (scores.weightsRoot(epoch, slot) == 0) return leaf.w == 0 && leaf.cells == 0;
        if (opening.cellSiblings.length != HALF_DEPTH) revert IRewardsDistributor.InvalidOpening();
        bool exists = registry.slotAccount(Role.Miner, cell, epoch) != address(0);
        if (!exists && opening.cellValue != 0) revert IRewardsDistributor.InvalidOpening();
        (bytes32 hash, uint256 sum) = SettlementTree.climbCells(exists, cell, opening.cellValue, opening.cellSiblings);
        if (hash != leaf.cells) revert IRewardsDistributor.InvalidOpening();
        if (leaf.w != vault.stakeAt(leaf.account, epoch) * sum) return false;
        if (!exists) return true;
        (uint256 consensus, uint256 own) = _consensus(epoch, cell, slot, opening);
        return opening.cellValue == (own < consensus ? own : consensus);
    }

    /// @dev A miner's consensus weight, and the weight that one validator gave it.
    function _consensus(uint64 epoch, uint32 minerSlot, uint32 validatorSlot, Opening calldata opening)
        private
        view
        returns (uint256 consensus, uint256 own)
    {
        uint256 revealed = scores.epochScores(epoch).revealed;
        uint256[] memory given = new uint256[](opening.weights.length);
        uint256[] memory stakes = new uint256[](opening.weights.length);
        uint256 next = 0;
        for (uint32 v = 0; v < 32; ++v) {
            if ((revealed >> v) & 1 == 0) continue;
            if (next == given.length) revert IRewardsDistributor.InvalidWeights(v);
            (given[next], stakes[next]) = _openVote(epoch, v, minerSlot, opening.weights[next]);
            if (v == validatorSlot) own = given[next];
            ++next;
        }
        if (next != given.length) revert IRewardsDistributor.InvalidWeights(32);
        consensus = Weights.consensus(given, stakes);
    }

    /// @dev What a validator gave a miner, and its stake.
    function _openVote(uint64 epoch, uint32 validator, uint32 minerSlot, WeightsOpening calldata opening)
        private
        view
        returns (uint256 weight, uint256 stake)
    {
        bool valid;
        (valid, weight) = Weights.open(scores.weightsRoot(epoch, validator), opening, minerSlot);
        if (!valid) revert IRewardsDistributor.InvalidWeights(validator);
        stake = vault.stakeAt(registry.slotAccount(Role.Validator, validator, epoch), epoch);
    }
}
