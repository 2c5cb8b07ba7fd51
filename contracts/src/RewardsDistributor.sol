// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {IScoreRegistry} from "./interfaces/IScoreRegistry.sol";
import {HALF_DEPTH, Leaf, Node, Opening, WeightsOpening} from "./interfaces/ISettlement.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SettlementTree} from "./libraries/SettlementTree.sol";
import {Weights} from "./libraries/Weights.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title RewardsDistributor
contract RewardsDistributor is IRewardsDistributor {
    using SafeERC20 for ISynToken;
    using SafeCast for uint256;

    /// @dev The standing post in four words. Its bond follows from its attempt.
    struct Standing {
        uint64 epoch;
        uint32 attempt;
        address poster;
        uint64 postedAt;
        uint64 windowEnds;
        uint32 openChallenges;
        bytes32 root;
        uint128 amount;
        uint128 pot;
    }

    /// @dev What changes an epoch's pot.
    struct Charges {
        uint128 chores;
        uint128 fees;
    }

    uint32 private constant MOST_DOUBLINGS = 16;

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    IScoreRegistry public immutable scores;

    uint64 private immutable _turnS;
    uint64 private immutable _windowS;
    uint64 private immutable _voidS;
    uint256 private immutable _bountyBps;
    uint256 private immutable _challengeBond;
    uint256 private immutable _settlementBond;
    uint256 private immutable _emissionPerEpoch;
    uint256 private immutable _minersBps;
    uint256 private immutable _choreTariff;
    uint256 private immutable _choreCapPerEpoch;

    Standing private _post;
    /// @inheritdoc IRewardsDistributor
    uint64 public nextEpoch = 1;
    uint64 private _lastFinal;
    /// Emission of the standing post, kept back from chore refunds.
    uint128 private _reserved;
    // Amounts that one transaction changes or reads together share a word.
    uint128 private _bondsHeld;
    uint128 private _unclaimed;
    uint128 private _rollover;
    uint128 private _refundsOwed;
    /// @inheritdoc IRewardsDistributor
    uint256 public pendingFees;
    mapping(bytes32 key => Challenge) private _challenges;
    /// @inheritdoc IRewardsDistributor
    mapping(uint64 epoch => bytes32) public finalRoot;
    /// The last final epoch before a void one.
    mapping(uint64 epoch => uint64) private _finalBefore;
    /// @inheritdoc IRewardsDistributor
    mapping(address account => uint256) public claimedOf;
    /// @inheritdoc IRewardsDistributor
    mapping(address account => uint256) public refundsOf;
    /// @inheritdoc IRewardsDistributor
    mapping(address account => uint256) public bondsOf;
    mapping(uint64 epoch => Charges) private _charges;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        scores = IScoreRegistry(g.addresses.scores);
        Params memory p = g.params;
        if (p.choreCapPerEpoch > p.emissionPerEpoch) revert InvalidParams("choreCapPerEpoch");
        if (p.minersBps > RunLib.BPS || p.bountyBps > RunLib.BPS) revert InvalidParams("basis points");
        _turnS = p.settlementTurnS;
        _windowS = p.settlementWindowS;
        _voidS = p.settlementVoidS;
        _bountyBps = p.bountyBps;
        _challengeBond = p.challengeBond;
        _settlementBond = p.settlementBond;
        _emissionPerEpoch = p.emissionPerEpoch;
        _minersBps = p.minersBps;
        _choreTariff = p.choreTariff;
        _choreCapPerEpoch = p.choreCapPerEpoch;
    }

    /// @inheritdoc IRewardsDistributor
    function postSettlement(uint64 epoch, Node calldata miners, Node calldata validators) external {
        _requireNext(epoch);
        if (_post.poster != address(0)) revert PostStands(epoch, _post.poster);
        uint64 t = epochs.time();
        uint64 opensAfter = epochs.weightRevealDeadline(epoch);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        uint64 voidAt = opensAfter + _voidS;
        if (t > voidAt) revert TooLate(t, voidAt);
        if (!scores.hasQuorum(epoch)) revert NoQuorum(epoch);
        uint256 emission = _emissionOf(epoch);
        uint256 pot = emission + _rollover + _charges[epoch].fees;
        uint256 share = pot * _minersBps / RunLib.BPS;
        if (miners.amount > share) revert OverBudget(miners.amount, share);
        if (validators.amount > pot - share) revert OverBudget(validators.amount, pot - share);

        uint256 bond = requiredBond(epoch);
        uint32 attempt = _post.attempt + 1;
        uint64 windowEnds = t + _windowS;
        _post = Standing({
            epoch: epoch,
            attempt: attempt,
            poster: msg.sender,
            postedAt: t,
            windowEnds: windowEnds,
            openChallenges: 0,
            root: SettlementTree.parent(miners, validators).hash,
            amount: miners.amount + validators.amount,
            pot: pot.toUint128()
        });
        _reserved = emission.toUint128();
        _bondsHeld += bond.toUint128();
        emit SettlementPosted(epoch, attempt, msg.sender, miners, validators, pot, bond, windowEnds);
        token.safeTransferFrom(msg.sender, address(this), bond);
    }

    /// @inheritdoc IRewardsDistributor
    function challengeLeaf(uint64 epoch, uint32 index, uint32 cell) external {
        Standing storage post = _requirePost(epoch);
        uint64 t = epochs.time();
        if (t > post.windowEnds) revert TooLate(t, post.windowEnds);
        if (index >= SettlementTree.LEAVES || cell >= SettlementTree.VALIDATORS) revert InvalidIndex(index, cell);
        if (index < SettlementTree.VALIDATORS && cell != 0) revert InvalidIndex(index, cell);
        Challenge storage challenge = _challenges[_key(epoch, post.attempt, index, cell)];
        if (challenge.challenger != address(0)) revert AlreadyChallenged(epoch, index, cell);
        uint64 deadline = t + _turnS;
        challenge.challenger = msg.sender;
        challenge.deadline = deadline;
        challenge.open = true;
        ++post.openChallenges;
        _bondsHeld += _challengeBond.toUint128();
        emit LeafChallenged(epoch, post.attempt, index, cell, msg.sender, deadline);
        token.safeTransferFrom(msg.sender, address(this), _challengeBond);
    }

    /// @inheritdoc IRewardsDistributor
    function openLeaf(uint64 epoch, uint32 index, uint32 cell, Opening calldata opening) external {
        Standing storage post = _requirePost(epoch);
        Challenge storage challenge = _challenges[_key(epoch, post.attempt, index, cell)];
        if (!challenge.open) revert NotChallenged(epoch, index, cell);
        uint64 t = epochs.time();
        if (t > challenge.deadline) revert TooLate(t, challenge.deadline);
        if (opening.leaf.index != index) revert InvalidOpening();
        (Node memory half, Node memory root) =
            SettlementTree.climb(_leafNode(epoch, opening.leaf), index, opening.siblings);
        if (root.hash != post.root) revert InvalidOpening();

        challenge.open = false;
        if (!_isRight(epoch, cell, half.w, post.pot, opening)) {
            _strike(index, challenge.challenger);
            return;
        }
        --post.openChallenges;
        // Time for the next challenge along the siblings just shown, but not without end.
        uint64 latest = post.postedAt + 2 * _windowS;
        uint64 extended = t + _turnS < latest ? t + _turnS : latest;
        if (extended > post.windowEnds) post.windowEnds = extended;
        emit LeafOpened(epoch, post.attempt, index, cell, post.windowEnds);
        _release(post.poster, _challengeBond);
    }

    /// @inheritdoc IRewardsDistributor
    function resolveTimeout(uint64 epoch, uint32 index, uint32 cell) external {
        Standing storage post = _requirePost(epoch);
        Challenge storage challenge = _challenges[_key(epoch, post.attempt, index, cell)];
        if (!challenge.open) revert NotChallenged(epoch, index, cell);
        uint64 t = epochs.time();
        if (t <= challenge.deadline) revert TooEarly(t, challenge.deadline);
        challenge.open = false;
        _strike(index, challenge.challenger);
    }

    /// @inheritdoc IRewardsDistributor
    function releaseChallenge(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external {
        Challenge storage challenge = _challenges[_key(epoch, attempt, index, cell)];
        if (!challenge.open) revert NotChallenged(epoch, index, cell);
        if (_post.epoch == epoch && _post.attempt == attempt && _post.poster != address(0)) {
            revert PostStands(epoch, _post.poster);
        }
        challenge.open = false;
        _release(challenge.challenger, _challengeBond);
    }

    /// @inheritdoc IRewardsDistributor
    function finaliseSettlement(uint64 epoch) external {
        Standing memory post = _requirePost(epoch);
        uint64 t = epochs.time();
        if (t <= post.windowEnds) revert TooEarly(t, post.windowEnds);
        if (post.openChallenges != 0) revert ChallengesOpen(epoch, post.openChallenges);

        finalRoot[epoch] = post.root;
        _lastFinal = epoch;
        uint256 emission = _reserved;
        _closeEpoch(epoch, post.pot - post.amount);
        _unclaimed += post.amount;
        emit SettlementFinalised(epoch, post.root, post.amount, _rollover);
        _release(post.poster, _bondOf(post.attempt));
        _emit(epoch, emission);
        _credit(msg.sender);
    }

    /// @inheritdoc IRewardsDistributor
    function voidEpoch(uint64 epoch) external {
        _requireNext(epoch);
        if (_post.poster != address(0)) revert PostStands(epoch, _post.poster);
        uint64 t = epochs.time();
        uint64 voidAt = epochs.settlementVoidAt(epoch);
        if (t <= voidAt) revert TooEarly(t, voidAt);
        _finalBefore[epoch] = _lastFinal;
        uint256 emission = _emissionOf(epoch);
        _closeEpoch(epoch, emission + _rollover + _charges[epoch].fees);
        emit EpochVoided(epoch, _rollover);
        _emit(epoch, emission);
        _credit(msg.sender);
    }

    /// @inheritdoc IRewardsDistributor
    function claim(uint64 epoch, Leaf calldata leaf, Node[13] calldata siblings) external returns (uint256 amount) {
        bytes32 root = finalRoot[epoch];
        if (root == 0) revert NotFinal(epoch);
        if (leaf.account == address(0)) revert InvalidOpening();
        if (leaf.index >= SettlementTree.LEAVES) revert InvalidOpening();
        if (SettlementTree.rootHash(SettlementTree.leafNode(epoch, leaf), leaf.index, siblings) != root) {
            revert InvalidOpening();
        }
        uint256 claimed = claimedOf[leaf.account];
        if (leaf.cumulative <= claimed) revert NothingToClaim(leaf.account);
        amount = leaf.cumulative - claimed;
        claimedOf[leaf.account] = leaf.cumulative;
        _unclaimed -= amount.toUint128();
        address payout = registry.payoutOf(leaf.account);
        emit Claimed(leaf.account, epoch, payout, amount);
        token.safeTransfer(payout, amount);
    }

    /// @inheritdoc IRewardsDistributor
    function addFees(uint256 amount) external {
        if (amount == 0) revert ZeroAmount();
        uint64 epoch = _chargedEpoch();
        _charges[epoch].fees += amount.toUint128();
        pendingFees += amount;
        emit FeesAdded(epoch, msg.sender, amount);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    /// @inheritdoc IRewardsDistributor
    function credit(address account) external {
        if (msg.sender != address(epochs)) revert OnlyEpochs(msg.sender);
        _credit(account);
    }

    /// @inheritdoc IRewardsDistributor
    function withdrawRefunds(address account) external returns (uint256 amount) {
        amount = refundsOf[account];
        if (amount == 0) revert NothingToWithdraw(account);
        refundsOf[account] = 0;
        _refundsOwed -= amount.toUint128();
        emit RefundsWithdrawn(account, amount);
        token.mint(account, amount);
    }

    /// @inheritdoc IRewardsDistributor
    function withdrawBonds(address account) external returns (uint256 amount) {
        amount = bondsOf[account];
        if (amount == 0) revert NothingToWithdraw(account);
        bondsOf[account] = 0;
        _bondsHeld -= amount.toUint128();
        emit BondsWithdrawn(account, amount);
        token.safeTransfer(account, amount);
    }

    /// @inheritdoc IRewardsDistributor
    function potOf(uint64 epoch) external view returns (uint256) {
        if (epoch < nextEpoch) return 0;
        uint256 fees = _charges[epoch].fees;
        if (epoch > nextEpoch) return _emissionOf(epoch) + fees;
        return _post.poster != address(0) ? _post.pot : _emissionOf(epoch) + _rollover + fees;
    }

    /// @inheritdoc IRewardsDistributor
    function requiredBond(uint64 epoch) public view returns (uint256) {
        return _bondOf(_post.epoch == epoch ? _post.attempt + 1 : 1);
    }

    /// @inheritdoc IRewardsDistributor
    function currentPost() external view returns (Post memory) {
        Standing memory post = _post;
        return Post({
            epoch: post.epoch,
            attempt: post.attempt,
            poster: post.poster,
            postedAt: post.postedAt,
            windowEnds: post.windowEnds,
            openChallenges: post.openChallenges,
            root: post.root,
            amount: post.amount,
            pot: post.pot,
            bond: post.attempt == 0 ? 0 : uint128(_bondOf(post.attempt))
        });
    }

    /// @inheritdoc IRewardsDistributor
    function choresOf(uint64 epoch) external view returns (uint256) {
        return _charges[epoch].chores;
    }

    /// @inheritdoc IRewardsDistributor
    function feesOf(uint64 epoch) external view returns (uint256) {
        return _charges[epoch].fees;
    }

    /// @inheritdoc IRewardsDistributor
    function bondsHeld() external view returns (uint256) {
        return _bondsHeld;
    }

    /// @inheritdoc IRewardsDistributor
    function unclaimed() external view returns (uint256) {
        return _unclaimed;
    }

    /// @inheritdoc IRewardsDistributor
    function rollover() external view returns (uint256) {
        return _rollover;
    }

    /// @inheritdoc IRewardsDistributor
    function refundsOwed() external view returns (uint256) {
        return _refundsOwed;
    }

    /// @inheritdoc IRewardsDistributor
    function challengeOf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell)
        external
        view
        returns (Challenge memory)
    {
        return _challenges[_key(epoch, attempt, index, cell)];
    }

    /// @inheritdoc IRewardsDistributor
    function lastFinalAt(uint64 epoch) public view returns (uint64) {
        if (epoch >= nextEpoch) return _lastFinal;
        return finalRoot[epoch] != 0 ? epoch : _finalBefore[epoch];
    }

    /// @inheritdoc IRewardsDistributor
    /// @dev Jumps from one absence of the account to the next older one; each presence but those of void epochs ends it.
    function prevEpochOf(address account, uint64 epoch) public view returns (uint64) {
        uint64 candidate = epoch == 0 ? 0 : lastFinalAt(epoch - 1);
        while (candidate != 0) {
            (Role role,, uint64 since) = registry.slotSpan(account, candidate);
            if (role != Role.None) return candidate;
            if (since == 0) return 0;
            candidate = lastFinalAt(since - 1);
        }
        return 0;
    }

    /// @inheritdoc IRewardsDistributor
    function owed() external view returns (uint256) {
        return uint256(_bondsHeld) + _unclaimed + _rollover + pendingFees;
    }

    /// @dev The standing post falls: its bond pays the challenger's bounty, the rest burns.
    function _strike(uint32 index, address challenger) private {
        Standing storage post = _post;
        uint256 bond = _bondOf(post.attempt);
        uint256 bounty = bond * _bountyBps / RunLib.BPS;
        uint256 burned = bond - bounty;
        post.poster = address(0);
        _reserved = 0;
        _bondsHeld -= burned.toUint128();
        emit SettlementStruck(post.epoch, post.attempt, index, challenger, bounty, burned);
        _release(challenger, bounty + _challengeBond);
        token.burn(burned);
    }

    function _closeEpoch(uint64 epoch, uint256 left) private {
        _rollover = left.toUint128();
        pendingFees -= _charges[epoch].fees;
        nextEpoch = epoch + 1;
        _reserved = 0;
        // The other words stay, so that the next post writes over used storage.
        (_post.poster, _post.attempt) = (address(0), 0);
    }

    function _emit(uint64 epoch, uint256 emission) private {
        emit Emitted(epoch, emission);
        if (emission != 0) token.mint(address(this), emission);
    }

    function _release(address account, uint256 amount) private {
        bondsOf[account] += amount;
        emit BondReleased(account, amount);
    }

    function _credit(address account) private {
        uint64 epoch = _chargedEpoch();
        uint256 spent = _charges[epoch].chores + _choreTariff;
        if (_choreTariff == 0 || spent > _choreCapPerEpoch) return;
        if (_refundsOwed + _reserved + _choreTariff > token.mintable()) return;
        _charges[epoch].chores = spent.toUint128();
        refundsOf[account] += _choreTariff;
        _refundsOwed += _choreTariff.toUint128();
        emit Credited(account, epoch, _choreTariff);
    }

    /// @dev The epoch whose pot bears a chore or gets a fee.
    function _chargedEpoch() private view returns (uint64 epoch) {
        epoch = epochs.currentEpoch();
        if (epoch == 0) epoch = 1;
    }

    /// @dev What the post of an attempt, from 1 on, has at stake.
    function _bondOf(uint32 attempt) private view returns (uint256) {
        return _settlementBond << (attempt <= MOST_DOUBLINGS ? attempt - 1 : MOST_DOUBLINGS);
    }

    function _requireNext(uint64 epoch) private view {
        if (epoch != nextEpoch) revert NotNext(epoch, nextEpoch);
    }

    function _requirePost(uint64 epoch) private view returns (Standing storage post) {
        post = _post;
        if (post.epoch != epoch || post.poster == address(0)) revert NoPost(epoch);
    }

    /// @dev What is minted for an epoch besides its chore refunds: less than the schedule's once the cap is near.
    function _emissionOf(uint64 epoch) private view returns (uint256) {
        uint256 scheduled = _emissionPerEpoch - _charges[epoch].chores;
        uint256 left = token.mintable() - _refundsOwed;
        return scheduled < left ? scheduled : left;
    }

    function _key(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) private pure returns (bytes32) {
        return keccak256(abi.encode(epoch, attempt, index, cell));
    }

    /// @dev A leaf that names no account must be empty: it is the zero node.
    function _leafNode(uint64 epoch, Leaf calldata leaf) private pure returns (Node memory node) {
        if (leaf.account != address(0)) return SettlementTree.leafNode(epoch, leaf);
        if (!SettlementTree.isEmpty(leaf)) revert InvalidOpening();
    }

    /// @dev Recomputes an opened leaf from the revealed weights and the snapshot.
    /// @param halfW Sum of the weights in the leaf's half.
    function _isRight(uint64 epoch, uint32 cell, uint256 halfW, uint256 pot, Opening calldata opening)
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
        uint64 prevEpoch = prevEpochOf(leaf.account, epoch);
        if (leaf.prevEpoch != prevEpoch) return false;
        if (prevEpoch == 0) return leaf.cumulative == leaf.amount;
        Leaf calldata prev = opening.prevLeaf;
        (Role role, uint32 slot) = registry.slotOf(leaf.account, prevEpoch);
        uint32 index = role == Role.Validator ? SettlementTree.VALIDATORS + slot : slot;
        if (prev.account != leaf.account || prev.index != index) revert InvalidOpening();
        bytes32 root = SettlementTree.rootHash(SettlementTree.leafNode(prevEpoch, prev), index, opening.prevSiblings);
        if (root != finalRoot[prevEpoch]) revert InvalidOpening();
        return leaf.cumulative == uint256(prev.cumulative) + leaf.amount;
    }

    function _isValidatorRight(uint64 epoch, uint32 slot, uint32 cell, Opening calldata opening)
        private
        view
        returns (bool)
    {
        Leaf calldata leaf = opening.leaf;
        if (scores.weightsRoot(epoch, slot) == 0) return leaf.w == 0 && leaf.cells == 0;
        if (opening.cellSiblings.length != HALF_DEPTH) revert InvalidOpening();
        bool exists = registry.slotAccount(Role.Miner, cell, epoch) != address(0);
        if (!exists && opening.cellValue != 0) revert InvalidOpening();
        (bytes32 hash, uint256 sum) = SettlementTree.climbCells(exists, cell, opening.cellValue, opening.cellSiblings);
        if (hash != leaf.cells) revert InvalidOpening();
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
            if (next == given.length) revert InvalidWeights(v);
            (given[next], stakes[next]) = _openVote(epoch, v, minerSlot, opening.weights[next]);
            if (v == validatorSlot) own = given[next];
            ++next;
        }
        if (next != given.length) revert InvalidWeights(32);
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
        if (!valid) revert InvalidWeights(validator);
        stake = vault.stakeAt(registry.slotAccount(Role.Validator, validator, epoch), epoch);
    }
}
