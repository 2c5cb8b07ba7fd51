// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {IScoreRegistry} from "./interfaces/IScoreRegistry.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {Weights} from "./libraries/Weights.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title ScoreRegistry
contract ScoreRegistry is IScoreRegistry {
    /// @dev Of the epoch that used its place last. The masks have one bit per validator slot.
    struct Masks {
        uint32 epoch;
        uint32 committed;
        uint32 revealed;
        uint32 penalised;
        uint128 revealedStake;
    }

    /// @dev Of a slot whose bit is set in the masks of its place, and left over from an older epoch otherwise.
    struct Entry {
        /// The commitment; once revealed, the weights' root in its place.
        bytes32 hash;
        address account;
        /// The account's in the snapshot: a stake has at most 92 bits, see StakeTrace.
        uint96 stake;
    }

    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    bytes32 public immutable run;

    uint256 private immutable _mostWeightBytes;
    uint256 private immutable _missingRevealPenalty;
    uint64 private immutable _fraudWindowEpochs;
    uint64 private immutable _genesisTime;
    uint64 private immutable _epochS;
    uint64 private immutable _weightCommitS;
    uint64 private immutable _weightRevealS;
    /// Epochs that are kept.
    uint64 private immutable _ring;

    mapping(uint64 place => Masks) private _masks;
    /// By place << 32 | slot.
    mapping(uint256 key => Entry) private _entries;

    constructor(Genesis memory g) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        run = RunLib.id(g.addresses.registry, g.nonce);
        Params memory p = g.params;
        _mostWeightBytes = 2 * uint256(p.maxMiners);
        _missingRevealPenalty = p.missingRevealPenalty;
        _fraudWindowEpochs = p.fraudWindowEpochs;
        _genesisTime = p.genesisTime;
        _epochS = p.roundsPerEpoch * (uint64(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS);
        _weightCommitS = p.weightCommitS;
        _weightRevealS = p.weightRevealS;
        // A settlement is posted by the time when its epoch may be void, and contested for at most two windows and a turn
        // after that. Epoch e + _ring starts to write over e's place when it ends.
        uint64 contested = uint64(p.weightCommitS) + p.weightRevealS + p.settlementVoidS + 2
            * uint64(p.settlementWindowS) + 2 * uint64(p.settlementTurnS);
        uint64 kept = contested / _epochS + 1;
        _ring = (kept > p.fraudWindowEpochs ? kept : p.fraudWindowEpochs) + 1;
    }

    /// @inheritdoc IScoreRegistry
    function commitWeights(uint64 epoch, bytes32 commitment) external {
        if (epoch == 0) revert InvalidEpoch(epoch);
        if (commitment == 0) revert ZeroCommitment();
        (uint64 t, uint64 end, address account, Role role, uint32 slot) =
            IDutyBook(address(epochs)).dutyNow(msg.sender, epoch);
        if (t <= end) revert TooEarly(t, end);
        if (t > end + _weightCommitS) revert TooLate(t, end + _weightCommitS);
        if (role != Role.Validator) revert NotValidator(msg.sender, epoch);
        Masks memory masks = _masksOf(epoch);
        uint32 bit = _bit(slot);
        if (masks.committed & bit != 0) revert AlreadyCommitted(epoch, slot);
        masks.committed |= bit;
        _masks[epoch % _ring] = masks;
        Entry storage entry = _entry(epoch, slot);
        entry.hash = commitment;
        (entry.account, entry.stake) = (account, SafeCast.toUint96(vault.stakeAt(account, epoch)));
        emit WeightsCommitted(epoch, account, slot, commitment);
    }

    /// @inheritdoc IScoreRegistry
    function revealWeights(uint64 epoch, uint32 slot, address account, bytes calldata weights, bytes32 salt) external {
        _requireRevealWindow(epoch);
        if (weights.length % 2 != 0 || weights.length > _mostWeightBytes) {
            revert InvalidWeightsLength(weights.length, _mostWeightBytes);
        }
        Masks memory masks = _masksOf(epoch);
        uint32 bit = _bit(slot);
        if (masks.committed & bit == 0) revert NotCommitted(epoch, slot);
        if (masks.revealed & bit != 0) revert AlreadyRevealed(epoch, slot);
        Entry storage entry = _entry(epoch, slot);
        bytes32 root = Weights.root(weights);
        _requireCommitment(entry.hash, keccak256(abi.encode(run, account, epoch, root, salt)));
        entry.hash = root;
        (address committer, uint96 stake) = (entry.account, entry.stake);
        if (account != committer) revert NotTheCommitter(account, committer);

        masks.revealed |= bit;
        masks.revealedStake += stake;
        _masks[epoch % _ring] = masks;
        emit WeightsRevealed(epoch, account, slot, root, weights);
    }

    /// @inheritdoc IScoreRegistry
    function penaliseMissingReveal(uint64 epoch, uint32 slot) external {
        if (epoch == 0) revert InvalidEpoch(epoch);
        uint64 t = epochs.runningTime();
        uint64 opensAfter = _epochEnd(epoch) + _weightCommitS + _weightRevealS;
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        uint64 closes = _epochEnd(epoch + _fraudWindowEpochs);
        if (t >= closes) revert TooLate(t, closes - 1);
        address account = registry.slotAccount(Role.Validator, slot, epoch);
        if (account == address(0)) revert NoSuchValidator(epoch, slot);
        Masks memory masks = _masksOf(epoch);
        uint32 bit = _bit(slot);
        if (masks.revealed & bit != 0) revert AlreadyRevealed(epoch, slot);
        if (masks.penalised & bit != 0) revert AlreadyPenalised(epoch, slot);
        masks.penalised |= bit;
        _masks[epoch % _ring] = masks;
        uint256 taken = vault.slash(account, _missingRevealPenalty, address(0), 0);
        emit MissingRevealPenalised(epoch, account, slot, taken);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRootOf(bytes calldata weights) external pure returns (bytes32) {
        return Weights.root(weights);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRoot(uint64 epoch, uint32 slot) external view returns (bytes32) {
        return _masksOf(epoch).revealed & _bit(slot) != 0 ? _entry(epoch, slot).hash : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function commitmentOf(uint64 epoch, uint32 slot) external view returns (bytes32) {
        Masks memory masks = _masksOf(epoch);
        return masks.committed & ~masks.revealed & _bit(slot) != 0 ? _entry(epoch, slot).hash : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function epochScores(uint64 epoch) external view returns (EpochScores memory) {
        Masks memory masks = _masksOf(epoch);
        return EpochScores({
            committed: masks.committed,
            revealed: masks.revealed,
            penalised: masks.penalised,
            revealedStake: masks.revealedStake,
            totalStake: masks.revealed == 0 ? 0 : SafeCast.toUint128(epochs.snapshotStake(epoch))
        });
    }

    /// @inheritdoc IScoreRegistry
    function hasQuorum(uint64 epoch) external view returns (bool) {
        uint256 revealedStake = _masksOf(epoch).revealedStake;
        return revealedStake != 0 && 2 * revealedStake >= epochs.snapshotStake(epoch);
    }

    function _requireRevealWindow(uint64 epoch) private view {
        if (epoch == 0) revert InvalidEpoch(epoch);
        uint64 t = epochs.runningTime();
        uint64 opensAfter = _epochEnd(epoch) + _weightCommitS;
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (t > opensAfter + _weightRevealS) revert TooLate(t, opensAfter + _weightRevealS);
    }

    function _requireCommitment(bytes32 committed, bytes32 revealed) private pure {
        if (committed != revealed) revert CommitmentMismatch(committed, revealed);
    }

    /// @dev All 0 but for the epoch where its place holds another one's.
    function _masksOf(uint64 epoch) private view returns (Masks memory masks) {
        masks = _masks[epoch % _ring];
        if (masks.epoch == epoch) return masks;
        // An epoch number needs 32 bits in a century of one-second epochs; what is written was checked by its window.
        // forge-lint: disable-next-line(unsafe-typecast)
        return Masks({epoch: uint32(epoch), committed: 0, revealed: 0, penalised: 0, revealedStake: 0});
    }

    function _entry(uint64 epoch, uint32 slot) private view returns (Entry storage) {
        return _entries[uint256(epoch % _ring) << 32 | slot];
    }

    function _epochEnd(uint64 epoch) private view returns (uint64) {
        return _genesisTime + epoch * _epochS;
    }

    function _bit(uint32 slot) private pure returns (uint32) {
        return slot < 32 ? uint32(1) << slot : 0;
    }
}
