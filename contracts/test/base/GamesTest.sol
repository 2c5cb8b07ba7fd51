// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {Genesis, Params, Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {Vm} from "forge-std/Vm.sol";
import {ModelJudge, ModelProgram} from "./ModelJudge.sol";
import {RunTest} from "./RunTest.sol";

/// @notice A miner whose round is judged by the model judge, and what the players of its games know and do.
abstract contract GamesTest is RunTest {
    /// What is wrong with a computation.
    enum Lie {
        None,
        /// One word of one operator; everything after it follows.
        Word,
        /// One word of a step's state; the next step starts from the right one.
        State,
        /// A place past the words of a step's state.
        WordPadding,
        /// A place past the trace's leaves.
        TracePadding,
        /// A state that is the hash of nothing.
        Noise,
        /// The first leaf is not the start that the submission names.
        Start
    }

    /// One miner's computation.
    struct World {
        Lie lie;
        uint32 step;
        uint32 op;
        uint32 element;
    }

    uint64 internal constant ROUND = 1;
    bytes32 internal constant SALT = keccak256("salt");

    ModelJudge internal model;
    ModelProgram.Shape internal shape = ModelProgram.Shape({steps: 3, ops: 37, elements: 5});
    Actor internal miner;
    address internal hunter;
    uint256 internal hunterKey;
    bytes32 internal beaconValue;

    /// What the events showed: of each game its position, of each node and width its list.
    mapping(bytes32 game => bytes) internal shown;
    mapping(bytes32 node => mapping(uint256 width => bytes32[])) internal listed;

    function params() internal view virtual override returns (Params memory p) {
        p = super.params();
        p.steps = shape.steps;
    }

    function setUp() public virtual override {
        vm.warp(GENESIS_TIME - 500);
        vm.roll(1000);
        model = new ModelJudge(shape);
        Genesis memory g = genesis();
        g.judge = judgeOfRun();
        deployRun(g);
        model.setDomain(registry.domainSeparator());
        miner = join("miner", Role.Miner, STAKE);
        (hunter, hunterKey) = makeAddrAndKey("hunter");
        fund(hunter, 1000 ether);
        joinMore();
        beaconValue = drawBeacon(ROUND, ASSIGNMENT);
        goTo(epochs.putOpens(ROUND));
        vm.recordLogs();
    }

    function judgeOfRun() internal view virtual returns (address) {
        return address(model);
    }

    function joinMore() internal virtual {}

    // ---------------------------------------------------------------- the computation

    function start() internal view returns (uint256[] memory state) {
        state = new uint256[](shape.elements);
        for (uint256 i = 0; i < state.length; ++i) {
            state[i] = uint256(keccak256(abi.encode("start", i))) % ModelProgram.PRIME;
        }
    }

    /// @dev What each operator of step `step` (from 1) makes, as the world's miner says.
    function outputs(World memory w, uint256 step, uint256[] memory state)
        internal
        view
        returns (uint256[][] memory out)
    {
        uint256 elements = shape.elements;
        out = new uint256[][](shape.ops);
        for (uint256 op = 0; op < out.length; ++op) {
            uint256[] memory a = op == 0 ? state : out[op - 1];
            uint256[] memory b = op == 0 ? state : out[ModelProgram.secondInput(op)];
            uint256[] memory c = new uint256[](elements);
            for (uint256 e = 0; e < elements; ++e) {
                c[e] = ModelProgram.word(op, e, a[e], b[ModelProgram.secondElement(e, elements)]);
            }
            out[op] = c;
            if (w.lie == Lie.Word && step == w.step && op == w.op) c[w.element] ^= 1;
        }
    }

    /// @dev The state after so many steps, as the next step takes it.
    function stateAfter(World memory w, uint256 steps) internal view virtual returns (uint256[] memory state) {
        state = start();
        for (uint256 step = 1; step <= steps; ++step) {
            state = outputs(w, step, state)[shape.ops - 1];
        }
    }

    function tensorLeaves(World memory w, uint256 step, bool isState, uint256[] memory words)
        internal
        view
        returns (bytes32[] memory leaves)
    {
        leaves = new bytes32[](1 << MerkleSha256.depthOf(words.length));
        for (uint256 i = 0; i < words.length; ++i) {
            leaves[i] = hashWord(bytes32(words[i]));
        }
        if (!isState || step != w.step) return leaves;
        if (w.lie == Lie.State) leaves[w.element] = hashWord(bytes32(words[w.element] ^ 1));
        if (w.lie == Lie.WordPadding) leaves[leaves.length - 1] = keccak256("not nothing");
    }

    function outputLeaf(World memory w, uint256 step, bool isState, uint256[] memory words)
        internal
        view
        returns (bytes32)
    {
        if (isState && step == w.step && w.lie == Lie.Noise) return keccak256("noise");
        return hashWord(rootOf(tensorLeaves(w, step, isState, words)));
    }

    function traceLeaves(World memory w) internal view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](1 << MerkleSha256.depthOf(shape.steps + 1));
        uint256[] memory state = start();
        leaves[0] = w.lie == Lie.Start ? keccak256("elsewhere") : outputLeaf(w, 0, false, state);
        for (uint256 step = 1; step <= shape.steps; ++step) {
            state = outputs(w, step, state)[shape.ops - 1];
            leaves[step] = outputLeaf(w, step, true, state);
        }
        if (w.lie == Lie.TracePadding) leaves[leaves.length - 1] = keccak256("not nothing");
    }

    function operatorLeaves(World memory w, uint256 step) internal view returns (bytes32[] memory leaves) {
        uint256[][] memory out = outputs(w, step, stateAfter(w, step - 1));
        leaves = new bytes32[](1 << MerkleSha256.depthOf(shape.ops));
        for (uint256 op = 0; op < out.length; ++op) {
            leaves[op] = outputLeaf(w, step, op == shape.ops - 1, out[op]);
        }
    }

    /// @dev Leaves of the level that a game is in, as the world's miner says.
    function leavesOf(World memory w, Position memory p) internal view returns (bytes32[] memory) {
        if (p.level == 0) return traceLeaves(w);
        uint256 step = p.picks[0];
        if (p.level == 1) return operatorLeaves(w, step);
        uint256 op = p.picks[1];
        return tensorLeaves(w, step, op == shape.ops - 1, outputs(w, step, stateAfter(w, step - 1))[op]);
    }

    // ---------------------------------------------------------------- trees

    /// @dev `MerkleSha256.nodeHash`, and `leafHash` of one word, without its copying: the players hash a lot.
    function hashPair(bytes32 left, bytes32 right) internal view returns (bytes32 hash) {
        assembly ("memory-safe") {
            let m := mload(0x40)
            mstore8(m, 1)
            mstore(add(m, 1), left)
            mstore(add(m, 33), right)
            if iszero(staticcall(gas(), 2, m, 65, 0, 32)) { revert(0, 0) }
            hash := mload(0)
        }
    }

    function hashWord(bytes32 word) internal view returns (bytes32 hash) {
        assembly ("memory-safe") {
            let m := mload(0x40)
            mstore8(m, 0)
            mstore(add(m, 1), word)
            if iszero(staticcall(gas(), 2, m, 33, 0, 32)) { revert(0, 0) }
            hash := mload(0)
        }
    }

    function levelUp(bytes32[] memory nodes) internal view returns (bytes32[] memory above) {
        above = new bytes32[](nodes.length / 2);
        for (uint256 i = 0; i < above.length; ++i) {
            above[i] = hashPair(nodes[2 * i], nodes[2 * i + 1]);
        }
    }

    function rootOf(bytes32[] memory leaves) internal view returns (bytes32) {
        while (leaves.length > 1) {
            leaves = levelUp(leaves);
        }
        return leaves[0];
    }

    function proofOf(bytes32[] memory leaves, uint256 index) internal view returns (bytes32[] memory siblings) {
        siblings = new bytes32[](MerkleSha256.depthOf(leaves.length));
        for (uint256 i = 0; i < siblings.length; ++i) {
            siblings[i] = leaves[index ^ 1];
            index >>= 1;
            leaves = levelUp(leaves);
        }
    }

    function listDepth(Position memory p) internal pure returns (uint256) {
        return p.depth < 5 ? p.depth : 5;
    }

    /// @dev The list below a game's node, out of the leaves of the level.
    function listBelow(bytes32[] memory leaves, Position memory p) internal view returns (bytes32[] memory list) {
        uint256 k = listDepth(p);
        for (uint256 i = k; i < p.depth; ++i) {
            leaves = levelUp(leaves);
        }
        list = new bytes32[](1 << k);
        for (uint256 i = 0; i < list.length; ++i) {
            list[i] = leaves[p.index * list.length + i];
        }
    }

    // ---------------------------------------------------------------- submissions and games

    function honest() internal pure returns (World memory w) {}

    function submission(World memory w) internal view returns (Submission memory s) {
        s.run = epochs.run();
        s.specHash = SPEC_HASH;
        s.round = ROUND;
        s.beacon = beaconValue;
        s.miner = miner.account;
        s.initialRoot = rootOf(tensorLeaves(honest(), 0, false, start()));
        s.dataRoot = keccak256("data");
        s.payloadRoot = keccak256("payload");
        s.payloadBytes = 1000;
        s.traceRoot = rootOf(traceLeaves(w));
        s.steps = shape.steps;
    }

    function digestOf(Submission memory s) internal view returns (bytes32) {
        return faults.submissionDigest(s);
    }

    function signed(Submission memory s) internal view returns (bytes memory) {
        return sign(miner.operatorKey, digestOf(s));
    }

    function commitSubmission(Submission memory s) internal {
        bytes32 digest = digestOf(s);
        vm.prank(miner.operator);
        epochs.commit(ROUND, digest);
    }

    function commitChallenge(address who, Submission memory s, bytes32 salt) internal returns (bytes32 commitment) {
        commitment = keccak256(abi.encode(who, keccak256(abi.encode(s, signed(s))), salt));
        vm.prank(who);
        disputes.commitChallenge(commitment);
    }

    function open(address who, Submission memory s, bytes32 salt) internal returns (bytes32 game) {
        commitChallenge(who, s, salt);
        nextBlock();
        bytes memory sig = signed(s);
        vm.prank(who);
        game = disputes.openGame(salt, s, sig);
        sync();
    }

    function openAgainst(World memory w) internal returns (bytes32 game) {
        Submission memory s = submission(w);
        commitSubmission(s);
        return open(hunter, s, SALT);
    }

    /// @dev Reads the new events, as players do.
    function sync() internal {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            noted(logs[i]);
            if (logs[i].emitter != address(disputes)) continue;
            if (logs[i].topics[0] == IDisputes.Moved.selector) {
                (Position memory p,,) = abi.decode(logs[i].data, (Position, IDisputes.Turn, uint64));
                shown[logs[i].topics[1]] = abi.encode(p);
            } else if (logs[i].topics[0] == IDisputes.ListPosted.selector) {
                (bytes32[] memory children,) = abi.decode(logs[i].data, (bytes32[], uint64));
                if (children.length != 0) listed[logs[i].topics[2]][children.length] = children;
            }
        }
    }

    /// @dev For those that keep books of all events.
    function noted(Vm.Log memory log) internal virtual {}

    function positionOf(bytes32 game) internal view returns (Position memory) {
        return abi.decode(shown[game], (Position));
    }

    function turnOf(bytes32 game) internal view returns (IDisputes.Turn) {
        return disputes.clockOf(game).turn;
    }

    function outcomeOf(bytes32 game) internal view returns (IDisputes.Outcome) {
        return disputes.clockOf(game).outcome;
    }

    // ---------------------------------------------------------------- moves

    /// @dev The miner's answer, as its world has it; false if it has none. What another game showed is not shown again.
    function answer(bytes32 game, World memory w) internal returns (bool) {
        Position memory p = positionOf(game);
        if (turnOf(game) == IDisputes.Turn.DefendantPosts) {
            if (disputes.isPosted(p.node, listDepth(p))) disputes.postList(game, p, new bytes32[](0));
            else disputes.postList(game, p, listBelow(leavesOf(w, p), p));
        } else if (p.level == 1) {
            enterFresh(game, p, leavesOf(w, p));
        } else {
            bytes32 root = rootOf(leavesOf(w, p));
            if (hashWord(root) != p.node) return false;
            disputes.enterCommitted(game, p, abi.encode(root));
        }
        sync();
        return true;
    }

    function enterFresh(bytes32 game, Position memory p, bytes32[] memory leaves) internal {
        // Hashing is a call as well, and would use up the prank.
        (bytes32 root, bytes32[] memory proof) = (rootOf(leaves), proofOf(leaves, p.count - 1));
        vm.prank(miner.operator);
        disputes.enterFresh(game, p, root, proof, "");
        sync();
    }

    function pickChild(bytes32 game, uint256 child) internal {
        Position memory p = positionOf(game);
        bytes32[] memory list = listed[p.node][1 << listDepth(p)];
        bytes32[] memory siblings = proofOf(list, child);
        vm.prank(p.challenger);
        disputes.pick(game, p, uint64(child), list[child], siblings, "");
        sync();
    }

    /// @dev An honest challenger: the first node of the list that is not what it computed itself.
    function pickFirstWrong(bytes32 game) internal {
        Position memory p = positionOf(game);
        bytes32[] memory list = listed[p.node][1 << listDepth(p)];
        bytes32[] memory own = listBelow(leavesOf(honest(), p), p);
        for (uint256 i = 0; i < list.length; ++i) {
            if (list[i] != own[i]) return pickChild(game, i);
        }
        revert("the list is right");
    }

    /// @dev What the model judge needs, by somebody who computed honestly and saw the game: everything before the disputed
    /// word is as computed, and what is beside it in the trees was listed.
    function evidence(World memory w, Position memory p) internal view returns (bytes memory) {
        if (p.level == 1) return abi.encode(submission(w));
        (uint256 op, uint256 element) = (p.picks[1], p.picks[2]);
        uint256 second = ModelProgram.secondElement(element, shape.elements);
        if (op == 0) return abi.encode(stateOperand(p, element), stateOperand(p, second));
        return abi.encode(operand(p, op - 1, element), operand(p, ModelProgram.secondInput(op), second));
    }

    function stateOperand(Position memory p, uint256 element) internal view returns (ModelJudge.Operand memory o) {
        uint256 step = p.picks[0] - 1;
        _openWord(o, stateAfter(honest(), step), element);
        o.rootProof = shownProof(p, 0, traceLeaves(honest()), step);
    }

    function operand(Position memory p, uint256 op, uint256 element)
        internal
        view
        returns (ModelJudge.Operand memory o)
    {
        uint256 step = p.picks[0];
        _openWord(o, outputs(honest(), step, stateAfter(honest(), step - 1))[op], element);
        o.rootProof = shownProof(p, 1, operatorLeaves(honest(), step), op);
    }

    function _openWord(ModelJudge.Operand memory o, uint256[] memory words, uint256 element) private view {
        bytes32[] memory leaves = tensorLeaves(honest(), 0, false, words);
        (o.root, o.word, o.wordProof) = (rootOf(leaves), words[element], proofOf(leaves, element));
    }

    /// @dev Siblings of a leaf that stands before the disputed one: from the lists above, from own leaves below.
    function shownProof(Position memory p, uint256 level, bytes32[] memory own, uint256 index)
        internal
        view
        returns (bytes32[] memory proof)
    {
        proof = proofOf(own, index);
        bytes32 node = p.roots[level];
        uint256 depth = proof.length;
        while (depth != 0) {
            uint256 k = depth < 5 ? depth : 5;
            depth -= k;
            bytes32[] memory list = listed[node][1 << k];
            uint256 child = (index >> depth) % (1 << k);
            bytes32[] memory siblings = proofOf(list, child);
            for (uint256 i = 0; i < k; ++i) {
                proof[depth + i] = siblings[i];
            }
            if (child != (p.picks[level] >> depth) % (1 << k)) return proof;
            node = list[child];
        }
    }

    /// @dev Both sides play at once and well, until the game is over or nobody of them can move.
    function playWell(bytes32 game, World memory w) internal {
        while (true) {
            IDisputes.Turn turn = turnOf(game);
            if (turn == IDisputes.Turn.Over) return;
            if (turn == IDisputes.Turn.ChallengerPicks) {
                pickFirstWrong(game);
            } else if (turn == IDisputes.Turn.ChallengerProves) {
                Position memory p = positionOf(game);
                disputes.decide(game, p, evidence(w, p));
            } else if (!answer(game, w)) {
                timeOut(game);
            }
        }
    }

    /// @dev To the first block in which the side whose turn it is has lost.
    function timeOut(bytes32 game) internal {
        vm.roll(disputes.lastBlockOf(game) + 1);
        disputes.resolveTimeout(game, positionOf(game));
    }

    function assertBalanced() internal view {
        assertEq(token.balanceOf(address(disputes)), disputes.bondsHeld());
    }
}
