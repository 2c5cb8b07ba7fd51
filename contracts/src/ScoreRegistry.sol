// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Role} from "./interfaces/IRun.sol";
import {IScoreRegistry} from "./interfaces/IScoreRegistry.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {Weights} from "./libraries/Weights.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title ScoreRegistry
contract ScoreRegistry is IScoreRegistry {
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    bytes32 public immutable run;

    uint256 private immutable _mostWeightBytes;
    uint256 private immutable _missingRevealPenalty;
    uint64 private immutable _fraudWindowEpochs;
    uint64 private immutable _weightCommitS;
    uint64 private immutable _weightRevealS;

    mapping(uint64 epoch => EpochScores) private _epochs;
    /// The commitment; once revealed, the weights' root in its place.
    mapping(uint64 epoch => mapping(uint32 slot => bytes32)) private _entries;

    constructor(Genesis memory g) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        run = RunLib.id(g.addresses.registry, g.nonce);
        _mostWeightBytes = 2 * uint256(g.params.maxMiners);
        _missingRevealPenalty = g.params.missingRevealPenalty;
        _fraudWindowEpochs = g.params.fraudWindowEpochs;
        _weightCommitS = g.params.weightCommitS;
        _weightRevealS = g.params.weightRevealS;
    }

    /// @inheritdoc IScoreRegistry
    function commitWeights(uint64 epoch, bytes32 commitment) external {
        if (commitment == 0) revert ZeroCommitment();
        (address account, uint32 slot) = _validator(epoch, 0, _weightCommitS);
        EpochScores storage scores = _epochs[epoch];
        uint32 bit = _bit(slot);
        if (scores.committed & bit != 0) revert AlreadyCommitted(epoch, slot);
        scores.committed |= bit;
        _entries[epoch][slot] = commitment;
        emit WeightsCommitted(epoch, account, slot, commitment);
    }

    /// @inheritdoc IScoreRegistry
    function revealWeights(uint64 epoch, bytes calldata weights, bytes32 salt) external {
        (address account, uint32 slot) = _validator(epoch, _weightCommitS, _weightCommitS + _weightRevealS);
        if (weights.length % 2 != 0 || weights.length > _mostWeightBytes) {
            revert InvalidWeightsLength(weights.length, _mostWeightBytes);
        }
        EpochScores memory scores = _epochs[epoch];
        uint32 bit = _bit(slot);
        if (scores.committed & bit == 0) revert NotCommitted(epoch, slot);
        if (scores.revealed & bit != 0) revert AlreadyRevealed(epoch, slot);
        bytes32 root = Weights.root(weights);
        bytes32 commitment = keccak256(abi.encode(run, account, epoch, root, salt));
        if (commitment != _entries[epoch][slot]) revert CommitmentMismatch(_entries[epoch][slot], commitment);

        if (scores.revealed == 0) scores.totalStake = SafeCast.toUint128(registry.totalValidatorStake(epoch));
        scores.revealed |= bit;
        scores.revealedStake += SafeCast.toUint128(vault.stakeAt(account, epoch));
        _epochs[epoch] = scores;
        _entries[epoch][slot] = root;
        emit WeightsRevealed(epoch, account, slot, root, weights);
    }

    /// @inheritdoc IScoreRegistry
    function penaliseMissingReveal(uint64 epoch, uint32 slot) external {
        if (epoch == 0) revert InvalidEpoch(epoch);
        uint64 t = epochs.time();
        uint64 opensAfter = epochs.weightRevealDeadline(epoch);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        uint64 closes = epochs.epochEnd(epoch + _fraudWindowEpochs);
        if (t >= closes) revert TooLate(t, closes - 1);
        address account = registry.slotAccount(Role.Validator, slot, epoch);
        if (account == address(0)) revert NoSuchValidator(epoch, slot);
        EpochScores storage scores = _epochs[epoch];
        uint32 bit = _bit(slot);
        if (scores.revealed & bit != 0) revert AlreadyRevealed(epoch, slot);
        if (scores.penalised & bit != 0) revert AlreadyPenalised(epoch, slot);
        scores.penalised |= bit;
        uint256 taken = vault.slash(account, _missingRevealPenalty, address(0), 0);
        emit MissingRevealPenalised(epoch, account, slot, taken);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRootOf(bytes calldata weights) external pure returns (bytes32) {
        return Weights.root(weights);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRoot(uint64 epoch, uint32 slot) external view returns (bytes32) {
        return _epochs[epoch].revealed & _bit(slot) != 0 ? _entries[epoch][slot] : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function commitmentOf(uint64 epoch, uint32 slot) external view returns (bytes32) {
        return _epochs[epoch].revealed & _bit(slot) == 0 ? _entries[epoch][slot] : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function epochScores(uint64 epoch) external view returns (EpochScores memory) {
        return _epochs[epoch];
    }

    /// @inheritdoc IScoreRegistry
    function hasQuorum(uint64 epoch) external view returns (bool) {
        EpochScores storage scores = _epochs[epoch];
        uint256 total = scores.totalStake;
        return total != 0 && 2 * uint256(scores.revealedStake) >= total;
    }

    /// @dev The validator that the caller acts for now, by the slot that it held in `epoch`.
    /// @param opensAfterS The window, in seconds after the end of the epoch.
    function _validator(uint64 epoch, uint64 opensAfterS, uint64 deadlineS)
        private
        view
        returns (address account, uint32 slot)
    {
        if (epoch == 0) revert InvalidEpoch(epoch);
        uint64 t;
        uint64 end;
        Role role;
        (t, end, account, role, slot) = IDutyBook(address(epochs)).dutyNow(msg.sender, epoch);
        if (t <= end + opensAfterS) revert TooEarly(t, end + opensAfterS);
        if (t > end + deadlineS) revert TooLate(t, end + deadlineS);
        if (role != Role.Validator) revert NotValidator(msg.sender, epoch);
    }

    function _bit(uint32 slot) private pure returns (uint32) {
        return slot < 32 ? uint32(1) << slot : 0;
    }
}
