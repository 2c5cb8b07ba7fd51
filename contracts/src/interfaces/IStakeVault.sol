// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Stake vault
/// @notice The only custodian of stakes. An account's stake is active or unbonding; both answer for its faults.
/// The vault's token balance = all active + all unbonding stake (donations apart).
/// @dev Unbonding lasts at least (fraudWindowEpochs + 1) epochs and the longest game, so that stake outlives the fraud
/// window of the epoch in which its exit was requested, and every game that opens within it. The longest game =
/// blockS * (2 * clockBlocks + 64 * turnBlocks + voteCommitBlocks + voteRevealBlocks).
/// A pause stops exits and slashing alike: neither runs without the other.
/// Warning: these bounds assume that whoever sends the last possible move gets into a block. A run with money at stake
/// should add 48 hours to `unbondingS` for congestion and absent operators; it is not enforced, as test runs last minutes.
interface IStakeVault {
    /// @notice `account` added `amount`; `active` is its active stake now, which counts from the next epoch's snapshot.
    event Deposited(address indexed account, uint256 amount, uint256 active);
    /// @notice `amount` left the active stake; the whole bucket (`unbonding`) unlocks after `unlockTime`.
    event UnbondRequested(address indexed account, uint256 amount, uint256 unbonding, uint64 unlockTime);
    /// @notice An unbonded stake was paid out.
    event Withdrawn(address indexed account, uint256 amount);
    /// @notice A game against `account` opened; it can't withdraw while `locks` are open.
    event Locked(address indexed account, uint256 locks);
    event Unlocked(address indexed account, uint256 locks);
    /// @notice A judge took `taken`: `bounty` of it went to `bountyTo`, the rest was burned.
    event Slashed(
        address indexed account, address indexed judge, uint256 taken, address indexed bountyTo, uint256 bounty
    );

    error ZeroAmount();
    /// @notice Only Verdicts and ScoreRegistry slash.
    error OnlyJudge(address caller);
    error OnlyDisputes(address caller);
    error InsufficientActive(address account, uint256 active, uint256 requested);
    error NothingUnbonding(address account);
    /// @notice Withdrawing is allowed after (not at) `unlockTime`.
    error StillLocked(address account, uint64 unlockTime, uint64 time);
    /// @notice The epoch in which the exit was requested is not settled (or void) yet; `next` is in line.
    error NotSettled(address account, uint64 epoch, uint64 next);
    error GamesOpen(address account, uint256 locks);
    /// @notice The run's unbonding time is shorter than its fraud window and longest game.
    error UnbondingTooShort(uint256 unbondingS, uint256 leastS);

    /// @notice Adds stake to the caller's account. Needs an allowance.
    /// @dev Reverts where the account's active stake would reach 2^92 base units (4.9 billion tokens).
    /// @param amount In base units, not 0.
    function deposit(uint256 amount) external;

    /// @notice `deposit` with a signed allowance. A permit that somebody else submitted first does no harm.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// @notice Moves active stake to the unbonding bucket. With less than its role's minimum left, the account gives up
    /// its slot from the next epoch on. Not in a pause.
    /// @dev One bucket per account: a second request merges into it, and all of it unlocks with the last request.
    /// @param amount In base units, not 0, at most the active stake.
    function requestUnbond(uint256 amount) external;

    /// @notice Pays out the whole unbonding bucket to the caller: after its unlock time, once the epoch in which the exit
    /// was last requested is settled or void, while no game against the account is open, and not in a pause.
    /// @dev Anybody can void an epoch that nobody settles, and resolve every game by its bound: nothing holds stake for ever.
    /// @return amount What was paid.
    function withdraw() external returns (uint256 amount);

    /// @notice Notes that a game against an account opened. Never reverts for its caller.
    /// @dev Only Disputes; each game locks once and unlocks once.
    function lock(address account) external;

    /// @notice Notes that a game against an account ended. Never reverts for its caller.
    function unlock(address account) external;

    /// @notice Takes stake of a proven offender: active first, then unbonding; never more than there is. Never reverts
    /// for any amount or mix, but in a pause.
    /// @dev Only judges. What is not bounty is burned. With less than its role's minimum left, the account gives up its
    /// slot from the next epoch on.
    /// @param account The offender.
    /// @param amount What the verdict wants, in base units.
    /// @param bountyTo Who gets the bounty; may be 0 if `bounty` is 0.
    /// @param bounty Share of the hunter, capped by what was taken.
    /// @return taken min(amount, active + unbonding).
    function slash(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken);

    /// @notice Active stake now, which counts from the next epoch's snapshot.
    function activeOf(address account) external view returns (uint256);

    /// @notice Active and unbonding stake together: what a verdict takes a fraction of.
    function stakeOf(address account) external view returns (uint256);

    /// @notice The account's unbonding bucket.
    /// @return amount In base units.
    /// @return unlockTime It can be withdrawn after this time; 0 without amount.
    function unbondingOf(address account) external view returns (uint256 amount, uint64 unlockTime);

    /// @notice Open games against an account.
    function locksOf(address account) external view returns (uint256);

    /// @notice Active stake in the snapshot of an epoch (changes count from the epoch after the one they happen in).
    /// @dev Exact for every epoch from current - epochsKnown on, and for older ones as far as the account's changes did not
    /// write over them; reverts (EpochForgotten) where it does not know.
    function stakeAt(address account, uint64 epoch) external view returns (uint256);

    /// @notice `stakeAt` of several accounts.
    function stakesAt(address[] calldata accounts, uint64 epoch) external view returns (uint256[] memory stakes);

    /// @notice So many epochs before the current one the vault can answer for: ceil(unbondingS / epoch) + 1.
    /// @dev Whoever needs the stakes of an epoch (settlement, evidence, a game's votes) is done within `unbondingS` of its end.
    function epochsKnown() external view returns (uint256);
}
