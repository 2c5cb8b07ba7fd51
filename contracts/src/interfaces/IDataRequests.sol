// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./IEpochManager.sol";
import {Submission} from "./ISubmission.sol";

/// @title Data requests
/// @notice Makes the validators that vouched for a submission serve it. Whoever misses a leaf of it asks for it here with a
/// bond; unanswered, every validator that set the miner's bit loses the same fixed sum.
/// @dev The duty comes from the bit alone ("I hold it and will serve it until the fraud window ends"): a request needs a
/// majority of set bits, and asks neither for a root majority nor for the submission's initial root, which nobody knows
/// that never saw the submission. All attestations of the round are opened, so that a requester can't pick whom it blames.
///
/// An item is asked for once. Its answer is an event that anyone can read; so is the verdict. Of the items of one kind of one
/// submission at most one is fined, however many are withheld: five times the sum is the most that one submission can
/// cost a validator, and a lost disk doesn't cost a stake.
///
/// Clocks run in blocks less pauses. The validators that set the bit take turns of `answerTurnBlocks`, in the order of their
/// slots, from a place on that the round's evaluation beacon draws; in its turn a validator alone may answer, and is paid
/// whatever anybody else sends. So an answer that lands in its turn is never out of pocket, and nobody can be front-run. After the turns
/// anyone may answer until the deadline: of these a validator that set the bit is paid, everybody else serves for nothing.
/// Opening a request costs about the gas of its answer, so that nobody can ask faster than a chain can answer.
///
/// Token balance = bonds of open requests + balances, to the unit (donations apart).
///
/// @dev Warning: Local requests assume that a run deposits local state, as all runs of this version do.
interface IDataRequests {
    /// @notice What can be asked for, and its index.
    enum Kind {
        /// The submission and its signature; index 0.
        Submission,
        /// Hash of the i-th leaf under `dataRoot`. Who vouches for a submission holds these hashes, and not what a liar
        /// may have hashed; what they should be, the data set says.
        Data,
        /// The i-th leaf under `traceRoot`.
        Trace,
        /// The i-th chunk under `payloadRoot`.
        Payload,
        /// Leaf (index mod 2^32) of the tensor (index / 2^32) under `localOut`, tensors in the order of their names.
        Local
    }

    enum Status {
        None,
        Open,
        Answered,
        Withheld
    }

    /// @notice One leaf of one submission.
    struct Item {
        uint64 round;
        /// The miner's slot in that round.
        uint32 minerSlot;
        /// Of the submission, as committed.
        bytes32 digest;
        Kind kind;
        uint64 index;
    }

    /// @notice A leaf, opened under a root of the submission.
    /// @dev An item that does not exist (a chunk or tensor beyond the last one) is answered with the last leaf there is:
    /// `position` below the one asked for, and nothing but padding to its right.
    struct Opening {
        /// Index of the leaf shown in its tree.
        uint64 position;
        /// The leaf's content; for Data its hash (32 bytes), for Submission the operator's signature.
        bytes content;
        /// Siblings bottom-up.
        bytes32[] proof;
        /// Local alone: place, content and siblings of the tensor's own leaf, whose last 32 bytes are the tensor's root.
        /// Where it is not the tensor asked for, `content` and `proof` are left empty.
        uint64 tensorPosition;
        bytes tensor;
        bytes32[] tensorProof;
    }

    /// @notice Where a request stands.
    struct RequestView {
        Status status;
        address requester;
        /// Block of the request, less pauses.
        uint64 openedBlock;
        /// Last block for an answer.
        uint64 deadline;
        /// Slots of the validators that set the bit, as a mask.
        uint32 setters;
        /// The validator slot whose turn comes first; the others follow in cyclic order.
        uint32 firstSlot;
    }

    /// @notice `item` is wanted; the validators in `setters` owe it until `deadline` (a block, less pauses).
    event ItemRequested(
        bytes32 indexed id,
        address indexed requester,
        bytes32 indexed digest,
        Item item,
        uint32 setters,
        uint32 firstSlot,
        uint64 openedBlock,
        uint64 deadline
    );
    /// @notice `item` was shown. `paid` is the validator that got `fee` of the bond, or 0; the rest went back.
    event ItemAnswered(
        bytes32 indexed id, address indexed paid, uint256 fee, Item item, Submission submission, Opening opening
    );
    /// @notice Nobody answered: each validator in `setters` was fined `fine`, or nothing if a sister item was fined before.
    event ItemWithheld(bytes32 indexed id, address indexed requester, Item item, uint32 setters, uint256 fine);
    event BalanceWithdrawn(address indexed account, uint256 amount);

    /// @notice The bond does not cover the dearest answer.
    error BondTooSmall(uint256 bond, uint256 least);
    error ZeroTurn();
    /// @notice The set is final after the attest deadline.
    error NotFinal(uint64 round, uint64 attestDeadline, uint64 time);
    error FraudWindowClosed(uint64 round, uint64 lastEpoch, uint64 epoch);
    /// @notice The validators' stake could be withdrawn before the request is decided.
    error StakeMayLeave(uint256 unlockTime, uint256 decidedBy);
    error NotCommitted(uint64 round, uint32 minerSlot, bytes32 digest);
    error NoSuchItem(Kind kind, uint64 index, uint256 count);
    error NoMajority(uint256 bitSet, uint256 total);
    /// @notice Attestations of so much stake were left out.
    error BallotsMissing(uint256 unopened);
    error AlreadyRequested(bytes32 id, Status status);
    /// @notice Another item of this kind was withheld and fined; nothing would follow.
    error AlreadyFined(Kind kind, bytes32 digest);
    error TooManyRequests(address requester, bytes32 digest, uint256 most);
    error NotOpen(bytes32 id, Status status);
    /// @notice Until `lastBlock` only the validator in `slot` may answer.
    error NotYourTurn(uint32 slot, uint64 lastBlock);
    error TooLate(uint64 deadline, uint64 blockNumber);
    error TooEarly(uint64 deadline, uint64 blockNumber);
    error WrongSubmission(bytes32 digest);
    error NotSigned(address signer);
    error InvalidOpening();
    error NothingToWithdraw(address account);

    /// @notice Asks for an item, with `requestBond` from the caller. After the round's attest deadline, inside the fraud window.
    /// @param item What is wanted.
    /// @param ballots All attestations of the round, opened, in the order of their slots.
    /// @return id Of the request, as `idOf`.
    function request(Item calldata item, IEpochManager.Ballot[] calldata ballots) external returns (bytes32 id);

    /// @notice Shows an item that was asked for. In a validator's turn that validator alone, by its owner or operator key;
    /// after the turns anyone, up to and including the deadline.
    /// @dev Proves itself: needs no trust in the sender. The fee is credited to the validator's account.
    /// @param item What was asked for.
    /// @param submission Preimage of the item's digest.
    /// @param opening The leaf.
    function answer(Item calldata item, Submission calldata submission, Opening calldata opening) external;

    /// @notice Fines the validators in an unanswered request, after its deadline; anyone. The bond goes back.
    /// @dev The requester gets `bountyBps` of each fine, the rest is burned.
    function resolve(Item calldata item) external;

    /// @notice Pays an account's balance to it. Anyone.
    function withdraw(address account) external returns (uint256 amount);

    /// @notice keccak256(abi.encode(item)).
    function idOf(Item calldata item) external pure returns (bytes32);

    function requestOf(Item calldata item) external view returns (RequestView memory);

    /// @notice Who may answer an open request now.
    /// @return slot The validator slot whose turn it is.
    /// @return lastBlock Last block of the turn, less pauses; 0 after all turns, when anyone may.
    function turnOf(Item calldata item) external view returns (uint32 slot, uint64 lastBlock);

    /// @notice What an answer with so many bytes of content costs the requester.
    function feeOf(Kind kind, uint256 contentBytes) external view returns (uint256);

    /// @notice Open requests of an account about a submission.
    function openRequests(address requester, bytes32 digest) external view returns (uint256);

    /// @notice Whether an item of this kind of this submission was withheld and fined.
    function wasFined(uint64 round, uint32 minerSlot, bytes32 digest, Kind kind) external view returns (bool);

    /// @notice What an account can withdraw.
    function balanceOf(address account) external view returns (uint256);

    /// @notice Bonds of open requests and balances: the contract's token balance, donations apart.
    function held() external view returns (uint256);
}
