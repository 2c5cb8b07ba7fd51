// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IObjectiveFaults} from "./interfaces/IObjectiveFaults.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {Submission} from "./interfaces/ISubmission.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {Assignment} from "./libraries/Assignment.sol";
import {MerkleSha256} from "./libraries/MerkleSha256.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SubmissionLib} from "./libraries/SubmissionLib.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title ObjectiveFaults
contract ObjectiveFaults is IObjectiveFaults {
    using SafeERC20 for ISynToken;

    /// @dev One place a hunter that is used again and again; most hunters never have two challenges open.
    struct First {
        /// Of the commitment; kept when the challenge is over, so that the word is never cleared just to be filled again.
        bytes22 tag;
        /// 0: the place is free.
        uint48 blockNumber;
        /// Open challenges of the hunter that have places of their own.
        uint32 others;
    }

    uint8 private constant ASSIGNMENT = 1;

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    bytes32 public immutable run;

    bytes32 private immutable _datasetRoot;
    uint256 private immutable _datasetDepth;
    uint64 private immutable _trainSamples;
    uint32 private immutable _samplesPerRound;
    uint256 private immutable _dataDepth;
    uint64 private immutable _fraudWindowEpochs;
    uint64 private immutable _revealBlocks;
    uint256 private immutable _bond;
    uint256 private immutable _equivocationSlashBps;
    uint256 private immutable _equivocationBounty;
    uint256 private immutable _wrongDataSlashBps;
    uint256 private immutable _bountyBps;

    /// Challenges whose bonds are held, plus 1: a word that is never 0 again is cheaper to write.
    uint256 private _openPlusOne = 1;
    mapping(address hunter => First) private _firsts;
    /// Blocks of challenges that were committed while the hunter's first place was taken.
    mapping(address hunter => mapping(bytes32 commitment => uint64 blockNumber)) private _others;
    /// @inheritdoc IObjectiveFaults
    mapping(address miner => mapping(uint64 round => Fault)) public verdict;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        run = RunLib.id(g.addresses.registry, g.nonce);
        Params memory p = g.params;
        _datasetRoot = p.datasetRoot;
        _datasetDepth = p.datasetDepth;
        _trainSamples = p.trainSamples;
        _samplesPerRound = p.samplesPerRound;
        _dataDepth = MerkleSha256.depthOf(p.samplesPerRound);
        _fraudWindowEpochs = p.fraudWindowEpochs;
        _revealBlocks = p.challengeRevealBlocks;
        _bond = p.challengeBond;
        _equivocationSlashBps = p.equivocationSlashBps;
        _equivocationBounty = p.equivocationBounty;
        _wrongDataSlashBps = p.wrongDataSlashBps;
        _bountyBps = p.bountyBps;
    }

    /// @inheritdoc IObjectiveFaults
    function commitChallenge(bytes32 commitment) external {
        First memory first = _firsts[msg.sender];
        if (_blockOf(msg.sender, first, commitment) != 0) revert AlreadyChallenged(msg.sender, commitment);
        if (first.blockNumber == 0) {
            (first.tag, first.blockNumber) = (_tag(commitment), uint48(block.number));
        } else {
            ++first.others;
            _others[msg.sender][commitment] = uint64(block.number);
        }
        _firsts[msg.sender] = first;
        ++_openPlusOne;
        emit ChallengeCommitted(msg.sender, commitment, uint64(block.number) + _revealBlocks, _bond);
        token.safeTransferFrom(msg.sender, address(this), _bond);
    }

    /// @inheritdoc IObjectiveFaults
    function expireChallenge(address hunter, bytes32 commitment) external {
        uint64 committed = _requireChallenge(hunter, commitment);
        uint64 last = committed + _revealBlocks;
        if (block.number <= last) revert NotExpired(last, uint64(block.number));
        _close(hunter, commitment);
        emit ChallengeExpired(hunter, commitment, _bond);
        token.burn(_bond);
    }

    /// @inheritdoc IObjectiveFaults
    function proveEquivocation(
        bytes32 salt,
        Submission calldata a,
        bytes calldata sigA,
        Submission calldata b,
        bytes calldata sigB
    ) external {
        _reveal(keccak256(abi.encode(a, sigA, b, sigB)), salt);
        _requireJudgeable(a);
        if (a.run != b.run || a.round != b.round || a.beacon != b.beacon || a.miner != b.miner) {
            revert DifferentSubmissions();
        }
        bytes32 digest = _requireSigned(a, sigA);
        if (_requireSigned(b, sigB) == digest) revert SameSubmission(digest);
        _convict(Fault.Equivocation, a.miner, a.round);
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
        _reveal(keccak256(abi.encode(s, sig, i, claimedLeafHash, claimedProof, trueLeafHash, trueProof)), salt);
        _requireJudgeable(s);
        _requireCommitted(s, _requireSigned(s, sig));
        if (i >= _samplesPerRound) revert NoSuchSample(i, _samplesPerRound);
        if (claimedLeafHash == trueLeafHash) revert DataMatches(i, trueLeafHash);
        uint64 sample = assignedSample(s.round, s.beacon, s.miner, i);
        if (
            !MerkleSha256.verify(s.dataRoot, claimedLeafHash, i, claimedProof, _dataDepth)
                || !MerkleSha256.verify(_datasetRoot, trueLeafHash, sample, trueProof, _datasetDepth)
        ) revert InvalidProof();
        _convict(Fault.WrongData, s.miner, s.round);
    }

    /// @inheritdoc IObjectiveFaults
    function challengeBlock(address hunter, bytes32 commitment) external view returns (uint64 blockNumber) {
        return _blockOf(hunter, _firsts[hunter], commitment);
    }

    /// @inheritdoc IObjectiveFaults
    function bondsHeld() external view returns (uint256) {
        return (_openPlusOne - 1) * _bond;
    }

    /// @inheritdoc IObjectiveFaults
    function assignedSample(uint64 round, bytes32 beacon, address miner, uint32 i) public view returns (uint64) {
        return Assignment.sample(run, round, beacon, miner, i, _trainSamples);
    }

    /// @inheritdoc IObjectiveFaults
    function submissionDigest(Submission calldata s) public view returns (bytes32) {
        return SubmissionLib.digest(s, registry.domainSeparator());
    }

    /// @dev Consumes the caller's commitment to this evidence.
    function _reveal(bytes32 evidenceHash, bytes32 salt) private {
        bytes32 commitment = keccak256(abi.encode(msg.sender, evidenceHash, salt));
        uint64 committed = _requireChallenge(msg.sender, commitment);
        if (block.number <= committed) revert RevealTooEarly(committed, uint64(block.number));
        uint64 last = committed + _revealBlocks;
        if (block.number > last) revert RevealTooLate(last, uint64(block.number));
        _close(msg.sender, commitment);
    }

    function _close(address hunter, bytes32 commitment) private {
        First storage first = _firsts[hunter];
        if (_isFirst(first, commitment)) {
            first.blockNumber = 0;
        } else {
            --first.others;
            delete _others[hunter][commitment];
        }
        --_openPlusOne;
    }

    function _requireChallenge(address hunter, bytes32 commitment) private view returns (uint64 committed) {
        committed = _blockOf(hunter, _firsts[hunter], commitment);
        if (committed == 0) revert NotChallenged(hunter, commitment);
    }

    function _blockOf(address hunter, First memory first, bytes32 commitment) private view returns (uint64) {
        if (_isFirst(first, commitment)) return first.blockNumber;
        return first.others == 0 ? 0 : _others[hunter][commitment];
    }

    function _isFirst(First memory first, bytes32 commitment) private pure returns (bool) {
        return first.blockNumber != 0 && first.tag == _tag(commitment);
    }

    /// @dev 176 bits of the hash tell a hunter's challenges apart as surely as all.
    function _tag(bytes32 commitment) private pure returns (bytes22) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return bytes22(commitment);
    }

    function _requireJudgeable(Submission calldata s) private view {
        if (s.run != run) revert WrongRun(s.run);
        uint64 lastEpoch = epochs.epochOf(s.round) + _fraudWindowEpochs;
        uint64 epoch = epochs.currentEpoch();
        if (epoch > lastEpoch) revert FraudWindowClosed(s.round, lastEpoch, epoch);
        bytes32 recorded = epochs.beacon(s.round, ASSIGNMENT);
        if (recorded == 0 || s.beacon != recorded) revert NotCanonicalBeacon(s.round, s.beacon, recorded);
    }

    function _requireSigned(Submission calldata s, bytes calldata sig) private view returns (bytes32 digest) {
        digest = submissionDigest(s);
        address signer = ECDSA.recover(digest, sig);
        address acting = registry.accountActing(signer, s.round);
        if (acting == address(0) || acting != s.miner) revert NotSigned(s.miner, s.round, signer);
    }

    function _requireCommitted(Submission calldata s, bytes32 digest) private view {
        uint64 epoch = epochs.epochOf(s.round);
        (Role role,) = registry.slotOf(s.miner, epoch);
        address operator = registry.operatorAt(s.miner, s.round);
        if (role != Role.Miner || !epochs.isCommitted(s.round, operator, digest)) {
            revert NotCommitted(s.miner, s.round, digest);
        }
        bytes32 registered = epochs.specHashAt(epoch);
        if (s.specHash != registered) revert WrongSpec(s.specHash, registered);
    }

    /// @dev Effects of a proof: the first one of a miner's round slashes and excludes; the hunter's bond goes back.
    function _convict(Fault kind, address miner, uint64 round) private {
        if (verdict[miner][round] != Fault.None) {
            emit FaultConfirmed(round, miner, msg.sender, kind);
        } else {
            verdict[miner][round] = kind;
            (uint256 unbonding,) = vault.unbondingOf(miner);
            uint256 stake = vault.activeOf(miner) + unbonding;
            bool equivocation = kind == Fault.Equivocation;
            uint256 amount = stake * (equivocation ? _equivocationSlashBps : _wrongDataSlashBps) / RunLib.BPS;
            uint256 bounty = amount * _bountyBps / RunLib.BPS;
            if (equivocation && bounty > _equivocationBounty) bounty = _equivocationBounty;
            uint256 taken = vault.slash(miner, amount, msg.sender, bounty);
            registry.exclude(miner);
            emit FaultProven(round, miner, msg.sender, kind, taken, bounty);
        }
        token.safeTransfer(msg.sender, _bond);
    }
}
