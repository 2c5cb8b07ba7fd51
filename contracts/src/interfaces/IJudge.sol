// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Fault} from "./IVerdicts.sol";

/// @notice How a level of a game relates to the one above it.
enum LevelKind {
    /// No further level: the judge decides.
    Done,
    /// The level's tree stands under the leaf that the level above ended in: that leaf's preimage tells its root.
    Committed,
    /// Its root is new and said by the defendant; its last leaf must be the leaf that the level above ended in.
    Fresh
}

/// @notice A judge's answer.
enum Ruling {
    /// A vote is under way.
    Pending,
    Guilty,
    NotGuilty,
    /// A vote without a majority for either: nothing is proven against anybody.
    Undecided
}

/// @notice What a game is about and where it stands: one disputed leaf per level, everything before it agreed.
/// @dev Only its hash is stored; moves bring it along, and events show it.
struct Position {
    /// Of the whole game, never changed.
    address judge;
    address challenger;
    address defendant;
    /// What is proven if the challenger wins.
    Fault fault;
    uint64 round;
    /// What the defendant is committed to: the digest of a submission.
    bytes32 claim;
    /// The level that is being descended; 0 is the submission's trace.
    uint8 level;
    LevelKind kind;
    /// Whether `node` is a node of this level's tree already; until then it is the leaf that the level above ended in.
    bool entered;
    /// Levels of the binary tree below `node`.
    uint8 depth;
    /// Lists that the levels entered so far need together, at most 16.
    uint8 lists;
    /// Leaves of this level's tree; the places after them hold the hash 0.
    uint64 count;
    /// Index of `node` among the nodes of its depth; of the leaf where depth = 0.
    uint64 index;
    /// The disputed node; a leaf hash where depth = 0.
    bytes32 node;
    /// By level: root of its tree; index and hash of its disputed leaf. 0 until known.
    bytes32[4] roots;
    uint64[4] picks;
    bytes32[4] leaves;
}

/// @title The verdict port of the dispute manager
/// @notice A judge tells the shape of the game about one round, and decides where the bisection ends. Immutable, and fixed
/// for a round by the terms of its epoch: an open game keeps its judge.
/// @dev Warning: the guarantees of a game are those of its judge. A judge that reverts in `levelOf` lets the challenger run
/// out of time, one that stays pending after `longestDecision` holds a game open for ever.
interface IJudge {
    /// @notice What level `position.level` of a game looks like, given the leaves picked above it.
    /// @dev Asked once a leaf of the level above is picked (and at the opening, for level 0), with `entered` false. Must
    /// depend on nothing but the position and what never changes. Level 4 must be done.
    /// @return kind Done where the judge decides. Of level 0: Committed where the claim's root is the tree's.
    /// @return count Leaves of the level's tree, at least 1; 0 if done. All levels of a game together may need 16 lists,
    /// one for every 5 levels of a tree, begun ones too.
    function levelOf(Position calldata position) external view returns (LevelKind kind, uint64 count);

    /// @notice Root of a committed level (above 0), out of the preimage of `position.node`, the leaf that the level above
    /// ended in.
    /// @dev Reverts if the preimage is wrong. No two preimages may be right.
    function enter(Position calldata position, bytes calldata preimage) external view returns (bytes32 root);

    /// @notice Decides a game whose position is done, or says that it is still deciding. Only the dispute manager.
    /// @dev An arithmetic judge decides at once and reverts for evidence that does not fit the position. A committee opens
    /// its vote at the first call, and takes no evidence.
    function decide(bytes32 game, Position calldata position, bytes calldata evidence) external returns (Ruling);

    /// @notice Blocks after the first call of `decide` after which it may not say pending any more; 0 for a judge that
    /// decides at once.
    function longestDecision() external view returns (uint64);

    /// @notice Whether its verdict is arithmetic (true) or a vote (false): the fault and its penalty differ.
    function isComputed() external view returns (bool);
}
