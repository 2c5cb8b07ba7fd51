// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Stake vault
/// @notice The only custodian of stakes. An account's stake is active or unbonding; both answer for its faults.
/// The vault's token balance = all active + all unbonding stake (donations apart).
/// @dev Unbonding lasts at least (fraudWindowEpochs + 1) epochs, so that stake outlives the fraud window of the epoch in
/// which its exit was requested.
interface IStakeVault {
    /// @notice `account` added `amount`; `active` is its active stake now, which counts from the next epoch's snapshot.
    event Deposited(address indexed account, uint256 amount, uint256 active);
    /// @notice `amount` left the active stake; the whole bucket (`unbonding`) unlocks after `unlockTime`.
    event UnbondRequested(address indexed account, uint256 amount, uint256 unbonding, uint64 unlockTime);
    /// @notice An unbonded stake was paid out.
    event Withdrawn(address indexed account, uint256 amount);
    /// @notice A judge took `taken`: `bounty` of it went to `bountyTo`, the rest was burned.
    event Slashed(
        address indexed account, address indexed judge, uint256 taken, address indexed bountyTo, uint256 bounty
    );

    error ZeroAmount();
    /// @notice Only ObjectiveFaults and ScoreRegistry slash.
    error OnlyJudge(address caller);
    error InsufficientActive(address account, uint256 active, uint256 requested);
    error NothingUnbonding(address account);
    /// @notice Withdrawing is allowed after (not at) `unlockTime`.
    error StillLocked(address account, uint64 unlockTime, uint64 time);
    /// @notice The run's unbonding time is shorter than its fraud window.
    error UnbondingTooShort(uint256 unbondingS, uint256 leastS);

    /// @notice Adds stake to the caller's account. Needs an allowance.
    /// @dev Reverts where the account's active stake would reach 2^92 base units (4.9 billion tokens).
    /// @param amount In base units, not 0.
    function deposit(uint256 amount) external;

    /// @notice `deposit` with a signed allowance. A permit that somebody else submitted first does no harm.
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external;

    /// @notice Moves active stake to the unbonding bucket. With less than its role's minimum left, the account gives up
    /// its slot from the next epoch on.
    /// @dev One bucket per account: a second request merges into it, and the unlock time only moves later.
    /// @param amount In base units, not 0, at most the active stake.
    function requestUnbond(uint256 amount) external;

    /// @notice Pays out the whole unbonding bucket to the caller, after its unlock time.
    /// @return amount What was paid.
    function withdraw() external returns (uint256 amount);

    /// @notice Takes stake of a proven offender: active first, then unbonding; never more than there is. Never reverts
    /// for any amount or mix.
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

    /// @notice The account's unbonding bucket.
    /// @return amount In base units.
    /// @return unlockTime It can be withdrawn after this time.
    function unbondingOf(address account) external view returns (uint256 amount, uint64 unlockTime);

    /// @notice Active stake in the snapshot of an epoch (changes count from the epoch after the one they happen in).
    function stakeAt(address account, uint64 epoch) external view returns (uint256);
}
