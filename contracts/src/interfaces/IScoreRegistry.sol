// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Score registry
/// @notice Validators commit, then reveal a weight per miner slot after each epoch. Who does not reveal loses a fixed
/// penalty and earns nothing for the epoch.
/// @dev weightsRoot = keccak256 over the keccak256 of each 512-byte chunk (256 miners; the last one may be short).
/// An epoch's words lie in a place of a ring that outlasts both the fraud window and the latest game about its settlement;
/// later everything about it reads as if nobody had said anything. The commitment is kept whole, and beside it who made it,
/// so that nobody can reveal a copied one as its own.
interface IScoreRegistry {
    /// @notice What the validators of an epoch did. The masks have one bit per validator slot.
    struct EpochScores {
        uint32 committed;
        uint32 revealed;
        uint32 penalised;
        /// Snapshot stake of those who revealed.
        uint128 revealedStake;
        /// Snapshot stake of all validators; 0 before the first commit.
        uint128 totalStake;
    }

    event WeightsCommitted(uint64 indexed epoch, address indexed account, uint32 indexed slot, bytes32 commitment);
    /// @notice `weights`: big-endian uint16 per miner slot; missing ones are 0.
    event WeightsRevealed(
        uint64 indexed epoch, address indexed account, uint32 indexed slot, bytes32 weightsRoot, bytes weights
    );
    event MissingRevealPenalised(uint64 indexed epoch, address indexed account, uint32 indexed slot, uint256 taken);

    error TooEarly(uint64 time, uint64 opens);
    error TooLate(uint64 time, uint64 deadline);
    error InvalidEpoch(uint64 epoch);
    error NotValidator(address caller, uint64 epoch);
    error AlreadyCommitted(uint64 epoch, uint32 slot);
    error NotCommitted(uint64 epoch, uint32 slot);
    error AlreadyRevealed(uint64 epoch, uint32 slot);
    error AlreadyPenalised(uint64 epoch, uint32 slot);
    error NoSuchValidator(uint64 epoch, uint32 slot);
    error ZeroCommitment();
    /// @notice Weights are two bytes a miner, at most as many as miners fit into the subnet.
    error InvalidWeightsLength(uint256 length, uint256 most);
    error CommitmentMismatch(bytes32 committed, bytes32 revealed);
    /// @notice The commitment in this slot is another account's.
    error NotTheCommitter(address account, address committer);

    /// @notice Commits the calling operator's validator to its weights, after the epoch's end and until the commit deadline.
    /// @dev Notes the validator's snapshot stake for the reveal; the first commit of an epoch also that of all validators.
    /// @param epoch The epoch that ended; the validator must have held a slot in it.
    /// @param commitment keccak256(abi.encode(run, account, epoch, weightsRoot, salt)).
    function commitWeights(uint64 epoch, bytes32 commitment) external;

    /// @notice Reveals committed weights, after the commit and until the reveal deadline. Anyone who knows them and the salt.
    /// @param epoch The epoch.
    /// @param slot Slot of the validator in it.
    /// @param account The validator.
    /// @param weights Big-endian uint16 per miner slot.
    /// @param salt What the commitment was salted with.
    function revealWeights(uint64 epoch, uint32 slot, address account, bytes calldata weights, bytes32 salt) external;

    /// @notice Burns the penalty of a validator that did not reveal. Anyone, once, after the reveal deadline and within
    /// the fraud window.
    function penaliseMissingReveal(uint64 epoch, uint32 slot) external;

    /// @notice The hash that a weight vector is committed and challenged by.
    function weightsRootOf(bytes calldata weights) external pure returns (bytes32);

    /// @notice Root of the weights that a validator revealed; 0 if it did not.
    function weightsRoot(uint64 epoch, uint32 slot) external view returns (bytes32);

    /// @notice What the validator in a slot committed and did not reveal yet; 0 otherwise.
    function commitmentOf(uint64 epoch, uint32 slot) external view returns (bytes32);

    function epochScores(uint64 epoch) external view returns (EpochScores memory);

    /// @notice Whether at least half of the snapshot's stake revealed, so that the epoch can be settled.
    function hasQuorum(uint64 epoch) external view returns (bool);
}
