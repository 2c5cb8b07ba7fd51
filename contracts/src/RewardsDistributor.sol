// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {IScoreRegistry} from "./interfaces/IScoreRegistry.sol";
import {HALF_DEPTH, Leaf, Node, Opening, SETTLEMENT_DEPTH, Sibling} from "./interfaces/ISettlement.sol";
import {ISettlementJudge} from "./interfaces/ISettlementJudge.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {SettlementJudge} from "./SettlementJudge.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SettlementTree} from "./libraries/SettlementTree.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title RewardsDistributor
contract RewardsDistributor is IRewardsDistributor {
    using SafeERC20 for ISynToken;
    using SafeCast for uint256;

    /// @dev A post in three words. The place stays in use when its post is gone, so that the next one writes over it.
    struct Place {
        /// 0 once the post fell, became final or was closed.
        address poster;
        uint40 postedAt;
        /// Its window ends so long after `postedAt`.
        uint32 openForS;
        uint24 openChallenges;
        bytes32 root;
        uint32 epoch;
        uint96 amount;
        uint96 pot;
        /// Challenges that were answered rightly: their bonds are the poster's once the post is final.
        uint32 answered;
    }

    /// @dev Amounts fit into 96 bits because the token's cap does.
    struct Books {
        /// All that is not settled: bonds, rollover and fees of epochs that are not closed.
        uint96 held;
        uint96 rollover;
        /// The epoch next in line, and the last final one.
        uint32 next;
        uint32 lastFinal;
    }

    /// @dev The epoch next in line.
    struct Line {
        /// Its emission, from the first post on: kept back from chore refunds.
        uint96 reserved;
        /// Refunds of all epochs that were noted and not minted.
        uint96 refundsOwed;
        /// Posts that stand, of `attempts`.
        uint32 standing;
        uint32 attempts;
    }

    /// @dev What changes an epoch's pot.
    struct Charges {
        uint128 chores;
        uint128 fees;
    }

    /// Most challenges that it takes to find a wrong leaf in a half, and a wrong cell in it.
    uint256 private constant MOST_STEPS = SETTLEMENT_DEPTH + HALF_DEPTH;

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IEpochManager public immutable epochs;
    IScoreRegistry public immutable scores;
    /// @inheritdoc IRewardsDistributor
    ISettlementJudge public immutable judge;

    /// The reveal deadline of epoch 0, if there were one, and the length of an epoch: neither ever changes.
    uint64 private immutable _revealsFrom;
    uint64 private immutable _epochS;
    uint64 private immutable _turnS;
    uint32 private immutable _windowS;
    /// With all that openings may add.
    uint32 private immutable _longestWindowS;
    uint64 private immutable _voidS;
    uint256 private immutable _bountyBps;
    uint256 private immutable _challengeBond;
    uint256 private immutable _settlementBond;
    uint256 private immutable _emissionPerEpoch;
    uint256 private immutable _emissionHalvingEpochs;
    uint256 private immutable _minersBps;
    uint256 private immutable _choreTariff;
    uint256 private immutable _choreCapPerEpoch;

    Books private _books;
    Line private _line;
    /// @inheritdoc IRewardsDistributor
    uint256 public pendingFees;
    /// @inheritdoc IRewardsDistributor
    uint256 public settled;
    mapping(uint32 attempt => Place) private _places;
    mapping(bytes32 key => Challenge) private _challenges;
    /// Posts that were right and had answered challenges.
    mapping(bytes32 key => bool) private _heldAgainstChallenges;
    /// @inheritdoc IRewardsDistributor
    mapping(uint64 epoch => bytes32) public finalRoot;
    /// The last final epoch before a void one.
    mapping(uint64 epoch => uint64) private _finalBefore;
    /// claimed << 160 | payout address.
    mapping(address account => uint256 word) private _accounts;
    /// @inheritdoc IRewardsDistributor
    mapping(address account => uint256) public refundsOf;
    /// @inheritdoc IRewardsDistributor
    mapping(address account => uint256) public bondsOf;
    mapping(uint64 epoch => Charges) private _charges;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        epochs = IEpochManager(g.addresses.epochs);
        scores = IScoreRegistry(g.addresses.scores);
        judge = new SettlementJudge(g, this);
        Params memory p = g.params;
        if (p.choreCapPerEpoch > p.emissionPerEpoch) revert InvalidParams("choreCapPerEpoch");
        if (p.minersBps > RunLib.BPS || p.bountyBps > RunLib.BPS) revert InvalidParams("basis points");
        _revealsFrom = p.genesisTime + p.weightCommitS + p.weightRevealS;
        _epochS = (uint64(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS) * p.roundsPerEpoch;
        _turnS = p.settlementTurnS;
        _windowS = p.settlementWindowS;
        _voidS = p.settlementVoidS;
        _bountyBps = p.bountyBps;
        _challengeBond = p.challengeBond;
        _settlementBond = p.settlementBond;
        _emissionPerEpoch = p.emissionPerEpoch;
        _emissionHalvingEpochs = p.emissionHalvingEpochs;
        _minersBps = p.minersBps;
        _choreTariff = p.choreTariff;
        _choreCapPerEpoch = p.choreCapPerEpoch;
        // Each step of a descent: a turn to open, a turn to challenge next.
        uint256 windowS = p.settlementWindowS + 2 * MOST_STEPS * p.settlementTurnS;
        uint256 longestS = uint256(p.weightCommitS) + p.weightRevealS + p.settlementVoidS + windowS + p.settlementTurnS;
        // The vault answers for the stakes of an epoch until `unbondingS` after its end.
        if (longestS > p.unbondingS) revert InvalidParams("settlement windows");
        // forge-lint: disable-next-line(unsafe-typecast)
        _longestWindowS = uint32(windowS);
        _books.next = 1;
    }

    /// @inheritdoc IRewardsDistributor
    // Calls the run's own token, which calls nobody.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function postSettlement(uint64 epoch, Node calldata miners, Node calldata validators)
        external
        returns (uint32 attempt)
    {
        Books memory books = _books;
        if (epoch != books.next) revert NotNext(epoch, books.next);
        uint64 t = epochs.runningTime();
        uint64 opensAfter = _revealDeadline(epoch);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (t > opensAfter + _voidS) revert TooLate(t, opensAfter + _voidS);
        if (!scores.hasQuorum(epoch)) revert NoQuorum(epoch);

        Line memory line = _line;
        attempt = line.attempts + 1;
        if (attempt == 1) line.reserved = _emissionOf(epoch, line).toUint96();
        uint256 pot = uint256(line.reserved) + books.rollover + _charges[epoch].fees;
        uint256 share = pot * _minersBps / RunLib.BPS;
        if (miners.amount > share) revert OverBudget(miners.amount, share);
        if (validators.amount > pot - share) revert OverBudget(validators.amount, pot - share);
        bytes32 root = SettlementTree.parent(miners, validators).hash;
        if (attempt != 1) _requireNew(epoch, line.attempts, root);
        Place storage place = _places[attempt];
        if (place.poster != address(0)) _close(place, attempt);

        (line.attempts, line.standing) = (attempt, line.standing + 1);
        _line = line;
        _books.held += _settlementBond.toUint96();
        // Neither sum is above the pot, which is minted, or to be minted, below the cap.
        // forge-lint: disable-start(unsafe-typecast)
        (place.poster, place.postedAt, place.openForS, place.openChallenges) = (msg.sender, uint40(t), _windowS, 0);
        place.root = root;
        (place.epoch, place.amount, place.pot, place.answered) =
        (books.next, uint96(miners.amount + validators.amount), uint96(pot), 0);
        // forge-lint: disable-end(unsafe-typecast)
        emit SettlementPosted(epoch, attempt, msg.sender, miners, validators, pot, _settlementBond, t + _windowS);
        // The run's own token, which reverts rather than to return false.
        assert(token.transferFrom(msg.sender, address(this), _settlementBond));
    }

    /// @inheritdoc IRewardsDistributor
    function challengeLeaf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external {
        Place storage post = _requirePost(epoch, attempt);
        uint64 t = epochs.runningTime();
        uint64 ends = _windowEnds(post);
        if (t > ends) revert TooLate(t, ends);
        if (index >= SettlementTree.LEAVES || cell >= SettlementTree.VALIDATORS) revert InvalidIndex(index, cell);
        if (index < SettlementTree.VALIDATORS && cell != 0) revert InvalidIndex(index, cell);
        Challenge storage challenge = _challenges[_key(epoch, attempt, index, cell)];
        if (challenge.challenger != address(0)) revert AlreadyChallenged(epoch, index, cell);
        (challenge.challenger, challenge.deadline, challenge.open) = (msg.sender, t + _turnS, true);
        ++post.openChallenges;
        _books.held += _challengeBond.toUint96();
        emit LeafChallenged(epoch, attempt, index, cell, msg.sender, t + _turnS);
        assert(token.transferFrom(msg.sender, address(this), _challengeBond));
    }

    /// @inheritdoc IRewardsDistributor
    function openLeaf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell, Opening calldata) external {
        Place storage post = _requirePost(epoch, attempt);
        uint64 t = epochs.runningTime();
        Challenge storage challenge = _requireOpen(epoch, attempt, index, cell);
        if (t > challenge.deadline) revert TooLate(t, challenge.deadline);
        challenge.open = false;
        if (!_isRight()) {
            _strike(post, attempt, index, challenge);
            return;
        }
        --post.openChallenges;
        ++post.answered;
        // Time for the next challenge along the siblings just shown, but not without end.
        uint256 openForS = t + _turnS - post.postedAt;
        if (openForS > _longestWindowS) openForS = _longestWindowS;
        // forge-lint: disable-next-line(unsafe-typecast)
        if (openForS > post.openForS) post.openForS = uint32(openForS);
        emit LeafOpened(epoch, attempt, index, cell, _windowEnds(post));
    }

    /// @inheritdoc IRewardsDistributor
    function resolveTimeout(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external {
        Place storage post = _requirePost(epoch, attempt);
        uint64 t = epochs.runningTime();
        Challenge storage challenge = _requireOpen(epoch, attempt, index, cell);
        if (t <= challenge.deadline) revert TooEarly(t, challenge.deadline);
        challenge.open = false;
        _strike(post, attempt, index, challenge);
    }

    /// @inheritdoc IRewardsDistributor
    function releaseChallenge(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external {
        Challenge storage challenge = _challenges[_key(epoch, attempt, index, cell)];
        if (challenge.challenger == address(0) || challenge.closed) revert NotChallenged(epoch, index, cell);
        Place storage post = _places[attempt];
        if (post.epoch == epoch && post.poster != address(0)) revert PostStands(epoch, attempt, post.poster);
        if (!challenge.open && _heldAgainstChallenges[_key(epoch, attempt, 0, 0)]) {
            revert NotChallenged(epoch, index, cell);
        }
        challenge.open = false;
        challenge.closed = true;
        _release(challenge.challenger, _challengeBond);
    }

    /// @inheritdoc IRewardsDistributor
    // Calls the run's own token, which calls nobody.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-benign,reentrancy-events
    function finaliseSettlement(uint64 epoch, uint32 attempt) external {
        Place storage post = _requirePost(epoch, attempt);
        uint64 t = epochs.runningTime();
        Books memory books = _books;
        if (epoch != books.next) revert NotNext(epoch, books.next);
        uint64 ends = _windowEnds(post);
        if (t <= ends) revert TooEarly(t, ends);
        if (post.openChallenges != 0) revert ChallengesOpen(epoch, post.openChallenges);

        uint256 amount = post.amount;
        finalRoot[epoch] = post.root;
        settled += amount;
        books.lastFinal = books.next;
        uint256 emission = _line.reserved;
        uint256 left = post.pot - amount;
        _closeEpoch(books, left);
        emit SettlementFinalised(epoch, attempt, post.root, amount, left);
        _reward(post, attempt);
        _emit(epoch, emission);
        _credit(msg.sender);
    }

    /// @inheritdoc IRewardsDistributor
    function closePost(uint64 epoch, uint32 attempt) external {
        Place storage post = _places[attempt];
        if (post.epoch != epoch || post.poster == address(0)) revert NoPost(epoch, attempt);
        if (epoch == _books.next) revert PostStands(epoch, attempt, post.poster);
        if (finalRoot[epoch] != post.root) {
            uint64 t = epochs.runningTime();
            uint64 ends = _windowEnds(post);
            if (t <= ends) revert TooEarly(t, ends);
            if (post.openChallenges != 0) revert ChallengesOpen(epoch, post.openChallenges);
        }
        _close(post, attempt);
    }

    /// @inheritdoc IRewardsDistributor
    // Calls the run's own token, which calls nobody.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-benign,reentrancy-events
    function voidEpoch(uint64 epoch) external {
        Books memory books = _books;
        if (epoch != books.next) revert NotNext(epoch, books.next);
        Line memory line = _line;
        if (line.standing != 0) revert PostsStand(epoch, line.standing);
        uint64 t = epochs.runningTime();
        uint64 voidAt = _revealDeadline(epoch) + _voidS;
        if (t <= voidAt) revert TooEarly(t, voidAt);
        _finalBefore[epoch] = books.lastFinal;
        uint256 emission = line.attempts == 0 ? _emissionOf(epoch, line) : line.reserved;
        uint256 left = emission + books.rollover + _charges[epoch].fees;
        _closeEpoch(books, left);
        emit EpochVoided(epoch, left);
        _emit(epoch, emission);
        _credit(msg.sender);
    }

    /// @inheritdoc IRewardsDistributor
    function claim(uint64 epoch, Leaf calldata leaf, Sibling[13] calldata siblings) external returns (uint256 amount) {
        bytes32 root = finalRoot[epoch];
        if (root == 0) revert NotFinal(epoch);
        address account = leaf.account;
        if (account == address(0) || leaf.index >= SettlementTree.LEAVES) revert InvalidOpening();
        if (SettlementTree.rootHash(epoch, leaf, siblings) != root) revert InvalidOpening();
        uint256 word = _accounts[account];
        uint256 claimed = word >> 160;
        uint256 cumulative = leaf.cumulative;
        if (cumulative <= claimed) revert NothingToClaim(account);
        // forge-lint: disable-next-line(unsafe-typecast)
        address payout = address(uint160(word));
        unchecked {
            amount = cumulative - claimed;
        }
        _accounts[account] = uint256(cumulative.toUint96()) << 160 | uint160(payout);
        emit Claimed(account, epoch, payout, amount);
        // The run's own token, which reverts rather than to return false.
        assert(token.transfer(payout, amount));
    }

    /// @inheritdoc IRewardsDistributor
    function setPayout(address account, address payout) external {
        if (msg.sender != address(registry)) revert OnlyRegistry(msg.sender);
        _accounts[account] = _accounts[account] >> 160 << 160 | uint160(payout);
    }

    /// @inheritdoc IRewardsDistributor
    function addFees(uint256 amount) external {
        if (amount == 0) revert ZeroAmount();
        uint64 epoch = _chargedEpoch();
        _charges[epoch].fees += amount.toUint128();
        pendingFees += amount;
        _books.held += amount.toUint96();
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
        _line.refundsOwed -= amount.toUint96();
        emit RefundsWithdrawn(account, amount);
        token.mint(account, amount);
    }

    /// @inheritdoc IRewardsDistributor
    function withdrawBonds(address account) external returns (uint256 amount) {
        amount = bondsOf[account];
        if (amount == 0) revert NothingToWithdraw(account);
        bondsOf[account] = 0;
        _books.held -= amount.toUint96();
        emit BondsWithdrawn(account, amount);
        token.safeTransfer(account, amount);
    }

    /// @inheritdoc IRewardsDistributor
    function scheduledEmission(uint64 epoch) public view returns (uint256) {
        if (_emissionHalvingEpochs == 0) return _emissionPerEpoch;
        return _emissionPerEpoch >> (epoch == 0 ? 0 : (epoch - 1) / _emissionHalvingEpochs);
    }

    /// @inheritdoc IRewardsDistributor
    function potOf(uint64 epoch) external view returns (uint256) {
        Books memory books = _books;
        if (epoch < books.next) return 0;
        Line memory line = _line;
        uint256 fees = _charges[epoch].fees;
        if (epoch > books.next) return _emissionOf(epoch, line) + fees;
        return (line.attempts == 0 ? _emissionOf(epoch, line) : line.reserved) + books.rollover + fees;
    }

    /// @inheritdoc IRewardsDistributor
    function requiredBond() external view returns (uint256) {
        return _settlementBond;
    }

    /// @inheritdoc IRewardsDistributor
    function postOf(uint64 epoch, uint32 attempt) public view returns (Post memory found) {
        Place memory place = _places[attempt];
        if (place.epoch != epoch || epoch == 0) return found;
        found = Post({
            epoch: epoch,
            attempt: attempt,
            poster: place.poster,
            postedAt: place.postedAt,
            windowEnds: uint64(place.postedAt) + place.openForS,
            openChallenges: place.openChallenges,
            root: place.root,
            amount: place.amount,
            pot: place.pot,
            bond: _settlementBond.toUint128(),
            answered: place.answered
        });
    }

    /// @inheritdoc IRewardsDistributor
    function posts() external view returns (Post[] memory found) {
        uint32 attempts = _line.attempts;
        found = new Post[](attempts);
        for (uint32 attempt = 1; attempt <= attempts; ++attempt) {
            found[attempt - 1] = postOf(_books.next, attempt);
        }
    }

    /// @inheritdoc IRewardsDistributor
    function nextEpoch() external view returns (uint64) {
        return _books.next;
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
        return uint256(_books.held) - _books.rollover - pendingFees;
    }

    /// @inheritdoc IRewardsDistributor
    function held() external view returns (uint256) {
        return _books.held;
    }

    /// @inheritdoc IRewardsDistributor
    function rollover() external view returns (uint256) {
        return _books.rollover;
    }

    /// @inheritdoc IRewardsDistributor
    function refundsOwed() external view returns (uint256) {
        return _line.refundsOwed;
    }

    /// @inheritdoc IRewardsDistributor
    function claimedOf(address account) external view returns (uint256) {
        return _accounts[account] >> 160;
    }

    /// @inheritdoc IRewardsDistributor
    function payoutOf(address account) external view returns (address) {
        // forge-lint: disable-next-line(unsafe-typecast)
        address payout = address(uint160(_accounts[account]));
        return payout == address(0) ? account : payout;
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
        if (epoch >= _books.next) return _books.lastFinal;
        return finalRoot[epoch] != 0 ? epoch : _finalBefore[epoch];
    }

    /// @inheritdoc IRewardsDistributor
    /// @dev Jumps from one absence of the account to the next older one; each presence but those of void epochs ends it.
    function prevEpochOf(address account, uint64 epoch) external view returns (uint64) {
        uint64 candidate = epoch == 0 ? 0 : lastFinalAt(epoch - 1);
        while (candidate != 0) {
            (Role role,, uint64 since) = registry.slotSpan(account, candidate);
            if (role != Role.None) return candidate;
            if (since == 0) return 0;
            candidate = lastFinalAt(since - 1);
        }
        return 0;
    }

    /// @dev The post falls: its bond pays the challenger's bounty, the rest burns.
    function _strike(Place storage post, uint32 attempt, uint32 index, Challenge storage challenge) private {
        uint256 bounty = _settlementBond * _bountyBps / RunLib.BPS;
        uint256 burned = _settlementBond - bounty;
        uint64 epoch = post.epoch;
        post.poster = address(0);
        if (epoch == _books.next) --_line.standing;
        challenge.closed = true;
        _books.held -= burned.toUint96();
        emit SettlementStruck(epoch, attempt, index, challenge.challenger, bounty, burned);
        _release(challenge.challenger, bounty + _challengeBond);
        token.burn(burned);
    }

    /// @dev Ends a post that stands though its epoch is closed: with the final root it is rewarded, else its bond burns.
    function _close(Place storage post, uint32 attempt) private {
        bool right = finalRoot[post.epoch] == post.root;
        emit PostClosed(post.epoch, attempt, post.poster, right ? 0 : _settlementBond);
        if (right) {
            _reward(post, attempt);
        } else {
            post.poster = address(0);
            _books.held -= _settlementBond.toUint96();
            token.burn(_settlementBond);
        }
    }

    /// @dev The bond of a right post goes back, with those of the challenges that it answered.
    function _reward(Place storage post, uint32 attempt) private {
        address poster = post.poster;
        uint256 answered = post.answered;
        post.poster = address(0);
        if (answered != 0) _heldAgainstChallenges[_key(post.epoch, attempt, 0, 0)] = true;
        _release(poster, _settlementBond + answered * _challengeBond);
    }

    /// @param books As stored, but for `lastFinal`.
    /// @param left What is left of the pot.
    function _closeEpoch(Books memory books, uint256 left) private {
        uint256 fees = _charges[books.next].fees;
        if (fees != 0) pendingFees -= fees;
        _books = Books({
            held: (uint256(books.held) - books.rollover - fees + left).toUint96(),
            rollover: left.toUint96(),
            next: books.next + 1,
            lastFinal: books.lastFinal
        });
        Line memory line = _line;
        (line.reserved, line.standing, line.attempts) = (0, 0, 0);
        _line = line;
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
        if (_choreTariff == 0 || spent > _choreCapPerEpoch || spent > scheduledEmission(epoch)) return;
        Line memory line = _line;
        uint256 owed = line.refundsOwed + _choreTariff;
        if (owed + line.reserved > token.mintable()) return;
        _charges[epoch].chores = spent.toUint128();
        refundsOf[account] += _choreTariff;
        _line.refundsOwed = owed.toUint96();
        emit Credited(account, epoch, _choreTariff);
    }

    /// @dev The judge's word on the call's own input, which it takes as it is. Its errors are passed on.
    function _isRight() private view returns (bool) {
        (bool fine, bytes memory answer) =
            address(judge).staticcall(bytes.concat(ISettlementJudge.isRight.selector, msg.data[4:]));
        if (!fine) {
            assembly ("memory-safe") {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        return abi.decode(answer, (bool));
    }

    /// @dev The epoch whose pot bears a chore or gets a fee.
    function _chargedEpoch() private view returns (uint64 epoch) {
        epoch = epochs.currentEpoch();
        if (epoch == 0) epoch = 1;
    }

    /// @dev As the epoch manager's; saves a call.
    function _revealDeadline(uint64 epoch) private view returns (uint64) {
        return _revealsFrom + epoch * _epochS;
    }

    function _windowEnds(Place storage post) private view returns (uint64) {
        return uint64(post.postedAt) + post.openForS;
    }

    /// @dev Two who post the same at a time: the second keeps its bond.
    function _requireNew(uint64 epoch, uint32 newest, bytes32 root) private view {
        Place storage post = _places[newest];
        if (post.poster != address(0) && post.root == root) revert PostStands(epoch, newest, post.poster);
    }

    /// @dev A post whose root is final already is beyond challenge; it waits to be closed.
    function _requirePost(uint64 epoch, uint32 attempt) private view returns (Place storage post) {
        post = _places[attempt];
        if (post.epoch != epoch || post.poster == address(0)) revert NoPost(epoch, attempt);
        if (epoch != _books.next && finalRoot[epoch] == post.root) revert NoPost(epoch, attempt);
    }

    function _requireOpen(uint64 epoch, uint32 attempt, uint32 index, uint32 cell)
        private
        view
        returns (Challenge storage challenge)
    {
        challenge = _challenges[_key(epoch, attempt, index, cell)];
        if (!challenge.open) revert NotChallenged(epoch, index, cell);
    }

    /// @dev What is minted for an epoch besides its chore refunds: less than the schedule's once the cap is near.
    function _emissionOf(uint64 epoch, Line memory line) private view returns (uint256) {
        uint256 scheduled = scheduledEmission(epoch) - _charges[epoch].chores;
        uint256 left = token.mintable() - line.refundsOwed;
        return scheduled < left ? scheduled : left;
    }

    function _key(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) private pure returns (bytes32) {
        return keccak256(abi.encode(epoch, attempt, index, cell));
    }
}
