// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlementJudge} from "./ISettlementJudge.sol";
import {Leaf, Node, Opening, Sibling} from "./ISettlement.sol";

/// @title Rewards distributor
/// @notice Mints the emission and pays it by settlements: anyone posts the root of an epoch's sum tree with a bond, anyone
/// may challenge a leaf of it, and an unchallenged root becomes final after a window. Claims are cumulative and work
/// against any final epoch.
/// @dev Consensus weight of miner j: the largest w with 2 * (stake of revealers that gave j at least w) > revealed stake.
/// The pot of an epoch = emission + rollover + fees - chore refunds of that epoch. Amounts round down; dust rolls over.
/// Token balance = held + settled - all that was claimed, to the unit (donations apart). Chore refunds are minted when
/// they are withdrawn, out of the same emission.
///
/// Several posts may stand side by side for the epoch in line, each with its own window; the first to outlast its window
/// without open challenges is final. So a false post never bars or delays the right one, nobody is priced out, and every
/// false post costs its bond: the burned share (60 % or more) if it is struck, even by its own poster's accomplice, and all
/// of it if another root becomes final first. An epoch with posts can't be declared void before they fell, which takes
/// the longest window at most.
///
/// Why a root with leaves that nobody shows can't pay, as long as one honest account challenges: the pot, the weights, the
/// stakes and the history are on chain, so there is one right tree, and anybody can build it. The two nodes below the root
/// are posted in full. (1) If the sum of weights of a half is wrong, some leaf below it has a wrong weight. A challenged leaf
/// must be opened within a turn, or the post falls; if it is opened and wrong, the post falls. If it is right, the
/// opening shows all siblings on its path, their sums of weights add up to the half's, and so one of them is wrong: challenge
/// any leaf below that one. Each step ends at least one level lower, the last at a leaf of its own. (2) If the sums of a half
/// are right, the same descent goes by hashes. (3) A validator's leaf is opened together with one of its cells: if its weight
/// or its cells' root is wrong, the same descent finds the cell. That takes 13 + 12 challenges at most. The bonds of
/// challenges that were answered rightly are kept until the post's end: if it falls, they all go back to the
/// challengers; only a post that was right earns them. So an honest challenger needs 25 bonds for a while, loses none,
/// and gets the bounty. Each opening keeps the window open for another turn, and there is time for 25 steps of two
/// turns each beyond the first window: whoever starts in time can finish.
/// Warning: (a) a poster who strikes itself first recovers the bounty, never the burned share. (b) A right leaf
/// can always be opened from public data, by anyone; a poster whose leaves nobody opens in time loses its bond all the
/// same. (c) If a false root becomes final because nobody challenged it, posts of the right root lose their bonds, and
/// claims against it are bounded by the contract's balance, bonds included, not by its own epoch's pot: somebody has to look.
interface IRewardsDistributor {
    /// @notice A settlement for the epoch next in line. It stands while it has a poster.
    struct Post {
        uint64 epoch;
        /// Its number among the posts for this epoch, from 1 on.
        uint32 attempt;
        /// 0 once it was struck, became final or was closed.
        address poster;
        uint64 postedAt;
        /// It can be finalised after this time, without open challenges.
        uint64 windowEnds;
        uint32 openChallenges;
        bytes32 root;
        /// What it pays to miners and validators together.
        uint128 amount;
        uint128 pot;
        uint128 bond;
        /// Challenges that were answered rightly.
        uint32 answered;
    }

    /// @notice A challenge of one leaf of a post.
    struct Challenge {
        address challenger;
        /// Last second to open the leaf.
        uint64 deadline;
        /// False once the leaf was opened.
        bool open;
        /// Whether the bond went back to the challenger.
        bool closed;
    }

    event SettlementPosted(
        uint64 indexed epoch,
        uint32 attempt,
        address indexed poster,
        Node miners,
        Node validators,
        uint256 pot,
        uint256 bond,
        uint64 windowEnds
    );
    event LeafChallenged(
        uint64 indexed epoch,
        uint32 attempt,
        uint32 indexed index,
        uint32 cell,
        address indexed challenger,
        uint64 deadline
    );
    /// @notice The leaf was right. The transaction's input shows the siblings, so that a challenger of a root without
    /// published leaves can descend to the one that is wrong.
    event LeafOpened(uint64 indexed epoch, uint32 attempt, uint32 indexed index, uint32 cell, uint64 windowEnds);
    /// @notice The post fell: `bounty` of the poster's bond went to `challenger`, the rest was burned.
    event SettlementStruck(
        uint64 indexed epoch,
        uint32 attempt,
        uint32 indexed index,
        address indexed challenger,
        uint256 bounty,
        uint256 burned
    );
    event SettlementFinalised(uint64 indexed epoch, uint32 attempt, bytes32 root, uint256 amount, uint256 rollover);
    /// @notice A post that still stood when its epoch was closed: with the final root its bond went back, else it burned.
    event PostClosed(uint64 indexed epoch, uint32 attempt, address indexed poster, uint256 burned);
    event EpochVoided(uint64 indexed epoch, uint256 rollover);
    event Claimed(address indexed account, uint64 indexed epoch, address payout, uint256 amount);
    event FeesAdded(uint64 indexed epoch, address indexed from, uint256 amount);
    /// @notice `account` did a chore of `epoch`.
    event Credited(address indexed account, uint64 indexed epoch, uint256 amount);
    event RefundsWithdrawn(address indexed account, uint256 amount);
    /// @notice `amount` of bonds and bounties became withdrawable by `account`.
    event BondReleased(address indexed account, uint256 amount);
    event BondsWithdrawn(address indexed account, uint256 amount);
    event Emitted(uint64 indexed epoch, uint256 amount);

    error OnlyEpochs(address caller);
    error OnlyRegistry(address caller);
    error ZeroAmount();
    error TooEarly(uint64 time, uint64 opens);
    error TooLate(uint64 time, uint64 deadline);
    /// @notice Epochs settle in order; `next` is in line.
    error NotNext(uint64 epoch, uint64 next);
    /// @notice Less than half of the snapshot's stake revealed weights.
    error NoQuorum(uint64 epoch);
    error PostStands(uint64 epoch, uint32 attempt, address poster);
    error PostsStand(uint64 epoch, uint32 count);
    error NoPost(uint64 epoch, uint32 attempt);
    error OverBudget(uint256 amount, uint256 budget);
    error InvalidIndex(uint32 index, uint32 cell);
    error AlreadyChallenged(uint64 epoch, uint32 index, uint32 cell);
    error NotChallenged(uint64 epoch, uint32 index, uint32 cell);
    error ChallengesOpen(uint64 epoch, uint32 count);
    /// @notice The leaf or its siblings don't lead to the posted root.
    error InvalidOpening();
    /// @notice A revealed weight vector was opened wrongly.
    error InvalidWeights(uint32 validatorSlot);
    error NotFinal(uint64 epoch);
    error NothingToClaim(address account);
    error NothingToWithdraw(address account);
    /// @notice Parameters can't fund what they promise, or a settlement could outlast what the vault knows of its stakes.
    error InvalidParams(string what);

    /// @notice Posts the two halves of an epoch's settlement tree, with `requiredBond()` (needs an allowance).
    /// @dev Anyone, after the reveal deadline and until `settlementVoidAt`, if a quorum revealed. Each half is refused above
    /// its share of the pot; the pot is fixed by the first post. Refused if the newest post stands with the same root.
    /// @return attempt The post's number.
    function postSettlement(uint64 epoch, Node calldata miners, Node calldata validators)
        external
        returns (uint32 attempt);

    /// @notice Challenges one leaf of a standing post, with the challenge bond (needs an allowance). Needs no opening.
    /// @dev Until the post's windowEnds. Each opening keeps the window open for another turn, so that a challenger can
    /// descend along the siblings that openings show; at most 50 turns beyond the first window.
    /// @param epoch The epoch.
    /// @param attempt The post.
    /// @param index Leaf index: slot of a miner, or 4096 + slot of a validator. Slots that nobody holds have empty leaves.
    /// @param cell Of a validator: the miner slot whose agreement is recomputed; 0 for a miner.
    function challengeLeaf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external;

    /// @notice Opens a challenged leaf. The judge recomputes it: if right, the challenger's bond is kept for the poster; if
    /// the opening fits the posted root but the leaf is wrong, the post is struck. Anything else reverts.
    /// @dev Anyone may send it, until the challenge's deadline: it proves itself.
    function openLeaf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell, Opening calldata opening) external;

    /// @notice Strikes a post whose challenged leaf was not opened in time. Anyone.
    function resolveTimeout(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external;

    /// @notice Returns the bond of a challenge to its challenger once its post is gone: of every challenge if the post was
    /// struck or burned, of one that was still open if it was right. Anyone.
    function releaseChallenge(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external;

    /// @notice Makes a standing post final after its window, without open challenges. Its bond goes back, with the bonds of
    /// the challenges that it answered. Anyone; paid as a chore.
    function finaliseSettlement(uint64 epoch, uint32 attempt) external;

    /// @notice Ends a post that still stands though its epoch is closed: with the final root it is rewarded like the final
    /// one, at once; with another its bond burns, after its window and without open challenges (until then it can be
    /// struck). Anyone. A new post of that number does it too, whatever the window.
    function closePost(uint64 epoch, uint32 attempt) external;

    /// @notice Declares an epoch void that nobody settled by `settlementVoidAt`, once no post for it stands; its pot rolls
    /// over. Anyone.
    function voidEpoch(uint64 epoch) external;

    /// @notice Pays what an account earned up to a final epoch and did not claim yet, to its payout address. Anyone.
    /// @param epoch A final epoch in which the account had a leaf.
    /// @param leaf The account's leaf.
    /// @param siblings Bottom-up.
    /// @return amount What was paid.
    function claim(uint64 epoch, Leaf calldata leaf, Sibling[13] calldata siblings) external returns (uint256 amount);

    /// @notice Notes where an account's rewards go.
    /// @dev Only the registry; not 0. It stands beside what the account claimed, so that a claim reads one word.
    function setPayout(address account, address payout) external;

    /// @notice Adds fees to the pot of the current epoch (epoch 1 before genesis). Needs an allowance.
    function addFees(uint256 amount) external;

    /// @notice Notes a chore's refund, up to the epoch's cap; never reverts for want of budget.
    /// @dev Only the epoch manager.
    function credit(address account) external;

    /// @notice Mints an account's chore refunds to it. Anyone.
    function withdrawRefunds(address account) external returns (uint256 amount);

    /// @notice Pays an account's released bonds and bounties to it. Anyone.
    function withdrawBonds(address account) external returns (uint256 amount);

    /// @notice What an epoch pays out if it is settled as things stand: fixed once it is next in line and has ended.
    function potOf(uint64 epoch) external view returns (uint256);

    /// @notice The epoch that settles next.
    function nextEpoch() external view returns (uint64);
    /// @notice Recomputes challenged leaves.
    function judge() external view returns (ISettlementJudge);

    /// @notice Emission of an epoch by the schedule: halved every `emissionHalvingEpochs`; less once the cap is near.
    function scheduledEmission(uint64 epoch) external view returns (uint256);

    /// @notice Bond of a post.
    function requiredBond() external view returns (uint256);
    /// @notice A post, whether it stands or not; all 0 if there is none, or if a later epoch's took its place.
    function postOf(uint64 epoch, uint32 attempt) external view returns (Post memory);
    /// @notice All posts for the epoch next in line, in order, those that fell (poster 0) included.
    function posts() external view returns (Post[] memory);
    function challengeOf(uint64 epoch, uint32 attempt, uint32 index, uint32 cell)
        external
        view
        returns (Challenge memory);

    /// @notice Root of a final epoch; 0 if it is not final.
    function finalRoot(uint64 epoch) external view returns (bytes32);
    /// @notice The last final epoch at or before a settled one; 0 if none.
    function lastFinalAt(uint64 epoch) external view returns (uint64);
    /// @notice The previous epoch that the account's leaf of `epoch` must name (epochs before it being settled).
    function prevEpochOf(address account, uint64 epoch) external view returns (uint64);

    /// @notice Where an account's rewards go: what the registry noted, or the account itself.
    function payoutOf(address account) external view returns (address);

    /// @notice Cumulative amount that an account claimed.
    function claimedOf(address account) external view returns (uint256);
    function refundsOf(address account) external view returns (uint256);
    function bondsOf(address account) external view returns (uint256);
    /// @notice Chore refunds noted in an epoch.
    function choresOf(uint64 epoch) external view returns (uint256);
    /// @notice Fees added in an epoch.
    function feesOf(uint64 epoch) external view returns (uint256);

    /// @notice All bonds and released bounties held.
    function bondsHeld() external view returns (uint256);
    /// @notice All that final settlements assigned, claimed or not.
    function settled() external view returns (uint256);
    /// @notice What is left of settled epochs' pots and belongs to the next one's.
    function rollover() external view returns (uint256);
    /// @notice Fees of epochs that are not settled yet.
    function pendingFees() external view returns (uint256);
    /// @notice Noted refunds that are not minted yet.
    function refundsOwed() external view returns (uint256);
    /// @notice bondsHeld + rollover + pendingFees: what no claim can touch.
    function held() external view returns (uint256);
}
