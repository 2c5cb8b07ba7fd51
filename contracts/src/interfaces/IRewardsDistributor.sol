// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Leaf, Node, Opening} from "./ISettlement.sol";

/// @title Rewards distributor
/// @notice Mints the emission and pays it by settlements: anyone posts the root of an epoch's sum tree with a bond, anyone
/// may challenge a leaf of it, and an unchallenged root becomes final after a window. Claims are cumulative and work
/// against any final epoch.
/// @dev Consensus weight of miner j: the largest w with 2 * (stake of revealers that gave j at least w) > revealed stake.
/// The pot of an epoch = emission + rollover + fees - chore refunds of that epoch. Amounts round down; dust rolls over.
/// Token balance = bonds + unclaimed + rollover + fees, to the unit (donations apart). Chore refunds are minted when
/// they are withdrawn, out of the same emission.
interface IRewardsDistributor {
    /// @notice The settlement that stands for the epoch next in line; poster 0 if none.
    struct Post {
        uint64 epoch;
        /// How often a settlement was posted for this epoch, this one included.
        uint32 attempt;
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
    }

    /// @notice A challenge of one leaf of a post.
    struct Challenge {
        address challenger;
        /// Last second to open the leaf.
        uint64 deadline;
        /// False once the leaf was opened.
        bool open;
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
    /// @notice The leaf was right; the challenger's bond went to the poster. The transaction's input shows the siblings,
    /// so that a challenger of a root without published leaves can descend to the one that is wrong.
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
    event SettlementFinalised(uint64 indexed epoch, bytes32 root, uint256 amount, uint256 rollover);
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
    error ZeroAmount();
    error TooEarly(uint64 time, uint64 opens);
    error TooLate(uint64 time, uint64 deadline);
    /// @notice Epochs settle in order; `next` is in line.
    error NotNext(uint64 epoch, uint64 next);
    /// @notice Less than half of the snapshot's stake revealed weights.
    error NoQuorum(uint64 epoch);
    error PostStands(uint64 epoch, address poster);
    error NoPost(uint64 epoch);
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
    /// @notice Parameters can't fund what they promise.
    error InvalidParams(string what);

    /// @notice Posts the two halves of an epoch's settlement tree, with `requiredBond(epoch)` (needs an allowance).
    /// @dev Anyone, after the reveal deadline and until `settlementVoidAt`, while no post stands and a quorum revealed. Each
    /// half is refused above its share of the pot.
    function postSettlement(uint64 epoch, Node calldata miners, Node calldata validators) external;

    /// @notice Challenges one leaf of the standing post, with the challenge bond (needs an allowance). Needs no opening.
    /// @dev Until the post's windowEnds. Each opening keeps the window open for another turn, up to twice the window, so
    /// that a challenger can descend along the siblings that openings show.
    /// @param epoch The epoch.
    /// @param index Leaf index: slot of a miner, or 4096 + slot of a validator. Slots that nobody holds have empty leaves.
    /// @param cell Of a validator: the miner slot whose agreement is recomputed; 0 for a miner.
    function challengeLeaf(uint64 epoch, uint32 index, uint32 cell) external;

    /// @notice Opens a challenged leaf. The contract recomputes it: if right, the challenger's bond goes to the poster; if
    /// the opening fits the posted root but the leaf is wrong, the post is struck. Anything else reverts.
    /// @dev Anyone may send it, until the challenge's deadline: it proves itself.
    function openLeaf(uint64 epoch, uint32 index, uint32 cell, Opening calldata opening) external;

    /// @notice Strikes a post whose challenged leaf was not opened in time. Anyone.
    function resolveTimeout(uint64 epoch, uint32 index, uint32 cell) external;

    /// @notice Returns the bond of a challenge that was still open when its post was struck by another. Anyone.
    function releaseChallenge(uint64 epoch, uint32 attempt, uint32 index, uint32 cell) external;

    /// @notice Makes the standing post final after its window, without open challenges. Anyone; paid as a chore.
    function finaliseSettlement(uint64 epoch) external;

    /// @notice Declares an epoch void that nobody settled by `settlementVoidAt`; its pot rolls over. Anyone.
    function voidEpoch(uint64 epoch) external;

    /// @notice Pays what an account earned up to a final epoch and did not claim yet, to its payout address. Anyone.
    /// @param epoch A final epoch in which the account had a leaf.
    /// @param leaf The account's leaf.
    /// @param siblings Bottom-up.
    /// @return amount What was paid.
    function claim(uint64 epoch, Leaf calldata leaf, Node[13] calldata siblings) external returns (uint256 amount);

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
    /// @notice Bond of the next post for an epoch: doubled after each post that was struck.
    function requiredBond(uint64 epoch) external view returns (uint256);
    function currentPost() external view returns (Post memory);
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
    /// @notice Settled and not claimed.
    function unclaimed() external view returns (uint256);
    /// @notice What is left of settled epochs' pots and belongs to the next one's.
    function rollover() external view returns (uint256);
    /// @notice Fees of epochs that are not settled yet.
    function pendingFees() external view returns (uint256);
    /// @notice Noted refunds that are not minted yet.
    function refundsOwed() external view returns (uint256);
    /// @notice bondsHeld + unclaimed + rollover + pendingFees: the contract's token balance, donations apart.
    function owed() external view returns (uint256);
}
