// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LevelKind, Position} from "./IJudge.sol";
import {Submission} from "./ISubmission.sol";

/// @title Dispute manager
/// @notice Games about computations: the defendant posts, the challenger picks, a judge decides where they end. One game is
/// one challenger against one commitment of one defendant; any number of them run side by side, and none changes another.
///
/// A game descends through levels. Each level is a binary sha-256 tree (`MerkleSha256`) in which the challenger looks for
/// the first leaf that is wrong; everything before it is agreed then. One list shows the 2^k nodes that stand k =
/// min(5, depth) levels below the disputed one; the challenger picks one of them. A list under a node is what it is,
/// whoever sends it: it needs no signature, is posted once, and serves all games. The root of a further level is read out
/// of the disputed leaf (committed) or said by the defendant (fresh); what shows it, a preimage or a signature that names
/// claim and path but no game, anyone can bring to every game that comes the same way. Each game stands for itself: roots
/// that contradict each other in two games help nobody, as each of them must end in the same disputed leaf. What the
/// challenger picks counts only by its own hand or signature.
///
/// A picked leaf past the leaves of its level ends the game: the challenger wins, as those places must hold 0.
///
/// Clocks are chess clocks in blocks of the run's clock, which stand still in a pause. A side has `clockBlocks` for the
/// whole game, and at least `turnBlocks` for each turn. Who runs out of time loses; anyone may say so. Anyone can
/// end a game `longestGameBlocks` after it opened at the latest.
///
/// Money. The bond of the challenge (`gameBond`) becomes the game's. Each answer that the game makes the defendant give
/// (a list, a level's root) books `moveTariff` of it, at most 20 times, which the bond covers. Nothing is paid before the
/// end: if the challenger wins, the whole bond returns to it; if the defendant wins, it gets what was booked and the rest
/// burns; if a committee finds no majority for either, the defendant gets what was booked and the challenger the rest. All of
/// it goes to the free balance that each account has here (`withdrawBond`).
/// @dev Commit–reveal as in `IChallengeBook`, with evidenceHash = keccak256(abi.encode(s, sig)). A game's position is
/// stored as a hash; `Moved` shows it, moves bring it. Token balance = `bondsHeld()`, to the unit (donations apart).
interface IDisputes {
    /// @notice Whose turn it is.
    enum Turn {
        /// There is no such game.
        None,
        /// The defendant posts the list below the disputed node.
        DefendantPosts,
        /// The defendant says or shows the root of the next level.
        DefendantEnters,
        /// The challenger picks a node of the list.
        ChallengerPicks,
        /// The challenger has the judge decide (anyone may), with evidence if it is an arithmetic one.
        ChallengerProves,
        /// The judge decides; no clock of a side runs.
        JudgeDecides,
        /// Over.
        Over
    }

    /// @dev In the order of `Ruling`.
    enum Outcome {
        None,
        ChallengerWon,
        DefendantWon,
        /// No majority of a committee for either.
        Undecided
    }

    /// @notice A game's one word, beside the hash of its position. Blocks are of the run's clock.
    struct Clock {
        Turn turn;
        Outcome outcome;
        /// Answers booked.
        uint8 answers;
        /// Block in which the turn began.
        uint64 since;
        /// Blocks left on each side's clock when the turn began.
        uint32 challengerLeft;
        uint32 defendantLeft;
        /// Block of the challenge's commit.
        uint64 committedBlock;
        /// First bits of the game's id.
        uint40 tag;
    }

    /// @notice A game against `defendant`; `Moved` told its position just before.
    event GameOpened(bytes32 indexed game, address indexed defendant, address indexed challenger, bytes32 commitment);
    /// @notice The game stands here now; `turn` has until block `lastBlock` (0: no clock runs).
    event Moved(bytes32 indexed game, Position position, Turn turn, uint64 lastBlock);
    /// @notice All nodes k levels below `node`, from the left; 2^k = children.length. Good for every game. Empty
    /// if another game showed them.
    event ListPosted(bytes32 indexed game, bytes32 indexed node, bytes32[] children, uint64 lastBlock);
    /// @notice The root of a level of a claim, as this game has it. `preimage` of a committed level.
    event LevelEntered(bytes32 indexed game, bytes32 indexed path, bytes32 root, bytes preimage);
    /// @notice The judge was asked and has not decided yet.
    event Deciding(bytes32 indexed game);
    /// @notice The end: of the bond, `toDefendant` and `toChallenger` went to their free balances, the rest was burned.
    event GameOver(
        bytes32 indexed game,
        address indexed defendant,
        address indexed challenger,
        Outcome outcome,
        uint256 toDefendant,
        uint256 toChallenger
    );

    error BondTooSmall(uint256 bond, uint256 least);
    error ClocksTooShort(uint32 clockBlocks, uint32 turnBlocks);
    error WrongRun(bytes32 run);
    error FraudWindowClosed(uint64 round, uint64 lastEpoch, uint64 epoch);
    error NotCanonicalBeacon(uint64 round, bytes32 signed, bytes32 recorded);
    /// @notice Not signed by the operator valid in that round.
    error NotSigned(address miner, uint64 round, address signer);
    error NotCommitted(address miner, uint64 round, bytes32 digest);
    error WrongSpec(bytes32 signed, bytes32 registered);
    /// @notice Another number of steps than the round's terms name: such a submission is not accepted, and not judged.
    error WrongSteps(uint32 signed, uint32 registered);
    error SlowJudge(address judge, uint64 longestDecision, uint64 most);
    error WrongPosition(bytes32 game, bytes32 stored, bytes32 given);
    error NotTurn(bytes32 game, Turn turn);
    error OutOfTime(bytes32 game, uint64 lastBlock, uint64 blockNumber);
    error StillInTime(bytes32 game, uint64 lastBlock, uint64 blockNumber);
    /// @notice Too many or too few nodes or siblings for the disputed node's depth.
    error WrongLength(uint256 given, uint256 expected);
    /// @notice The nodes don't hash up to the disputed one.
    error WrongNodes(bytes32 expected);
    error NotChallenger(address signer, address challenger);
    /// @notice Not the defendant, its owner key's signature, or its operator's of the current round.
    error NotDefendant(address signer, address defendant);
    /// @notice The place is past the level's leaves and holds 0, as it must.
    error NothingThere(uint64 index, uint64 count);
    /// @notice The last leaf of the fresh level is not the one that the level above ended in.
    error WrongLastLeaf(bytes32 leaf);
    error WrongLevelKind(LevelKind kind);
    /// @notice The judge's levels need more lists than a bond covers, or have no leaf.
    error InvalidLevel(uint8 level, uint64 count);

    /// @notice Opens the game of a committed challenge against a submission, inside the fraud window.
    /// @dev commitment = keccak256(abi.encode(msg.sender, keccak256(abi.encode(s, sig)), salt)). The defendant's stake is
    /// locked until the game is over.
    /// @param sig 65-byte signature of the operator valid in the round.
    /// @return game keccak256(abi.encode(run, challenger, commitment, block of the commit)), its last two bytes replaced by
    /// the number of a place in storage.
    function openGame(bytes32 salt, Submission calldata s, bytes calldata sig) external returns (bytes32 game);

    /// @notice The defendant's answer to a pick: the list below the disputed node. Anyone may bring it.
    /// @param children The 2^min(5, depth) nodes min(5, depth) levels below, from the left. May be empty if another game
    /// showed them since the pick (`isPosted`).
    function postList(bytes32 game, Position calldata position, bytes32[] calldata children) external;

    /// @notice The defendant's way into a committed level: what the disputed leaf is the hash of. Anyone may bring it.
    function enterCommitted(bytes32 game, Position calldata position, bytes calldata preimage) external;

    /// @notice The defendant's way into a fresh level. By itself, by its operator of the current round, or by anyone with
    /// the signature of either, which serves in every game at this path while its signer may sign.
    /// @param root Of a tree with `position.count` leaves, the last of which is `position.node`.
    /// @param proof Siblings of the last leaf, bottom-up.
    /// @param sig 65 bytes over `freshDigest`; empty if the caller is the defendant or its operator.
    function enterFresh(
        bytes32 game,
        Position calldata position,
        bytes32 root,
        bytes32[] calldata proof,
        bytes calldata sig
    ) external;

    /// @notice The challenger's move: of the nodes of the list, the first that is wrong. By itself, or by anyone with its
    /// signature.
    /// @param child Index in the list.
    /// @param node Its hash.
    /// @param siblings From it up to the disputed node, bottom-up; as many as the list has levels.
    /// @param sig 65 bytes over `pickDigest`; empty if the caller is the challenger.
    function pick(
        bytes32 game,
        Position calldata position,
        uint64 child,
        bytes32 node,
        bytes32[] calldata siblings,
        bytes calldata sig
    ) external;

    /// @notice Has the judge decide a game that is bisected. Anyone, on the challenger's clock; as often as needed while the
    /// judge is deciding.
    /// @param evidence For an arithmetic judge, as it says; a committee takes none.
    function decide(bytes32 game, Position calldata position, bytes calldata evidence) external;

    /// @notice Ends a game whose turn ran out of time: the side that should have moved loses. Anyone.
    function resolveTimeout(bytes32 game, Position calldata position) external;

    /// @notice A game's word. All 0 if there is no such game, or if it is over and another one took its place: events tell
    /// what is over.
    function clockOf(bytes32 game) external view returns (Clock memory);

    /// @notice The block, inclusive, until which the side whose turn it is can move; 0 if no clock runs.
    function lastBlockOf(bytes32 game) external view returns (uint64);

    /// @notice keccak256(abi.encode(game, position)) of where the game stands, or stood when it ended.
    function stateOf(bytes32 game) external view returns (bytes32);

    /// @notice Whether the list 2^k wide under a node was posted lately, so that it is the challenger's turn at once. Lists
    /// are remembered in a fixed number of places: an old one may have to be posted (and paid) again.
    function isPosted(bytes32 node, uint256 k) external view returns (bool);

    /// @notice The path of a position that is not entered: keccak256(abi.encode(claim, level, picks)), picks of `level` and
    /// below being 0.
    function pathOf(Position calldata position) external pure returns (bytes32);

    /// @notice EIP-712 digest, in the run's domain, of Pick(bytes32 run,bytes32 state,uint64 child,bytes32 node).
    /// @param state As `stateOf`.
    function pickDigest(bytes32 state, uint64 child, bytes32 node) external view returns (bytes32);

    /// @notice EIP-712 digest, in the run's domain, of FreshRoot(bytes32 run,bytes32 path,bytes32 root).
    function freshDigest(bytes32 path, bytes32 root) external view returns (bytes32);

    /// @notice 2·clockBlocks + 64·turnBlocks + voteCommitBlocks + voteRevealBlocks: no game lasts longer. A game has at
    /// most 37 turns (16 lists, 16 picks, 4 roots, 1 decision), each of which takes what is left on a clock or turnBlocks.
    function longestGameBlocks() external view returns (uint64);
}
