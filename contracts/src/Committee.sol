// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ICommittee} from "./interfaces/ICommittee.sol";
import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IJudge, LevelKind, Position, Ruling} from "./interfaces/IJudge.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Role, Terms} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {IVerdicts} from "./interfaces/IVerdicts.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title Committee
contract Committee is ICommittee, IJudge {
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    IVerdicts public immutable verdicts;
    address public immutable disputes;
    bytes32 public immutable run;

    uint64 private immutable _voteCommitBlocks;
    uint64 private immutable _voteRevealBlocks;
    uint256 private immutable _votePenalty;

    mapping(bytes32 game => Vote) private _votes;
    /// @inheritdoc ICommittee
    mapping(bytes32 game => mapping(uint32 slot => bytes32)) public commitmentOf;

    constructor(Genesis memory g) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        verdicts = IVerdicts(g.addresses.verdicts);
        disputes = g.addresses.disputes;
        run = RunLib.id(g.addresses.registry, g.nonce);
        if (g.params.voteCommitBlocks == 0 || g.params.voteRevealBlocks == 0) revert NoTimeToVote();
        _voteCommitBlocks = g.params.voteCommitBlocks;
        _voteRevealBlocks = g.params.voteRevealBlocks;
        _votePenalty = g.params.votePenalty;
    }

    /// @inheritdoc IJudge
    function levelOf(Position calldata position) external view returns (LevelKind kind, uint64 count) {
        if (position.level > 1) return (LevelKind.Done, 0);
        Terms memory terms = epochs.termsAt(epochs.epochOf(position.round));
        (uint64 steps, uint64 every) = (terms.steps, terms.traceEvery);
        uint64 states = (steps + every - 1) / every;
        // The start, the states, and what was sent.
        if (position.level == 0) return (LevelKind.Committed, states + 2);
        uint64 picked = position.picks[0];
        if (picked == 0 || picked > states) return (LevelKind.Done, 0);
        uint64 inner = picked < states ? every : steps - (states - 1) * every;
        return inner == 1 ? (LevelKind.Done, 0) : (LevelKind.Fresh, inner);
    }

    /// @inheritdoc IJudge
    function enter(Position calldata position, bytes calldata) external pure returns (bytes32) {
        revert NotCommittedLevel(position.level);
    }

    /// @inheritdoc IJudge
    function decide(bytes32 game, Position calldata position, bytes calldata) external returns (Ruling) {
        if (msg.sender != disputes) revert OnlyDisputes(msg.sender);
        Vote storage vote = _votes[game];
        uint64 blockNumber = epochs.runningBlock();
        if (vote.commitDeadline == 0) {
            _openVote(game, vote, position, blockNumber);
            return Ruling.Pending;
        }
        if (blockNumber <= vote.revealDeadline) return Ruling.Pending;
        (uint256 total, uint256 guilty, uint256 notGuilty) = (vote.total, vote.guilty, vote.notGuilty);
        Ruling ruling = Ruling.Undecided;
        if (2 * guilty > total) ruling = Ruling.Guilty;
        else if (2 * notGuilty > total) ruling = Ruling.NotGuilty;
        vote.ruling = ruling;
        emit VoteClosed(game, ruling, guilty, notGuilty, total);
        return ruling;
    }

    /// @inheritdoc ICommittee
    function commitVote(bytes32 game, bytes32 commitment) external {
        if (commitment == 0) revert ZeroCommitment();
        Vote storage vote = _requireVote(game);
        uint64 blockNumber = epochs.runningBlock();
        if (blockNumber > vote.commitDeadline) revert TooLate(blockNumber, vote.commitDeadline);
        (address account, Role role, uint32 slot) =
            IDutyBook(address(epochs)).dutyOf(msg.sender, epochs.currentRound(), vote.epoch);
        if (role != Role.Validator) revert NotValidator(msg.sender, vote.epoch);
        if (commitmentOf[game][slot] != 0) revert AlreadyCommitted(game, slot);
        vote.committed |= _bit(slot);
        commitmentOf[game][slot] = commitment;
        emit VoteCommitted(game, account, slot, commitment);
    }

    /// @inheritdoc ICommittee
    function revealVote(bytes32 game, uint32 slot, bool guilty, bytes32 salt) external {
        Vote storage vote = _requireVote(game);
        uint64 blockNumber = epochs.runningBlock();
        if (blockNumber <= vote.commitDeadline) revert TooEarly(blockNumber, vote.commitDeadline);
        if (blockNumber > vote.revealDeadline) revert TooLate(blockNumber, vote.revealDeadline);
        bytes32 committed = commitmentOf[game][slot];
        if (committed == 0) revert NotCommitted(game, slot);
        uint32 bit = _bit(slot);
        if ((vote.votedGuilty | vote.votedNotGuilty) & bit != 0) revert AlreadyRevealed(game, slot);
        address account = registry.slotAccount(Role.Validator, slot, vote.epoch);
        bytes32 commitment = keccak256(abi.encode(run, game, account, guilty, salt));
        if (commitment != committed) revert CommitmentMismatch(committed, commitment);
        uint256 stake = vault.stakeAt(account, vote.epoch);
        if (guilty) {
            vote.votedGuilty |= bit;
            vote.guilty += SafeCast.toUint128(stake);
        } else {
            vote.votedNotGuilty |= bit;
            vote.notGuilty += SafeCast.toUint128(stake);
        }
        emit VoteRevealed(game, account, slot, guilty, stake);
    }

    /// @inheritdoc ICommittee
    // Calls the run's verdicts, which tell what was taken.
    // slither-disable-next-line reentrancy-events
    function fineVoter(bytes32 game, uint32 slot) external returns (uint256 taken) {
        Vote storage vote = _requireVote(game);
        Ruling ruling = vote.ruling;
        if (ruling == Ruling.Pending) revert NotClosed(game);
        address account = registry.slotAccount(Role.Validator, slot, vote.epoch);
        if (account == address(0)) revert NoSuchValidator(vote.epoch, slot);
        uint32 bit = _bit(slot);
        if (vote.fined & bit != 0) revert AlreadyFined(game, slot);
        uint32 dissenters;
        if (ruling == Ruling.Guilty) dissenters = vote.votedNotGuilty;
        else if (ruling == Ruling.NotGuilty) dissenters = vote.votedGuilty;
        bool dissent = dissenters & bit != 0;
        if (!dissent && (vote.votedGuilty | vote.votedNotGuilty) & bit != 0) revert NothingToFine(game, slot);
        vote.fined |= bit;
        taken = verdicts.fine(account, _votePenalty, address(0), 0);
        emit VoterFined(game, account, slot, dissent, taken);
    }

    /// @inheritdoc IJudge
    function longestDecision() external view returns (uint64) {
        return _voteCommitBlocks + _voteRevealBlocks;
    }

    /// @inheritdoc IJudge
    function isComputed() external pure returns (bool) {
        return false;
    }

    /// @inheritdoc ICommittee
    function voteOf(bytes32 game) external view returns (Vote memory) {
        return _votes[game];
    }

    function _openVote(bytes32 game, Vote storage vote, Position calldata position, uint64 blockNumber) private {
        uint64 epoch = epochs.currentEpoch();
        vote.epoch = epoch;
        vote.commitDeadline = blockNumber + _voteCommitBlocks;
        vote.revealDeadline = vote.commitDeadline + _voteRevealBlocks;
        vote.total = SafeCast.toUint128(registry.totalValidatorStake(epoch));
        emit VoteOpened(
            game, position.defendant, position.round, epoch, vote.commitDeadline, vote.revealDeadline, vote.total
        );
    }

    function _requireVote(bytes32 game) private view returns (Vote storage vote) {
        vote = _votes[game];
        if (vote.commitDeadline == 0) revert NoSuchVote(game);
    }

    /// @dev There are at most 32 validator slots.
    function _bit(uint32 slot) private pure returns (uint32) {
        return slot < 32 ? uint32(1) << slot : 0;
    }
}
