// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Games} from "./Games.sol";
import {IDisputes} from "./interfaces/IDisputes.sol";
import {IJudge, Position} from "./interfaces/IJudge.sol";
import {Genesis, Terms} from "./interfaces/IRun.sol";
import {Submission} from "./interfaces/ISubmission.sol";
import {Fault} from "./interfaces/IVerdicts.sol";
import {EvidenceLib} from "./libraries/EvidenceLib.sol";
import {SubmissionLib} from "./libraries/SubmissionLib.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title Disputes
contract Disputes is IDisputes, Games {
    /// The signature's offset, after a submission of 14 words.
    uint256 private constant EVIDENCE_OFFSETS = 14;

    /// Judges where the terms name nobody.
    address public immutable committee;
    uint64 private immutable _fraudWindowEpochs;

    constructor(Genesis memory g) Games(g) {
        committee = g.addresses.committee;
        _fraudWindowEpochs = g.params.fraudWindowEpochs;
    }

    /// @inheritdoc IDisputes
    // A judge's views are asked, and the run's own contracts called.
    // slither-disable-next-line reentrancy-events
    function openGame(bytes32 salt, Submission calldata s, bytes calldata sig) external returns (bytes32 game) {
        (uint64 blockNumber, uint64 current, uint64 epoch, bytes32 recorded) = epochs.judgedBy(s.round);
        (bytes32 commitment, uint64 committedBlock) = _reveal(EvidenceLib.hash(EVIDENCE_OFFSETS), salt, blockNumber);
        if (current > epoch + _fraudWindowEpochs) {
            revert FraudWindowClosed(s.round, epoch + _fraudWindowEpochs, current);
        }
        if (recorded == 0 || s.beacon != recorded) revert NotCanonicalBeacon(s.round, s.beacon, recorded);

        Position memory p;
        (p.claim, p.judge) = _requireJudgeable(s, sig, epoch);
        p.defendant = s.miner;
        p.round = s.round;
        p.node = s.traceRoot;
        p.fault = IJudge(p.judge).isComputed() ? Fault.Computation : Fault.NativeComputation;
        game = _open(keccak256(abi.encode(run, msg.sender, commitment, committedBlock)), p, committedBlock, blockNumber);
        emit GameOpened(game, s.miner, msg.sender, commitment);
    }

    /// @dev What a miner is judged for: its committed, signed submission under the epoch's terms.
    function _requireJudgeable(Submission calldata s, bytes calldata sig, uint64 epoch)
        private
        view
        returns (bytes32 digest, address judge)
    {
        if (s.run != run) revert WrongRun(s.run);
        digest = SubmissionLib.digest(s, domainSeparator);
        address operator = ECDSA.recover(digest, sig);
        if (operator == address(0) || registry.operatorAt(s.miner, s.round) != operator) {
            revert NotSigned(s.miner, s.round, operator);
        }
        if (!epochs.isCommitted(s.round, operator, digest)) revert NotCommitted(s.miner, s.round, digest);
        Terms memory terms = epochs.termsAt(epoch);
        if (s.specHash != terms.specHash) revert WrongSpec(s.specHash, terms.specHash);
        if (s.steps != terms.steps) revert WrongSteps(s.steps, terms.steps);
        judge = terms.judge == address(0) ? committee : terms.judge;
    }
}
