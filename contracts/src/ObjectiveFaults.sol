// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ChallengeBook} from "./ChallengeBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IObjectiveFaults} from "./interfaces/IObjectiveFaults.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Role} from "./interfaces/IRun.sol";
import {Submission} from "./interfaces/ISubmission.sol";
import {Fault, IVerdicts} from "./interfaces/IVerdicts.sol";
import {Assignment} from "./libraries/Assignment.sol";
import {ChunkLib} from "./libraries/ChunkLib.sol";
import {EvidenceLib} from "./libraries/EvidenceLib.sol";
import {MerkleSha256} from "./libraries/MerkleSha256.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SubmissionLib} from "./libraries/SubmissionLib.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title ObjectiveFaults
contract ObjectiveFaults is IObjectiveFaults, ChallengeBook {
    /// Where the offsets stand of evidence that begins with a submission of 14 words and its signature, and of such that
    /// begins with two of both.
    uint256 private constant SUBMISSION = 14;
    uint256 private constant TWO_SUBMISSIONS = 14 | 29 << 8;

    IRegistry public immutable registry;
    IVerdicts public immutable verdicts;
    bytes32 public immutable run;

    bytes32 private immutable _domainSeparator;
    uint64 private immutable _fraudWindowEpochs;

    constructor(Genesis memory g) ChallengeBook(g, g.params.challengeBond) {
        registry = IRegistry(g.addresses.registry);
        verdicts = IVerdicts(g.addresses.verdicts);
        run = RunLib.id(g.addresses.registry, g.nonce);
        _domainSeparator = SubmissionLib.separatorOf(g.addresses.registry);
        _fraudWindowEpochs = g.params.fraudWindowEpochs;
    }

    /// @inheritdoc IObjectiveFaults
    function proveEquivocation(
        bytes32 salt,
        Submission calldata a,
        bytes calldata sigA,
        Submission calldata b,
        bytes calldata sigB
    ) external {
        (uint64 committedBlock,) = _revealAgainst(a, TWO_SUBMISSIONS, salt);
        if (a.run != b.run || a.round != b.round || a.beacon != b.beacon || a.miner != b.miner) {
            revert DifferentSubmissions();
        }
        (bytes32 digest, address operator) = _requireSigned(a, sigA);
        bytes32 other = submissionDigest(b);
        if (other == digest) revert SameSubmission(digest);
        // One operator is valid in a round.
        address signer = ECDSA.recoverCalldata(other, sigB);
        if (signer != operator) revert NotSigned(b.miner, b.round, signer);
        _convict(Fault.Equivocation, a, committedBlock);
    }

    /// @inheritdoc IObjectiveFaults
    function proveWrongData(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        uint32 i,
        bytes32 claimedLeafHash,
        bytes32[] calldata claimedProof,
        bytes32 trueLeafHash,
        bytes32[] calldata trueProof
    ) external {
        (uint64 committedBlock, uint64 epoch) = _revealAgainst(s, SUBMISSION | 17 << 8 | 19 << 16, salt);
        IEpochManager.DataTerms memory terms = epochs.dataTermsAt(epoch);
        _requireClaim(s, sig, terms.specHash);
        if (i >= terms.samplesPerRound) revert NoSuchSample(i, terms.samplesPerRound);
        if (claimedLeafHash == trueLeafHash) revert DataMatches(i, trueLeafHash);
        _requireLeaf(s.dataRoot, claimedLeafHash, i, claimedProof, MerkleSha256.depthOf(terms.samplesPerRound));
        _requireAssigned(terms, s, i, trueLeafHash, trueProof);
        _convict(Fault.WrongData, s, committedBlock);
    }

    /// @inheritdoc IObjectiveFaults
    function proveWrongSpec(bytes32 salt, Submission calldata s, bytes calldata sig) external {
        (uint64 committedBlock, uint64 epoch) = _revealAgainst(s, SUBMISSION, salt);
        bytes32 registered = epochs.specHashAt(epoch);
        _requireCommitted(s, sig);
        if (s.specHash == registered) revert SpecMatches(registered);
        _convict(Fault.WrongSpec, s, committedBlock);
    }

    /// @inheritdoc IObjectiveFaults
    function proveLocalState(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        Submission calldata other,
        bytes calldata otherSig,
        IEpochManager.Ballot[] calldata ballots
    ) external {
        (uint64 committedBlock, uint64 epoch) = _revealAgainst(s, TWO_SUBMISSIONS | 30 << 16, salt);
        _requireClaim(s, sig, epochs.specHashAt(epoch));
        uint64 from = s.localFromRound;
        if (from == 0 || from >= s.round) revert NothingCarried(s.round, from);
        if (otherSig.length == 0) {
            _requireNeverAccepted(s.miner, from, ballots);
        } else {
            if (other.run != s.run || other.miner != s.miner) revert DifferentSubmissions();
            _requireCommitted(other, otherSig);
            uint64 round = other.round;
            if (round == from) {
                if (other.localOut == s.localIn) _requireRejected(other, ballots);
            } else if (round > from && round < s.round) {
                _requireAccepted(other, ballots);
            } else {
                revert UnrelatedRound(s.round, from, round);
            }
        }
        _convict(Fault.LocalState, s, committedBlock);
    }

    /// @inheritdoc IObjectiveFaults
    function proveBadEncoding(
        bytes32 salt,
        Submission calldata s,
        bytes calldata sig,
        uint256 chunk,
        bytes calldata leaf,
        bytes32[] calldata proof
    ) external {
        (uint64 committedBlock, uint64 epoch) = _revealAgainst(s, SUBMISSION | 16 << 8 | 17 << 16, salt);
        _requireBadChunk(epoch, s, sig, chunk, leaf, proof);
        _convict(Fault.BadEncoding, s, committedBlock);
    }

    /// @inheritdoc IObjectiveFaults
    function assignedSample(uint64 round, bytes32 beacon, address miner, uint32 i) external view returns (uint64) {
        return Assignment.sample(run, round, beacon, miner, i, epochs.termsAt(epochs.epochOf(round)).trainSamples);
    }

    /// @inheritdoc IObjectiveFaults
    function submissionDigest(Submission calldata s) public view returns (bytes32) {
        return SubmissionLib.digest(s, _domainSeparator);
    }

    /// @dev This is the sample of the data set that the miner had to train on.
    function _requireAssigned(
        IEpochManager.DataTerms memory terms,
        Submission calldata s,
        uint32 i,
        bytes32 leafHash,
        bytes32[] calldata proof
    ) private view {
        uint64 sample = Assignment.sample(run, s.round, s.beacon, s.miner, i, terms.trainSamples);
        _requireLeaf(terms.datasetRoot, leafHash, sample, proof, terms.datasetDepth);
    }

    /// @dev It stands under the root of what the miner handed in, and no encoder of the epoch's writes it.
    function _requireBadChunk(
        uint64 epoch,
        Submission calldata s,
        bytes calldata sig,
        uint256 chunk,
        bytes calldata leaf,
        bytes32[] calldata proof
    ) private view {
        (bytes32 registered, uint16 size, uint8 bits) = epochs.codecTermsAt(epoch);
        _requireClaim(s, sig, registered);
        bytes memory content = leaf;
        _requireLeaf(s.payloadRoot, MerkleSha256.leafHash(content), chunk, proof, proof.length);
        if (ChunkLib.isCanonical(content, size, bits)) revert ChunkIsCanonical(chunk);
    }

    function _requireLeaf(bytes32 root, bytes32 leaf, uint256 index, bytes32[] calldata proof, uint256 depth)
        private
        view
    {
        if (!MerkleSha256.verify(root, leaf, index, proof, depth)) revert InvalidProof();
    }

    /// @dev Reveals a challenge of a submission of this run, with the canonical beacon, inside the fraud window.
    /// @param offsets As EvidenceLib has it.
    /// @return committedBlock Of the challenge.
    /// @return epoch Of the submission's round.
    function _revealAgainst(Submission calldata s, uint256 offsets, bytes32 salt)
        private
        returns (uint64 committedBlock, uint64 epoch)
    {
        uint64 blockNumber;
        uint64 current;
        bytes32 recorded;
        (blockNumber, current, epoch, recorded) = epochs.judgedBy(s.round);
        (, committedBlock) = _reveal(EvidenceLib.hash(offsets), salt, blockNumber);
        if (s.run != run) revert WrongRun(s.run);
        uint64 lastEpoch = epoch + _fraudWindowEpochs;
        if (current > lastEpoch) revert FraudWindowClosed(s.round, lastEpoch, current);
        _requireCanonicalBeacon(s, recorded);
    }

    function _requireCanonicalBeacon(Submission calldata s, bytes32 recorded) private pure {
        if (recorded == 0 || s.beacon != recorded) revert NotCanonicalBeacon(s.round, s.beacon, recorded);
    }

    function _requireSigned(Submission calldata s, bytes calldata sig)
        private
        view
        returns (bytes32 digest, address operator)
    {
        digest = submissionDigest(s);
        operator = ECDSA.recoverCalldata(digest, sig);
        address acting = registry.accountActing(operator, s.round);
        if (acting == address(0) || acting != s.miner) revert NotSigned(s.miner, s.round, operator);
    }

    function _requireCommitted(Submission calldata s, bytes calldata sig) private view {
        (bytes32 digest, address operator) = _requireSigned(s, sig);
        if (!epochs.isCommitted(s.round, operator, digest)) revert NotCommitted(s.miner, s.round, digest);
    }

    /// @dev The one submission that the miner handed in for the round, under the registered spec.
    function _requireClaim(Submission calldata s, bytes calldata sig, bytes32 registered) private view {
        _requireCommitted(s, sig);
        if (s.specHash != registered) revert WrongSpec(s.specHash, registered);
    }

    /// @dev Whatever the miner handed in for `round`, if anything: its bit has no majority.
    function _requireNeverAccepted(address miner, uint64 round, IEpochManager.Ballot[] calldata ballots) private view {
        (bool hadSlot, IEpochManager.Tally memory tally) = _tally(miner, round, epochs.epochOf(round), 0, ballots);
        if (hadSlot && !_isMinority(tally.bitSet + tally.unopened, tally)) revert MayBeAccepted(round);
    }

    /// @dev This is what was handed in for its round, and it was not accepted.
    function _requireRejected(Submission calldata s, IEpochManager.Ballot[] calldata ballots) private view {
        (,, uint64 epoch, bytes32 recorded) = epochs.judgedBy(s.round);
        if (s.beacon != recorded) return;
        (bool hadSlot, IEpochManager.Tally memory tally) = _tally(s.miner, s.round, epoch, s.initialRoot, ballots);
        if (
            hadSlot && !_isMinority(tally.bitSet + tally.unopened, tally)
                && !_isMinority(tally.forRoot + tally.unopened, tally)
        ) revert MayBeAccepted(s.round);
    }

    /// @dev This is what was handed in for its round, and it was accepted.
    function _requireAccepted(Submission calldata s, IEpochManager.Ballot[] calldata ballots) private view {
        (,, uint64 epoch, bytes32 recorded) = epochs.judgedBy(s.round);
        _requireCanonicalBeacon(s, recorded);
        (bool hadSlot, IEpochManager.Tally memory tally) = _tally(s.miner, s.round, epoch, s.initialRoot, ballots);
        if (!hadSlot || _isMinority(tally.bitSet, tally) || _isMinority(tally.forRoot, tally)) {
            revert MayBeRejected(s.round);
        }
    }

    /// @return hadSlot Whether there was a bit for the miner at all; else nothing of it can have been accepted, and the
    /// tally is about somebody else's.
    function _tally(address miner, uint64 round, uint64 epoch, bytes32 root, IEpochManager.Ballot[] calldata ballots)
        private
        view
        returns (bool hadSlot, IEpochManager.Tally memory tally)
    {
        (Role role, uint32 slot) = registry.slotOf(miner, epoch);
        hadSlot = role == Role.Miner;
        tally = epochs.tally(round, slot, root, ballots);
    }

    function _isMinority(uint256 stake, IEpochManager.Tally memory tally) private pure returns (bool) {
        return 2 * stake <= tally.total;
    }

    function _convict(Fault kind, Submission calldata s, uint64 committedBlock) private {
        emit FaultProven(s.round, s.miner, msg.sender, kind);
        verdicts.convict(kind, s.miner, s.round, msg.sender, committedBlock);
    }
}
