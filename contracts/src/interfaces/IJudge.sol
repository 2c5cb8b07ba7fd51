// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice How a level of a game relates to the one above it.
enum LevelKind {
    /// No further level: the judge decides.
    Done,
    /// The level's tree stands under the leaf that the level above ended in.
    Committed,
    /// Its root is new and signed by the defendant; its last leaf must be the leaf that the level above ended in.
    Fresh
}

/// @notice A judge's answer.
enum Ruling {
    /// A vote is under way.
    Pending,
    Guilty,
    NotGuilty
}

/// @notice Where a game stands: one disputed leaf per level, everything before it agreed.
/// @dev Only its hash is stored; moves bring it along, and events show it.
struct Position {
    /// The level that is being descended; 0 is the submission's trace.
    uint8 level;
    /// Levels of the binary tree below `node`.
    uint8 depth;
    /// Whether `node` is a node of this level's tree already; false until the level is entered.
    bool entered;
    /// The disputed node; a leaf hash where depth = 0.
    bytes32 node;
    /// Index of `node` among the nodes of its depth; of the leaf where depth = 0.
    uint64 index;
    /// By level: root of its tree, and the index of its disputed leaf once known.
    bytes32[4] roots;
    uint64[4] picks;
    /// By level: hash of the disputed leaf once known.
    bytes32[4] leaves;
}

/// @title The verdict port of the dispute manager
/// @notice A judge tells the shape of the game about one round, and decides where the bisection ends. Immutable, and fixed
/// for a round by the terms of its epoch: an open game keeps its judge.
interface IJudge {
    /// @notice What level `position.level` of a game looks like, given the leaves picked above it.
    /// @return kind Done where the judge decides.
    /// @return depth Depth of the level's binary tree, at most 40; 0 if done.
    function levelOf(uint64 round, Position calldata position) external view returns (LevelKind kind, uint8 depth);

    /// @notice Root of a committed level (above 0), out of the preimage of the leaf that the level above ended in.
    /// @dev Reverts if the preimage is wrong.
    function enter(uint64 round, Position calldata position, bytes calldata preimage)
        external
        view
        returns (bytes32 root);

    /// @notice Decides a game whose position is done, or says that it is still deciding. Only the dispute manager.
    /// @dev An arithmetic judge decides at once and reverts for evidence that does not fit the position. A committee opens
    /// its vote at the first call, and takes no evidence.
    function decide(bytes32 game, uint64 round, address defendant, Position calldata position, bytes calldata evidence)
        external
        returns (Ruling);

    /// @notice Blocks that `decide` may stay pending at most; 0 for a judge that decides at once (then it is the
    /// challenger's turn to bring the evidence).
    function longestDecision() external view returns (uint64);

    /// @notice Whether its verdict is arithmetic (true) or a vote (false): the fault and its penalty differ.
    function isComputed() external view returns (bool);
}
