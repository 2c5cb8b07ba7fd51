// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IJudge, LevelKind, Position, Ruling} from "../../src/interfaces/IJudge.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {SubmissionLib} from "../../src/libraries/SubmissionLib.sol";

/// @notice A small program, in the shape of a training step, and the judge that executes one word of it.
///
/// A tensor has `elements` words below 2^61 - 1, each a leaf of its tree. A step takes the state through `ops` operators,
/// each of which makes a tensor out of two earlier ones; the last one is the next state.
/// - Level 0, the trace: leaf i = hash of the root of the state after i steps.
/// - Level 1, fresh, the operators of one step: leaf j = hash of the root of the j-th output.
/// - Level 2, committed by that hash's preimage: the words of one output.
library ModelProgram {
    uint256 internal constant PRIME = (1 << 61) - 1;

    struct Shape {
        uint32 steps;
        uint32 ops;
        uint32 elements;
    }

    /// @dev One word of one operator.
    function word(uint256 op, uint256 element, uint256 a, uint256 b) internal pure returns (uint256) {
        return addmod(mulmod(a, b + op + 1, PRIME), element + 1, PRIME);
    }

    /// @dev Which earlier operator (op > 0) the second operand comes from; the first comes from op - 1.
    function secondInput(uint256 op) internal pure returns (uint256) {
        return op / 2;
    }

    function secondElement(uint256 element, uint256 elements) internal pure returns (uint256) {
        return (3 * element + 1) % elements;
    }
}

contract ModelJudge is IJudge {
    /// A word that goes into the disputed one, opened.
    struct Operand {
        /// Of the tensor, and where that stands: in the step's operators, or in the trace for the first one.
        bytes32 root;
        bytes32[] rootProof;
        uint256 word;
        bytes32[] wordProof;
    }

    ModelProgram.Shape public shape;
    bytes32 public domain;

    error WrongPreimage();
    error WrongEvidence();

    constructor(ModelProgram.Shape memory shape_) {
        shape = shape_;
    }

    function setShape(ModelProgram.Shape calldata shape_) external {
        shape = shape_;
    }

    function setDomain(bytes32 domain_) external {
        domain = domain_;
    }

    function levelOf(Position calldata p) external view returns (LevelKind kind, uint64 count) {
        if (p.level == 0) return (LevelKind.Committed, shape.steps + 1);
        // The start is told by the submission itself.
        if (p.picks[0] == 0 || p.level == 3) return (LevelKind.Done, 0);
        return p.level == 1 ? (LevelKind.Fresh, shape.ops) : (LevelKind.Committed, shape.elements);
    }

    function enter(Position calldata p, bytes calldata preimage) external pure returns (bytes32 root) {
        if (preimage.length != 32 || MerkleSha256.leafHash(preimage) != p.node) revert WrongPreimage();
        return bytes32(preimage);
    }

    function decide(bytes32, Position calldata p, bytes calldata evidence) external view returns (Ruling) {
        if (p.level == 1) return this.judgeStart(p, abi.decode(evidence, (Submission)));
        (Operand memory a, Operand memory b) = abi.decode(evidence, (Operand, Operand));
        uint64 op = p.picks[1];
        uint64 element = p.picks[2];
        this.open(p, a, op == 0 ? type(uint256).max : op - 1, element);
        this.open(
            p,
            b,
            op == 0 ? type(uint256).max : ModelProgram.secondInput(op),
            ModelProgram.secondElement(element, shape.elements)
        );
        uint256 word = ModelProgram.word(op, element, a.word, b.word);
        return MerkleSha256.leafHash(abi.encode(word)) == p.leaves[2] ? Ruling.NotGuilty : Ruling.Guilty;
    }

    function judgeStart(Position calldata p, Submission calldata s) external view returns (Ruling) {
        if (SubmissionLib.digest(s, domain) != p.claim) revert WrongEvidence();
        return MerkleSha256.leafHash(abi.encode(s.initialRoot)) == p.leaves[0] ? Ruling.NotGuilty : Ruling.Guilty;
    }

    /// @dev By call, as the library takes calldata.
    /// @param op The operator that made the tensor; max: the state before the step.
    function open(Position calldata p, Operand calldata o, uint256 op, uint256 element) external view {
        bool isState = op == type(uint256).max;
        bool ok = MerkleSha256.verify(
            isState ? p.roots[0] : p.roots[1],
            MerkleSha256.leafHash(abi.encode(o.root)),
            isState ? p.picks[0] - 1 : op,
            o.rootProof,
            MerkleSha256.depthOf(isState ? shape.steps + 1 : shape.ops)
        );
        ok = ok
            && MerkleSha256.verify(
                o.root,
                MerkleSha256.leafHash(abi.encode(o.word)),
                element,
                o.wordProof,
                MerkleSha256.depthOf(shape.elements)
            );
        if (!ok) revert WrongEvidence();
    }

    function longestDecision() external pure returns (uint64) {
        return 0;
    }

    function isComputed() external pure returns (bool) {
        return true;
    }
}
