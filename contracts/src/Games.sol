// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ChallengeBook} from "./ChallengeBook.sol";
import {IDisputes} from "./interfaces/IDisputes.sol";
import {IJudge, LevelKind, Position, Ruling} from "./interfaces/IJudge.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {IVerdicts} from "./interfaces/IVerdicts.sol";
import {MerkleSha256} from "./libraries/MerkleSha256.sol";
import {PositionLib} from "./libraries/PositionLib.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SubmissionLib} from "./libraries/SubmissionLib.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title Games
/// @notice The game itself: turns, clocks, lists, levels and money. What can be claimed, and by whom, is for those that
/// open a game to check.
abstract contract Games is IDisputes, ChallengeBook {
    using PositionLib for Position;

    /// @dev Where a game is kept. The place holds the last one that used it.
    struct Place {
        Clock clock;
        /// keccak256(abi.encode(game, position)).
        bytes32 state;
    }

    /// Levels of a game at most.
    uint256 private constant LEVELS = 4;
    /// Levels of a tree that one list opens.
    uint8 private constant LIST_DEPTH = 5;
    uint256 private constant MOST_LISTS = 16;
    /// Every list and every level's root, once in each game.
    uint256 private constant MOST_ANSWERS = MOST_LISTS + LEVELS;
    /// Lists that are remembered.
    uint256 private constant LIST_PLACES = 256;
    /// Places of games that are used again and again, so that most games don't need storage of their own; of these a
    /// challenger's own first few are looked at.
    uint256 private constant GAME_PLACES = type(uint16).max;
    uint256 private constant OWN_PLACES = 4;

    bytes32 private constant PICK_TYPEHASH = keccak256("Pick(bytes32 run,bytes32 state,uint64 child,bytes32 node)");
    bytes32 private constant FRESH_TYPEHASH = keccak256("FreshRoot(bytes32 run,bytes32 path,bytes32 root)");

    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IVerdicts public immutable verdicts;
    bytes32 public immutable run;
    /// Of the run's EIP-712 domain.
    bytes32 public immutable domainSeparator;

    uint256 private immutable _moveTariff;
    uint32 private immutable _clockBlocks;
    uint32 private immutable _turnBlocks;
    uint64 private immutable _longestDecision;

    mapping(uint256 place => Place) private _places;
    /// A list's key in the place that its low bits name: a later list there drives it out.
    mapping(uint256 place => bytes32 key) private _lists;

    constructor(Genesis memory g) ChallengeBook(g, g.params.gameBond) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        verdicts = IVerdicts(g.addresses.verdicts);
        run = RunLib.id(g.addresses.registry, g.nonce);
        domainSeparator = SubmissionLib.separatorOf(g.addresses.registry);
        Params memory p = g.params;
        uint256 least = MOST_ANSWERS * uint256(p.moveTariff);
        if (p.gameBond < least) revert BondTooSmall(p.gameBond, least);
        if (p.turnBlocks == 0 || p.clockBlocks < p.turnBlocks) revert ClocksTooShort(p.clockBlocks, p.turnBlocks);
        _moveTariff = p.moveTariff;
        _clockBlocks = p.clockBlocks;
        _turnBlocks = p.turnBlocks;
        _longestDecision = uint64(p.voteCommitBlocks) + p.voteRevealBlocks;
    }

    /// @inheritdoc IDisputes
    function postList(bytes32 game, Position calldata position, bytes32[] calldata children) external {
        Clock memory clock = _begin(game, position, Turn.DefendantPosts);
        uint8 k = _listDepth(position.depth);
        (uint256 place, bytes32 key) = _listPlace(position.node, k);
        if (children.length != 0 || _lists[place] != key) {
            if (children.length != uint256(1) << k) revert WrongLength(children.length, uint256(1) << k);
            if (MerkleSha256.nodeAbove(children) != position.node) revert WrongNodes(position.node);
            _lists[place] = key;
        }
        ++clock.answers;
        clock.turn = Turn.ChallengerPicks;
        _place(game).clock = clock;
        emit ListPosted(game, position.node, children, _lastBlock(clock));
    }

    /// @inheritdoc IDisputes
    function enterCommitted(bytes32 game, Position calldata position, bytes calldata preimage) external {
        Clock memory clock = _begin(game, position, Turn.DefendantEnters);
        Position memory p = position.load();
        if (p.kind != LevelKind.Committed) revert WrongLevelKind(p.kind);
        _enterAnswered(game, p, clock, pathOf(p), IJudge(p.judge).enter(p, preimage), preimage);
    }

    /// @inheritdoc IDisputes
    function enterFresh(
        bytes32 game,
        Position calldata position,
        bytes32 root,
        bytes32[] calldata proof,
        bytes calldata sig
    ) external {
        Clock memory clock = _begin(game, position, Turn.DefendantEnters);
        Position memory p = position.load();
        if (p.kind != LevelKind.Fresh) revert WrongLevelKind(p.kind);
        bytes32 path = pathOf(p);
        _requireDefendant(p.defendant, path, root, sig);
        uint256 depth = MerkleSha256.depthOf(p.count);
        if (proof.length != depth) revert WrongLength(proof.length, depth);
        if (!MerkleSha256.verify(root, p.node, p.count - 1, proof, depth)) revert WrongLastLeaf(p.node);
        _enterAnswered(game, p, clock, path, root, msg.data[:0]);
    }

    /// @inheritdoc IDisputes
    function pick(
        bytes32 game,
        Position calldata position,
        uint64 child,
        bytes32 node,
        bytes32[] calldata siblings,
        bytes calldata sig
    ) external {
        Clock memory clock = _begin(game, position, Turn.ChallengerPicks);
        Position memory p = position.load();
        if (msg.sender != p.challenger) {
            address signer = ECDSA.recover(pickDigest(position.stateOf(), child, node), sig);
            if (signer != p.challenger) revert NotChallenger(signer, p.challenger);
        }
        uint8 k = _listDepth(p.depth);
        if (siblings.length != k) revert WrongLength(siblings.length, k);
        if (!MerkleSha256.verify(p.node, node, child, siblings, k)) revert WrongNodes(p.node);
        (p.node, p.index, p.depth) = (node, p.index << k | child, p.depth - k);
        if (p.depth == 0 && p.index >= p.count) {
            if (node == 0) revert NothingThere(p.index, p.count);
            _end(game, p, clock, Outcome.ChallengerWon);
        } else {
            _continue(game, p, clock);
        }
    }

    /// @inheritdoc IDisputes
    // A judge may be a stranger; what it could do here by calling back is checked after the call.
    // slither-disable-next-line reentrancy-events
    function decide(bytes32 game, Position calldata position, bytes calldata evidence) external {
        Clock memory clock = _place(game).clock;
        if (clock.turn == Turn.JudgeDecides) {
            _requirePosition(game, position);
        } else {
            clock = _begin(game, position, Turn.ChallengerProves);
            clock.turn = Turn.JudgeDecides;
            _place(game).clock = clock;
        }
        Position memory p = position.load();
        Ruling ruling = IJudge(p.judge).decide(game, p, evidence);
        // A judge that calls back must not have the game end, and its bond paid, a second time.
        if (_place(game).clock.turn != Turn.JudgeDecides) revert NotTurn(game, _place(game).clock.turn);
        _requirePosition(game, position);
        if (ruling == Ruling.Pending) {
            emit Deciding(game);
        } else {
            _end(game, p, clock, Outcome(uint8(ruling)));
        }
    }

    /// @inheritdoc IDisputes
    function resolveTimeout(bytes32 game, Position calldata position) external {
        Clock memory clock = _place(game).clock;
        uint64 last = _lastBlock(clock);
        if (last == 0) revert NotTurn(game, clock.turn);
        _requirePosition(game, position);
        uint64 blockNumber = epochs.runningBlock();
        if (blockNumber <= last) revert StillInTime(game, last, blockNumber);
        _end(game, position.load(), clock, _isChallengers(clock.turn) ? Outcome.DefendantWon : Outcome.ChallengerWon);
    }

    /// @inheritdoc IDisputes
    function clockOf(bytes32 game) public view returns (Clock memory clock) {
        clock = _place(game).clock;
        if (clock.tag != _tagOf(game)) delete clock;
    }

    /// @inheritdoc IDisputes
    function lastBlockOf(bytes32 game) external view returns (uint64) {
        return _lastBlock(clockOf(game));
    }

    /// @inheritdoc IDisputes
    function stateOf(bytes32 game) external view returns (bytes32) {
        Place storage place = _place(game);
        return place.clock.tag == _tagOf(game) ? place.state : bytes32(0);
    }

    /// @inheritdoc IDisputes
    function isPosted(bytes32 node, uint256 k) public view returns (bool) {
        (uint256 place, bytes32 key) = _listPlace(node, k);
        return _lists[place] == key;
    }

    /// @inheritdoc IDisputes
    function pathOf(Position memory position) public pure returns (bytes32) {
        return keccak256(abi.encode(position.claim, position.level, position.picks));
    }

    /// @inheritdoc IDisputes
    function pickDigest(bytes32 state, uint64 child, bytes32 node) public view returns (bytes32) {
        return _typedDigest(keccak256(abi.encode(PICK_TYPEHASH, run, state, child, node)));
    }

    /// @inheritdoc IDisputes
    function freshDigest(bytes32 path, bytes32 root) public view returns (bytes32) {
        return _typedDigest(keccak256(abi.encode(FRESH_TYPEHASH, run, path, root)));
    }

    /// @inheritdoc IDisputes
    function longestGameBlocks() public view returns (uint64) {
        return 2 * uint64(_clockBlocks) + RunLib.MOST_TURNS * _turnBlocks + _longestDecision;
    }

    /// @dev Opens a game of the caller about whatever `p` claims. Who calls this has proven that the defendant is committed
    /// to `p.claim` (hashed so that no two kinds of claims can be equal), and has set judge, defendant, fault, round, claim
    /// and node. `p.node` is the root that the claim names or, where the judge makes level 0 a fresh one, the leaf which that
    /// level has to end in.
    /// @param id Unique among all games that there ever are.
    /// @param blockNumber Now, by the run's clock.
    function _open(bytes32 id, Position memory p, uint64 committedBlock, uint64 blockNumber)
        internal
        returns (bytes32 game)
    {
        game = _takePlace(id);
        p.challenger = msg.sender;
        uint64 longest = IJudge(p.judge).longestDecision();
        if (longest > _longestDecision) revert SlowJudge(p.judge, longest, _longestDecision);
        Clock memory clock;
        clock.since = blockNumber;
        clock.challengerLeft = _clockBlocks;
        clock.defendantLeft = _clockBlocks;
        clock.committedBlock = committedBlock;
        clock.tag = _tagOf(game);
        _takeBond(msg.sender, challengeBond);
        _ask(p);
        if (p.kind == LevelKind.Committed) _enter(p, p.node);
        vault.lock(p.defendant);
        _continue(game, p, clock);
    }

    /// @dev The checks of every move: the right turn, the game's position, in time. Charges the mover's clock.
    function _begin(bytes32 game, Position calldata position, Turn turn) private view returns (Clock memory clock) {
        clock = _place(game).clock;
        if (clock.turn != turn) revert NotTurn(game, clock.turn);
        _requirePosition(game, position);
        uint64 blockNumber = epochs.runningBlock();
        uint64 last = _lastBlock(clock);
        if (blockNumber > last) revert OutOfTime(game, last, blockNumber);
        // At most max(left, turnBlocks), both of 32 bits.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint32 used = uint32(blockNumber - clock.since);
        if (_isChallengers(turn)) clock.challengerLeft -= used < clock.challengerLeft ? used : clock.challengerLeft;
        else clock.defendantLeft -= used < clock.defendantLeft ? used : clock.defendantLeft;
        clock.since = blockNumber;
    }

    /// @dev Goes on from a disputed node to the next turn: past trees of one leaf.
    function _continue(bytes32 game, Position memory p, Clock memory clock) private {
        clock.turn = _advance(p);
        Place storage place = _place(game);
        place.clock = clock;
        place.state = _show(game, p, clock.turn, _lastBlock(clock));
    }

    /// @dev emit Moved(game, p, turn, lastBlock), and keccak256(abi.encode(game, p)): in one, as a position is long.
    function _show(bytes32 game, Position memory p, Turn turn, uint64 lastBlock) private returns (bytes32 state) {
        bytes memory data = PositionLib.encode(game, p, uint256(turn), lastBlock);
        (bytes32 topic, uint256 stateBytes) = (Moved.selector, PositionLib.STATE_BYTES);
        assembly ("memory-safe") {
            state := keccak256(add(data, 0x20), stateBytes)
            log2(add(data, 0x40), sub(mload(data), 0x20), topic, game)
        }
    }

    function _advance(Position memory p) private view returns (Turn) {
        while (true) {
            if (!p.entered) return p.kind == LevelKind.Done ? Turn.ChallengerProves : Turn.DefendantEnters;
            if (p.depth != 0) {
                return isPosted(p.node, _listDepth(p.depth)) ? Turn.ChallengerPicks : Turn.DefendantPosts;
            }
            (p.picks[p.level], p.leaves[p.level]) = (p.index, p.node);
            ++p.level;
            (p.entered, p.kind, p.count, p.index) = (false, LevelKind.Done, 0, 0);
            _ask(p);
        }
        // Never comes here.
        return Turn.None;
    }

    /// @dev Asks the judge for the shape of a level that is not entered yet.
    function _ask(Position memory p) private view {
        (LevelKind kind, uint64 count) = IJudge(p.judge).levelOf(p);
        if (kind == LevelKind.Done) return;
        uint256 lists = p.lists + (MerkleSha256.depthOf(count) + LIST_DEPTH - 1) / LIST_DEPTH;
        if (p.level >= LEVELS || count == 0 || lists > MOST_LISTS) revert InvalidLevel(p.level, count);
        // forge-lint: disable-next-line(unsafe-typecast)
        (p.kind, p.count, p.lists) = (kind, count, uint8(lists));
    }

    function _enter(Position memory p, bytes32 root) private pure {
        (p.entered, p.node, p.roots[p.level]) = (true, root, root);
        // forge-lint: disable-next-line(unsafe-typecast)
        p.depth = uint8(MerkleSha256.depthOf(p.count));
    }

    function _enterAnswered(
        bytes32 game,
        Position memory p,
        Clock memory clock,
        bytes32 path,
        bytes32 root,
        bytes calldata preimage
    ) private {
        emit LevelEntered(game, path, root, preimage);
        ++clock.answers;
        _enter(p, root);
        _continue(game, p, clock);
    }

    /// @dev The one end of every game.
    function _end(bytes32 game, Position memory p, Clock memory clock, Outcome outcome) private {
        uint256 booked = clock.answers * _moveTariff;
        uint256 toDefendant = outcome == Outcome.ChallengerWon ? 0 : booked;
        uint256 toChallenger = outcome == Outcome.ChallengerWon ? challengeBond : 0;
        if (outcome == Outcome.Undecided) toChallenger = challengeBond - booked;
        (clock.turn, clock.outcome) = (Turn.Over, outcome);
        _place(game).clock = clock;
        emit GameOver(game, p.defendant, p.challenger, outcome, toDefendant, toChallenger);
        if (toDefendant != 0) _returnBond(p.defendant, toDefendant);
        if (toChallenger != 0) _returnBond(p.challenger, toChallenger);
        uint256 burned = challengeBond - toDefendant - toChallenger;
        if (burned != 0) _burnBond(burned);
        if (outcome == Outcome.ChallengerWon) {
            verdicts.convict(p.fault, p.defendant, p.round, p.challenger, clock.committedBlock);
        }
        vault.unlock(p.defendant);
    }

    function _requireDefendant(address defendant, bytes32 path, bytes32 root, bytes calldata sig) private view {
        address signer = sig.length == 0 ? msg.sender : ECDSA.recover(freshDigest(path, root), sig);
        if (signer == defendant) return;
        if (signer != registry.operatorAt(defendant, epochs.currentRound())) {
            revert NotDefendant(signer, defendant);
        }
    }

    function _requirePosition(bytes32 game, Position calldata position) private view {
        bytes32 stored = _place(game).state;
        bytes32 given = position.stateOf();
        if (given != stored) revert WrongPosition(game, stored, given);
    }

    /// @dev The id with its last two bytes replaced by the place that the game takes: one that the challenger's finished
    /// games used, or 0 for a new one under the id itself.
    function _takePlace(bytes32 id) private view returns (bytes32 game) {
        uint256 cleared = uint256(id) & ~GAME_PLACES;
        uint256 first = uint256(keccak256(abi.encode(msg.sender)));
        for (uint256 i = 0; i < OWN_PLACES; ++i) {
            uint256 place = (first % GAME_PLACES + i) % GAME_PLACES + 1;
            Turn turn = _places[place].clock.turn;
            if (turn == Turn.None || turn == Turn.Over) return bytes32(cleared | place);
        }
        return bytes32(cleared);
    }

    function _place(bytes32 game) private view returns (Place storage) {
        uint256 place = uint256(game) & GAME_PLACES;
        return _places[place == 0 ? uint256(game) : place];
    }

    function _tagOf(bytes32 game) private pure returns (uint40) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint40(bytes5(game));
    }

    /// @dev Inclusive; 0 where no clock runs.
    function _lastBlock(Clock memory clock) private view returns (uint64) {
        if (clock.turn == Turn.None || clock.turn >= Turn.JudgeDecides) return 0;
        uint32 left = _isChallengers(clock.turn) ? clock.challengerLeft : clock.defendantLeft;
        return clock.since + (left > _turnBlocks ? left : _turnBlocks);
    }

    function _isChallengers(Turn turn) private pure returns (bool) {
        return turn == Turn.ChallengerPicks || turn == Turn.ChallengerProves;
    }

    function _listDepth(uint8 depth) private pure returns (uint8) {
        return depth < LIST_DEPTH ? depth : LIST_DEPTH;
    }

    /// @dev The key holds k too: the list of another width under the same node is another list.
    function _listPlace(bytes32 node, uint256 k) private pure returns (uint256 place, bytes32 key) {
        key = keccak256(abi.encode(node, k));
        place = uint256(key) % LIST_PLACES;
    }

    function _typedDigest(bytes32 structHash) private view returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(domainSeparator, structHash);
    }
}
