// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Challenge book
/// @notice Bonded commit–reveal: a hunter first commits to its evidence and reveals it at least one block later, so that
/// nobody can steal a proof from the mempool.
/// @dev commitment = keccak256(abi.encode(hunter, evidenceHash, salt)). Commitments are kept per hunter: copying one is
/// useless and blocks nobody. Blocks are counted by the run's clock, which stands still in a pause: then nothing is
/// committed, revealed or expired. A hunter's bonds lie in a balance of its own, from which each challenge takes its bond and
/// to which a proof returns it; tokens move only to fill it up and to empty it.
interface IChallengeBook {
    /// @notice `hunter` committed to a piece of evidence; it can be revealed up to block `lastBlock` of the run's clock.
    event ChallengeCommitted(address indexed hunter, bytes32 indexed commitment, uint64 lastBlock, uint256 bond);
    /// @notice The bond of a challenge that was never revealed was burned.
    event ChallengeExpired(address indexed hunter, bytes32 indexed commitment, uint256 bond);
    event BondWithdrawn(address indexed hunter, uint256 amount);

    error AlreadyChallenged(address hunter, bytes32 commitment);
    error NotChallenged(address hunter, bytes32 commitment);
    /// @notice A reveal comes at least one block after the commit.
    error RevealTooEarly(uint64 committedBlock, uint64 blockNumber);
    error RevealTooLate(uint64 lastBlock, uint64 blockNumber);
    error NotExpired(uint64 lastBlock, uint64 blockNumber);
    error InsufficientBond(address hunter, uint256 free, uint256 requested);
    error TooManyChallenges(address hunter);
    error BondTooLarge(uint256 bond, uint256 most);

    /// @notice Commits the caller to a piece of evidence. Takes the bond from its free balance, and what is missing there
    /// from its allowance.
    function commitChallenge(bytes32 commitment) external;

    /// @notice Burns the bond of a challenge that was not revealed in time. Anyone.
    function expireChallenge(address hunter, bytes32 commitment) external;

    /// @notice Pays out some of the caller's free balance; never refused in a pause.
    /// @param amount In base units, at most `freeBond`.
    function withdrawBond(uint256 amount) external;

    /// @notice Block of a hunter's commit, by the run's clock; 0 if there is none (any more).
    function challengeBlock(address hunter, bytes32 commitment) external view returns (uint64);

    /// @notice What a hunter can withdraw, or commit its next challenges with.
    function freeBond(address hunter) external view returns (uint256);

    /// @notice What one challenge costs until it is revealed.
    function challengeBond() external view returns (uint256);

    /// @notice All bonds, free or not: the contract's token balance, donations apart.
    function bondsHeld() external view returns (uint256);
}
