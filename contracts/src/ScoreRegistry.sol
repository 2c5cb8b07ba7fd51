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
    /// @dev Of a slot whose bit is set in the masks of its place, and left over from an older epoch otherwise.
    struct Entry {
        /// The commitment; once revealed, the weights' root in its place.
        bytes32 hash;
        /// account << 96 | its stake in the snapshot, which has at most 92 bits, see StakeTrace.
        uint256 committer;
    }

    /// @dev What the validators of an epoch did, in one word; see `_masks`.
    struct Masks {
        uint256 word;
        /// Stake of all validators in the epoch's snapshot, noted by the first commit.
        uint256 total;
    }

    uint256 private constant COMMITTED_SHIFT = 32;
    uint256 private constant REVEALED_SHIFT = 64;
    uint256 private constant PENALISED_SHIFT = 96;
    uint256 private constant STAKE_SHIFT = 128;
    uint256 private constant ACCOUNT_SHIFT = 96;

    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    bytes32 public immutable run;

    uint256 private immutable _mostWeightBytes;
    uint256 private immutable _missingRevealPenalty;
    uint256 private immutable _fraudWindowEpochs;
    uint256 private immutable _genesisTime;
    uint256 private immutable _epochS;
    uint256 private immutable _weightCommitS;
    uint256 private immutable _weightRevealS;
    /// Epochs that are kept.
    uint256 private immutable _ring;

    /// Stake of those who revealed << 128 | penalised << 96 | revealed << 64 | committed << 32 | epoch, with one bit per
    /// validator slot in each mask, of the epoch that used the place last.
    mapping(uint256 place => Masks) private _masks;
    /// By place << 32 | slot.
    // Written through `_entry`.
    // slither-disable-next-line uninitialized-state
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
        _epochS = p.roundsPerEpoch * (uint256(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS);
        _weightCommitS = p.weightCommitS;
        _weightRevealS = p.weightRevealS;
        // Whoever needs what was said of an epoch (its settlement and every game about it, a penalty) is done within
        // `unbondingS` of its end, as the vault and the distributor see to. Epoch e + _ring starts to write over e's place
        // when it ends.
        uint256 kept = p.unbondingS / _epochS + 1;
        _ring = (kept > p.fraudWindowEpochs ? kept : p.fraudWindowEpochs) + 1;
    }

    /// @inheritdoc IScoreRegistry
    function commitWeights(uint64 epoch, bytes32 commitment) external {
        if (epoch == 0) revert InvalidEpoch(epoch);
        if (commitment == 0) revert ZeroCommitment();
        (uint64 t, uint64 end, address account, Role role, uint32 slot) =
            IDutyBook(address(epochs)).dutyNow(msg.sender, epoch);
        _requireWithin(t, end, _weightCommitS);
        if (role != Role.Validator) revert NotValidator(msg.sender, epoch);
        (Masks storage masks, uint256 word) = _masksOf(epoch);
        uint256 bit = _bit(slot) << COMMITTED_SHIFT;
        if (word & bit != 0) revert AlreadyCommitted(epoch, slot);
        // forge-lint: disable-next-line(unsafe-typecast)
        if (uint32(word >> COMMITTED_SHIFT) == 0) masks.total = epochs.snapshotStake(epoch);
        masks.word = word | bit;
        Entry storage entry = _entry(epoch, slot);
        entry.hash = commitment;
        entry.committer = uint256(uint160(account)) << ACCOUNT_SHIFT | vault.stakeAt(account, epoch);
        emit WeightsCommitted(epoch, account, slot, commitment);
    }

    /// @inheritdoc IScoreRegistry
    function revealWeights(uint64 epoch, uint32 slot, address account, bytes calldata weights, bytes32 salt) external {
        unchecked {
            _requireWithin(epochs.runningTime(), _epochEnd(epoch) + _weightCommitS, _weightRevealS);
        }
        if (weights.length % 2 != 0 || weights.length > _mostWeightBytes) {
            revert InvalidWeightsLength(weights.length, _mostWeightBytes);
        }
        (Masks storage masks, uint256 word) = _masksOf(epoch);
        uint256 bit = _bit(slot);
        if (word & bit << COMMITTED_SHIFT == 0) revert NotCommitted(epoch, slot);
        if (word & bit << REVEALED_SHIFT != 0) revert AlreadyRevealed(epoch, slot);
        bytes32 root = Weights.root(weights);
        bytes32 commitment = keccak256(abi.encode(run, account, epoch, root, salt));
        uint256 stake = _takeEntry(_entry(epoch, slot), account, commitment, root);
        unchecked {
            // At most 32 stakes of 92 bits.
            masks.word = (word | bit << REVEALED_SHIFT) + (stake << STAKE_SHIFT);
        }
        emit WeightsRevealed(epoch, account, slot, root, weights);
    }

    /// @inheritdoc IScoreRegistry
    // Calls the run's vault, which tells what it took.
    // slither-disable-next-line reentrancy-events
    function penaliseMissingReveal(uint64 epoch, uint32 slot) external {
        uint256 opensAfter = _epochEnd(epoch) + _weightCommitS + _weightRevealS;
        // The last second of the fraud window.
        uint256 closes = _epochEnd(epoch) + _fraudWindowEpochs * _epochS - 1;
        _requireWithin(epochs.runningTime(), opensAfter, closes - opensAfter);
        address account = registry.slotAccount(Role.Validator, slot, epoch);
        if (account == address(0)) revert NoSuchValidator(epoch, slot);
        (Masks storage masks, uint256 word) = _masksOf(epoch);
        uint256 bit = _bit(slot);
        if (word & bit << REVEALED_SHIFT != 0) revert AlreadyRevealed(epoch, slot);
        if (word & bit << PENALISED_SHIFT != 0) revert AlreadyPenalised(epoch, slot);
        masks.word = word | bit << PENALISED_SHIFT;
        uint256 taken = vault.slash(account, _missingRevealPenalty, address(0), 0);
        emit MissingRevealPenalised(epoch, account, slot, taken);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRootOf(bytes calldata weights) external pure returns (bytes32) {
        return Weights.root(weights);
    }

    /// @inheritdoc IScoreRegistry
    function weightsRoot(uint64 epoch, uint32 slot) external view returns (bytes32) {
        return _wordOf(epoch) & _bit(slot) << REVEALED_SHIFT != 0 ? _entry(epoch, slot).hash : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function commitmentOf(uint64 epoch, uint32 slot) external view returns (bytes32) {
        uint256 word = _wordOf(epoch);
        uint256 open = word >> COMMITTED_SHIFT & ~(word >> REVEALED_SHIFT);
        return open & _bit(slot) != 0 ? _entry(epoch, slot).hash : bytes32(0);
    }

    /// @inheritdoc IScoreRegistry
    function epochScores(uint64 epoch) external view returns (EpochScores memory scores) {
        uint256 word = _wordOf(epoch);
        // The fields of a word.
        // forge-lint: disable-start(unsafe-typecast)
        scores.committed = uint32(word >> COMMITTED_SHIFT);
        scores.revealed = uint32(word >> REVEALED_SHIFT);
        scores.penalised = uint32(word >> PENALISED_SHIFT);
        scores.revealedStake = uint128(word >> STAKE_SHIFT);
        // forge-lint: disable-end(unsafe-typecast)
        if (scores.committed != 0) scores.totalStake = SafeCast.toUint128(_masks[epoch % _ring].total);
    }

    /// @inheritdoc IScoreRegistry
    function hasQuorum(uint64 epoch) external view returns (bool) {
        (Masks storage masks, uint256 word) = _masksOf(epoch);
        uint256 revealedStake = word >> STAKE_SHIFT;
        return revealedStake != 0 && 2 * revealedStake >= masks.total;
    }

    /// @dev Puts the revealed root in the place of the commitment that it fits.
    function _takeEntry(Entry storage entry, address account, bytes32 commitment, bytes32 root)
        private
        returns (uint256 stake)
    {
        if (commitment != entry.hash) revert CommitmentMismatch(entry.hash, commitment);
        uint256 committer = entry.committer;
        if (uint256(uint160(account)) != committer >> ACCOUNT_SHIFT) {
            // forge-lint: disable-next-line(unsafe-typecast)
            revert NotTheCommitter(account, address(uint160(committer >> ACCOUNT_SHIFT)));
        }
        entry.hash = root;
        stake = committer & type(uint96).max;
    }

    /// @dev After `opensAfter`, and for `lengthS` seconds.
    function _requireWithin(uint256 t, uint256 opensAfter, uint256 lengthS) private pure {
        // Sums of times, far below 2^64 where a window is open.
        // forge-lint: disable-start(unsafe-typecast)
        if (t <= opensAfter) revert TooEarly(uint64(t), uint64(opensAfter));
        if (t - opensAfter > lengthS) revert TooLate(uint64(t), uint64(opensAfter + lengthS));
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @return masks The epoch's place.
    /// @return word What it says of the epoch: nothing yet, or nothing any more, where it holds another one's.
    function _masksOf(uint64 epoch) private view returns (Masks storage masks, uint256 word) {
        masks = _masks[epoch % _ring];
        word = masks.word;
        // An epoch number needs 32 bits in a century of one-second epochs; what is written was checked by its window.
        // forge-lint: disable-next-line(unsafe-typecast)
        if (uint32(word) != epoch) word = uint32(epoch);
    }

    function _wordOf(uint64 epoch) private view returns (uint256 word) {
        (, word) = _masksOf(epoch);
    }

    function _entry(uint64 epoch, uint32 slot) private view returns (Entry storage) {
        return _entries[(epoch % _ring) << 32 | slot];
    }

    /// @dev In 256 bits, where it can't overflow.
    function _epochEnd(uint64 epoch) private view returns (uint256) {
        if (epoch == 0) revert InvalidEpoch(epoch);
        unchecked {
            return _genesisTime + epoch * _epochS;
        }
    }

    function _bit(uint32 slot) private pure returns (uint256) {
        return slot < 32 ? uint256(1) << slot : 0;
    }
}
