// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRewardsDistributor} from "../../src/interfaces/IRewardsDistributor.sol";
import {Role} from "../../src/interfaces/IRun.sol";
import {CellNode, Leaf, Node, Opening, Sibling, WeightsOpening} from "../../src/interfaces/ISettlement.sol";
import {SettlementTree} from "../../src/libraries/SettlementTree.sol";
import {RunTest} from "./RunTest.sol";

/// @notice Three miners and three validators, their weights, and a slow but obvious reference of the settlement.
abstract contract SettlementTest is RunTest {
    bytes32 internal constant SALT = keccak256("salt");
    uint32 internal constant V = 4096;

    Actor[3] internal miners;
    Actor[3] internal validators;
    address internal poster = makeAddr("poster");
    address internal challenger = makeAddr("challenger");

    /// Big-endian weights by epoch and validator slot; empty: not revealed.
    mapping(uint64 epoch => mapping(uint32 slot => bytes)) internal given;
    uint32 internal lastAttempt = 1;
    /// Leaves of the last settlement built for an epoch.
    mapping(uint64 epoch => Leaf[]) internal built;

    function setUp() public virtual override {
        super.setUp();
        miners[0] = join("m0", Role.Miner, STAKE);
        miners[1] = join("m1", Role.Miner, STAKE);
        miners[2] = join("m2", Role.Miner, STAKE);
        validators[0] = join("v0", Role.Validator, 100 ether);
        validators[1] = join("v1", Role.Validator, 60 ether);
        validators[2] = join("v2", Role.Validator, 80 ether);
        fund(poster, 5000 ether);
        fund(challenger, 1000 ether);
        goToEpoch(1);
    }

    // ---------------------------------------------------------------- an epoch's weights

    function weightsOf(uint16 a, uint16 b, uint16 c) internal pure returns (bytes memory) {
        return abi.encodePacked(a, b, c);
    }

    /// @dev Medians by stake (100, 60, 80): 300, 0 and 40.
    function giveUsual(uint64 epoch) internal {
        given[epoch][0] = weightsOf(300, 0, 10);
        given[epoch][1] = weightsOf(500, 7, 40);
        given[epoch][2] = weightsOf(200, 0, 90);
    }

    /// @dev Commits and reveals what `given` holds; ends after the reveal deadline.
    function playWeights(uint64 epoch) internal {
        goTo(epochs.epochEnd(epoch) + 1);
        for (uint32 slot = 0; slot < 3; ++slot) {
            bytes memory weights = given[epoch][slot];
            if (weights.length == 0) continue;
            bytes32 root = scores.weightsRootOf(weights);
            bytes32 run = epochs.run();
            vm.prank(validators[slot].operator);
            scores.commitWeights(epoch, keccak256(abi.encode(run, validators[slot].account, epoch, root, SALT)));
        }
        goTo(epochs.weightCommitDeadline(epoch) + 1);
        for (uint32 slot = 0; slot < 3; ++slot) {
            bytes memory weights = given[epoch][slot];
            if (weights.length == 0) continue;
            scores.revealWeights(epoch, slot, validators[slot].account, weights, SALT);
        }
        goTo(epochs.weightRevealDeadline(epoch) + 1);
    }

    // ---------------------------------------------------------------- reference

    function weightAt(uint64 epoch, uint32 validator, uint32 miner) internal view returns (uint256) {
        bytes memory weights = given[epoch][validator];
        if (2 * miner + 1 >= weights.length) return 0;
        return uint256(uint8(weights[2 * miner])) * 256 + uint8(weights[2 * miner + 1]);
    }

    function revealed(uint64 epoch, uint32 validator) internal view returns (bool) {
        return given[epoch][validator].length != 0;
    }

    function stakeOf(uint64 epoch, uint32 validator) internal view returns (uint256) {
        return vault.stakeAt(registry.slotAccount(Role.Validator, validator, epoch), epoch);
    }

    function consensusOf(uint64 epoch, uint32 miner) internal view returns (uint256 best) {
        uint256 total = 0;
        for (uint32 v = 0; v < 3; ++v) {
            if (revealed(epoch, v)) total += stakeOf(epoch, v);
        }
        for (uint32 v = 0; v < 3; ++v) {
            uint256 candidate = weightAt(epoch, v, miner);
            uint256 support = 0;
            for (uint32 k = 0; k < 3; ++k) {
                if (revealed(epoch, k) && weightAt(epoch, k, miner) >= candidate) support += stakeOf(epoch, k);
            }
            if (revealed(epoch, v) && 2 * support > total && candidate > best) best = candidate;
        }
    }

    function cellOf(uint64 epoch, uint32 validator, uint32 miner) internal view returns (uint256) {
        uint256 own = weightAt(epoch, validator, miner);
        uint256 all = consensusOf(epoch, miner);
        return own < all ? own : all;
    }

    /// @dev Builds the honest settlement of an epoch into `built`.
    function buildHonest(uint64 epoch) internal {
        delete built[epoch];
        uint256 pot = rewards.potOf(epoch);
        uint256 share = pot * 7000 / 10_000;
        uint256 sum = 0;
        for (uint32 j = 0; j < 3; ++j) {
            if (registry.slotAccount(Role.Miner, j, epoch) == address(0)) continue;
            uint256 w = consensusOf(epoch, j);
            sum += w;
            _push(epoch, j, registry.slotAccount(Role.Miner, j, epoch), w, 0);
        }
        uint256 split = built[epoch].length;
        _pay(epoch, 0, split, share, sum);
        sum = 0;
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account == address(0)) continue;
            uint256 agreement = 0;
            for (uint32 j = 0; j < 3; ++j) {
                if (registry.slotAccount(Role.Miner, j, epoch) != address(0)) agreement += cellOf(epoch, v, j);
            }
            uint256 w = revealed(epoch, v) ? stakeOf(epoch, v) * agreement : 0;
            sum += w;
            _push(epoch, V + v, account, w, revealed(epoch, v) ? cellNode(epoch, v, 12, 0).hash : bytes32(0));
        }
        _pay(epoch, split, built[epoch].length, pot - share, sum);
    }

    function _push(uint64 epoch, uint32 index, address account, uint256 w, bytes32 cells) private {
        Leaf memory leaf;
        leaf.index = index;
        leaf.account = account;
        leaf.w = uint128(w);
        leaf.cells = cells;
        (leaf.prevEpoch, leaf.cumulative) = lastLeafBefore(epoch, account);
        built[epoch].push(leaf);
    }

    function _pay(uint64 epoch, uint256 from, uint256 to, uint256 share, uint256 sum) private {
        for (uint256 i = from; i < to; ++i) {
            Leaf storage leaf = built[epoch][i];
            leaf.amount = sum == 0 ? 0 : uint128(share * leaf.w / sum);
            leaf.cumulative += leaf.amount;
        }
    }

    /// @dev Epoch by epoch backwards, as slow and as clear as can be.
    function lastLeafBefore(uint64 epoch, address account) internal view returns (uint64, uint128) {
        for (uint64 e = epoch - 1; e > 0; --e) {
            if (rewards.finalRoot(e) == 0) continue;
            for (uint256 i = 0; i < built[e].length; ++i) {
                if (built[e][i].account == account) return (e, built[e][i].cumulative);
            }
        }
        return (0, 0);
    }

    function leafAt(uint64 epoch, uint32 index) internal view returns (Leaf memory leaf) {
        for (uint256 i = 0; i < built[epoch].length; ++i) {
            if (built[epoch][i].index == index) return built[epoch][i];
        }
        leaf.index = index;
    }

    /// @dev The node of the built tree at a level (0: leaves) and place, from the leaves below it.
    function node(uint64 epoch, uint256 level, uint256 place) internal view returns (Node memory found) {
        if (level == 0) return leafNode(epoch, leafAt(epoch, uint32(place)));
        bool hollow = true;
        for (uint256 i = 0; i < built[epoch].length; ++i) {
            if (built[epoch][i].index >> level == place) hollow = false;
        }
        if (hollow) {
            for (uint256 l = 0; l < level; ++l) {
                found = SettlementTree.parent(found, found);
            }
            return found;
        }
        return SettlementTree.parent(node(epoch, level - 1, 2 * place), node(epoch, level - 1, 2 * place + 1));
    }

    function leafNode(uint64 epoch, Leaf memory leaf) internal pure returns (Node memory) {
        if (leaf.account == address(0)) return Node(0, 0, 0);
        bytes32 tag = keccak256("syntience.settlement.leaf.v1");
        return Node(keccak256(abi.encode(tag, epoch, leaf)), leaf.w, leaf.amount);
    }

    function siblings(uint64 epoch, uint32 index) internal view returns (Node[13] memory found) {
        for (uint256 level = 0; level < 13; ++level) {
            found[level] = node(epoch, level, (uint256(index) >> level) ^ 1);
        }
    }

    /// @dev As a claim wants them.
    function packed(uint64 epoch, uint32 index) internal view returns (Sibling[13] memory found) {
        Node[13] memory plain = siblings(epoch, index);
        for (uint256 i = 0; i < 13; ++i) {
            found[i] = Sibling(plain[i].hash, uint256(plain[i].w) << 128 | plain[i].amount);
        }
    }

    function cellNode(uint64 epoch, uint32 validator, uint256 level, uint256 place)
        internal
        view
        returns (CellNode memory found)
    {
        if (level == 0) {
            if (registry.slotAccount(Role.Miner, uint32(place), epoch) == address(0)) return found;
            uint256 value = cellOf(epoch, validator, uint32(place));
            return CellNode(keccak256(abi.encode(keccak256("syntience.cells.leaf.v1"), place, value)), value);
        }
        if (place << level > 2) {
            for (uint256 l = 0; l < level; ++l) {
                found = _joinCells(found, found);
            }
            return found;
        }
        return _joinCells(
            cellNode(epoch, validator, level - 1, 2 * place), cellNode(epoch, validator, level - 1, 2 * place + 1)
        );
    }

    function _joinCells(CellNode memory a, CellNode memory b) private pure returns (CellNode memory) {
        bytes32 tag = keccak256("syntience.cells.node.v1");
        return CellNode(keccak256(abi.encode(tag, a.hash, a.sum, b.hash, b.sum)), a.sum + b.sum);
    }

    /// @dev The opening of a leaf of the built settlement.
    function openingOf(uint64 epoch, uint32 index, uint32 cell) internal view returns (Opening memory o) {
        o.leaf = leafAt(epoch, index);
        o.siblings = siblings(epoch, index);
        if (o.leaf.account != address(0)) {
            (uint64 prev,) = lastLeafBefore(epoch, o.leaf.account);
            if (prev != 0) {
                (Role role, uint32 slot) = registry.slotOf(o.leaf.account, prev);
                uint32 prevIndex = role == Role.Validator ? V + slot : slot;
                o.prevLeaf = leafAt(prev, prevIndex);
                Node[13] memory found = siblings(prev, prevIndex);
                o.prevSiblings = new Node[](13);
                for (uint256 i = 0; i < 13; ++i) {
                    o.prevSiblings[i] = found[i];
                }
            }
        }
        if (index >= V && index < V + 3 && revealed(epoch, index - V)) {
            if (registry.slotAccount(Role.Miner, cell, epoch) != address(0)) {
                o.cellValue = cellOf(epoch, index - V, cell);
            }
            o.cellSiblings = new CellNode[](12);
            for (uint256 level = 0; level < 12; ++level) {
                o.cellSiblings[level] = cellNode(epoch, index - V, level, (uint256(cell) >> level) ^ 1);
            }
        }
        o.weights = weightsOpenings(epoch);
    }

    function weightsOpenings(uint64 epoch) internal view returns (WeightsOpening[] memory openings) {
        uint256 count = 0;
        for (uint32 v = 0; v < 3; ++v) {
            if (revealed(epoch, v)) ++count;
        }
        openings = new WeightsOpening[](count);
        count = 0;
        for (uint32 v = 0; v < 3; ++v) {
            if (!revealed(epoch, v)) continue;
            bytes32[] memory hashes = new bytes32[](1);
            hashes[0] = keccak256(given[epoch][v]);
            openings[count++] = WeightsOpening(given[epoch][v], hashes);
        }
    }

    // ---------------------------------------------------------------- moves

    function post(uint64 epoch) internal returns (uint32 attempt) {
        return postAs(poster, node(epoch, 12, 0), node(epoch, 12, 1));
    }

    function postAs(address who, Node memory left, Node memory right) internal returns (uint32 attempt) {
        uint64 epoch = rewards.nextEpoch();
        vm.prank(who);
        return lastAttempt = rewards.postSettlement(epoch, left, right);
    }

    /// @dev The newest post for the epoch next in line.
    function newest() internal view returns (IRewardsDistributor.Post memory) {
        IRewardsDistributor.Post[] memory all = rewards.posts();
        return all[all.length - 1];
    }

    function newestStands() internal view returns (bool) {
        return newest().poster != address(0);
    }

    /// @dev Challenges the post made last.
    function challenge(uint64 epoch, uint32 index, uint32 cell) internal {
        vm.prank(challenger);
        rewards.challengeLeaf(epoch, lastAttempt, index, cell);
    }

    /// @dev Opens a leaf of the newest post as the built settlement has it.
    function open(uint64 epoch, uint32 index, uint32 cell) internal {
        Opening memory o = openingOf(epoch, index, cell);
        rewards.openLeaf(epoch, newest().attempt, index, cell, o);
    }

    function finalise(uint64 epoch) internal {
        IRewardsDistributor.Post memory last = newest();
        if (last.windowEnds >= epochs.time()) goTo(last.windowEnds + 1);
        rewards.finaliseSettlement(epoch, last.attempt);
    }

    /// @dev Weights as usual, an honest post, no challenge.
    function settle(uint64 epoch) internal {
        giveUsual(epoch);
        playWeights(epoch);
        buildHonest(epoch);
        post(epoch);
        finalise(epoch);
    }

    /// @dev What the accounts of the test claimed is all that was claimed.
    function unclaimed() internal view returns (uint256 left) {
        left = rewards.settled();
        for (uint256 i = 0; i < 3; ++i) {
            left -= rewards.claimedOf(miners[i].account) + rewards.claimedOf(validators[i].account);
        }
    }

    function assertBalanced() internal view {
        assertEq(token.balanceOf(address(rewards)), rewards.held() + unclaimed());
    }
}
