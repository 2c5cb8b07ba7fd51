// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ruling} from "./IJudge.sol";

/// @title Committee
/// @notice The judge of native runs: the validators of the epoch in which the vote opens recompute one inner step within
/// the run's tolerance and vote. Guilty needs more than half of the *total* snapshot stake, and so does not guilty;
/// anything less decides nothing.
///
/// Its games have up to two levels. Level 0 is the trace: leaf 0 = start, then the state after every `traceEvery` inner
/// steps, the last = what was sent. Where the disputed interval has several inner steps, level 1 is fresh: the state
/// after each of them, the last being the disputed leaf.
///
/// A validator that stays silent pays `votePenalty`; so does one whose vote is against a majority. Each is fined once.
/// @dev Windows are in blocks of the run's clock, inclusive. Commit: the operator that acts for the validator then.
/// Warning: more than half of the stake can convict an honest miner here. The penalty of its verdict is small for that
/// reason, and the bounty a fixed small sum.
interface ICommittee {
    /// @notice One vote. Stakes are those of the snapshot of `epoch`; masks have a bit per validator slot.
    struct Vote {
        uint64 epoch;
        /// Last blocks to commit and to reveal; commitDeadline = 0: there is no such vote.
        uint64 commitDeadline;
        uint64 revealDeadline;
        Ruling ruling;
        uint128 total;
        uint128 guilty;
        uint128 notGuilty;
        uint32 committed;
        uint32 votedGuilty;
        uint32 votedNotGuilty;
        uint32 fined;
    }

    event VoteOpened(
        bytes32 indexed game,
        address indexed defendant,
        uint64 round,
        uint64 epoch,
        uint64 commitDeadline,
        uint64 revealDeadline,
        uint256 totalStake
    );
    event VoteCommitted(bytes32 indexed game, address indexed account, uint32 indexed slot, bytes32 commitment);
    event VoteRevealed(bytes32 indexed game, address indexed account, uint32 indexed slot, bool guilty, uint256 stake);
    event VoteClosed(bytes32 indexed game, Ruling ruling, uint256 guilty, uint256 notGuilty, uint256 totalStake);
    /// @notice `account` was silent, or voted against the majority (`dissent`).
    event VoterFined(bytes32 indexed game, address indexed account, uint32 indexed slot, bool dissent, uint256 taken);

    error NoTimeToVote();
    /// @notice A committee's games have no committed level but the trace.
    error NotCommittedLevel(uint8 level);
    error OnlyDisputes(address caller);
    error NoSuchVote(bytes32 game);
    error ZeroCommitment();
    error TooEarly(uint64 blockNumber, uint64 opensAfter);
    error TooLate(uint64 blockNumber, uint64 deadline);
    /// @notice The caller acts for no validator of the vote's epoch.
    error NotValidator(address caller, uint64 epoch);
    error NoSuchValidator(uint64 epoch, uint32 slot);
    error AlreadyCommitted(bytes32 game, uint32 slot);
    error NotCommitted(bytes32 game, uint32 slot);
    error AlreadyRevealed(bytes32 game, uint32 slot);
    error CommitmentMismatch(bytes32 committed, bytes32 revealed);
    error NotClosed(bytes32 game);
    error AlreadyFined(bytes32 game, uint32 slot);
    error NothingToFine(bytes32 game, uint32 slot);

    /// @notice Commits the calling operator's validator to its vote; once.
    /// @param commitment keccak256(abi.encode(run, game, account, guilty, salt)).
    function commitVote(bytes32 game, bytes32 commitment) external;

    /// @notice Reveals a committed vote. Anyone who knows what was committed.
    function revealVote(bytes32 game, uint32 slot, bool guilty, bytes32 salt) external;

    /// @notice Takes votePenalty from a validator that was silent or voted against the majority, once per vote. Anyone,
    /// after the vote is closed by `Disputes.decide`.
    function fineVoter(bytes32 game, uint32 slot) external returns (uint256 taken);

    /// @notice commitDeadline = 0 if there is no such vote; ruling pending until it is closed.
    function voteOf(bytes32 game) external view returns (Vote memory);

    function commitmentOf(bytes32 game, uint32 slot) external view returns (bytes32);
}
