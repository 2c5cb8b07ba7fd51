// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RunClock} from "./RunClock.sol";
import {IBeacon} from "./interfaces/IBeacon.sol";
import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params, Role, Terms} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {TermsLib} from "./libraries/TermsLib.sol";
import {Hashes} from "@openzeppelin/contracts/utils/cryptography/Hashes.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title EpochManager
contract EpochManager is RunClock, IDutyBook {
    using TermsLib for Terms[];

    /// @dev The validators of an epoch, once a root of it is finalised; their stakes stand in `_stakes`.
    struct Snapshot {
        uint64 epoch;
        /// Slots that there were then.
        uint32 slots;
        uint128 total;
    }

    /// @dev Of a ring: used again by the round that comes one lap later.
    struct Place {
        uint256 word;
    }

    /// Of a commit's or attestation's word, so many low bits tell in which use of its place it was written; the rest is
    /// hash.
    uint256 private constant LAP_BITS = 32;
    uint256 private constant LAP_MASK = type(uint32).max;
    uint256 private constant MOST_VALIDATORS = 32;
    uint256 private constant NONE = type(uint256).max;

    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IBeacon public immutable entropySource;
    /// @inheritdoc IEpochManager
    bytes32 public immutable run;
    /// @inheritdoc IEpochManager
    uint64 public immutable ringSize;

    /// As words, which need no masking: `ringSize`, and what the windows asked for most often are made of.
    uint256 private immutable _ring;
    uint256 private immutable _firstPutOpens;
    uint256 private immutable _firstAttested;
    uint256 private immutable _roundLength;
    uint256 private immutable _putLength;
    uint64 private immutable _beaconDelayBlocks;
    uint64 private immutable _noticeEpochs;
    /// Epochs whose snapshots are kept.
    uint64 private immutable _snapshotRing;

    Params private _params;
    Terms[] private _schedule;
    mapping(uint64 round => mapping(uint8 purpose => uint64 targetBlock)) private _targets;
    mapping(uint64 round => mapping(uint8 purpose => bytes32 value)) private _beacons;
    /// By operator << 64 | place: 224 bits of the digest and the lap.
    mapping(uint256 key => Place) private _commits;
    /// By slot << 64 | place: 224 bits of keccak256(root, bitmapHash) and the lap.
    mapping(uint256 key => Place) private _attestations;
    mapping(uint64 round => bytes32 root) private _roots;
    mapping(uint64 place => Snapshot) private _snapshots;
    /// By place << 64 | slot / 2: the stakes of two slots, 128 bits each, the even one's in the low bits.
    mapping(uint256 key => uint256 stakes) private _stakes;
    /// untilRound << 216 | fromRound << 184 | role << 176 | slot << 160 | account.
    mapping(address operator => uint256) private _duties;

    constructor(Genesis memory g) RunClock(g) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        entropySource = IBeacon(g.addresses.beacon);
        run = RunLib.id(g.addresses.registry, g.nonce);

        Params memory p = g.params;
        Terms memory first = Terms({
            fromEpoch: 1,
            specHash: g.specHash,
            judge: g.judge == address(0) ? g.addresses.committee : g.judge,
            datasetRoot: p.datasetRoot,
            trainSamples: p.trainSamples,
            datasetDepth: p.datasetDepth,
            samplesPerRound: p.samplesPerRound,
            steps: p.steps,
            traceEvery: p.traceEvery,
            codecChunk: p.codecChunk,
            codecBits: p.codecBits
        });
        _validate(p, first);
        _params = p;
        _beaconDelayBlocks = p.beaconDelayBlocks;
        _noticeEpochs = p.noticeEpochs;
        // A commit is evidence until the end of the fraud window, the epoch of the round itself apart.
        _snapshotRing = uint64(p.fraudWindowEpochs) + 2;
        ringSize = (uint64(p.fraudWindowEpochs) + 2) * p.roundsPerEpoch;
        _ring = (uint64(p.fraudWindowEpochs) + 2) * p.roundsPerEpoch;
        _roundLength = uint256(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS;
        _putLength = p.putS;
        _firstPutOpens = uint256(p.genesisTime) + p.trainS;
        _firstAttested = uint256(p.genesisTime) + p.trainS + p.putS + p.publishS + p.attestS;
        _schedule.push(first);
        emit TermsAnnounced(1, first);
    }

    /// @inheritdoc IEpochManager
    function announceTerms(Terms calldata terms) external onlyGovernor {
        uint64 earliest = currentEpoch() + _noticeEpochs;
        uint64 last = _schedule[_schedule.length - 1].fromEpoch;
        if (last >= earliest) earliest = last + 1;
        if (terms.fromEpoch < earliest) revert NoticeTooShort(terms.fromEpoch, earliest);
        string memory what = TermsLib.flaw(terms);
        if (bytes(what).length != 0) revert InvalidTerms(what);
        if (terms.judge.code.length == 0) revert InvalidTerms("judge");
        _schedule.push(terms);
        emit TermsAnnounced(terms.fromEpoch, terms);
    }

    /// @inheritdoc IEpochManager
    function withdrawTerms() external onlyGovernor {
        Terms storage last = _schedule[_schedule.length - 1];
        (uint64 fromEpoch, bytes32 specHash) = (last.fromEpoch, last.specHash);
        uint64 epoch = currentEpoch();
        if (fromEpoch <= epoch + 1) revert TermsTooClose(fromEpoch, epoch);
        _schedule.pop();
        emit TermsWithdrawn(fromEpoch, specHash);
    }

    /// @inheritdoc IEpochManager
    function fixBeacon(uint64 round, uint8 purpose) external {
        _requireBeaconWindow(round, purpose);
        if (_beacons[round][purpose] != 0) revert BeaconAlreadyRecorded(round, purpose);
        uint64 target = _targets[round][purpose];
        if (target != 0 && !entropySource.expired(target)) revert BeaconAlreadyFixed(round, purpose, target);
        target = uint64(block.number) + _beaconDelayBlocks;
        _targets[round][purpose] = target;
        emit BeaconFixed(round, purpose, target);
        rewards.credit(msg.sender);
    }

    /// @inheritdoc IEpochManager
    function recordBeacon(uint64 round, uint8 purpose) external returns (bytes32 value) {
        _requireBeaconWindow(round, purpose);
        if (_beacons[round][purpose] != 0) revert BeaconAlreadyRecorded(round, purpose);
        uint64 target = _targets[round][purpose];
        if (target == 0) revert BeaconNotFixed(round, purpose);
        if (entropySource.expired(target)) revert BeaconExpired(target, uint64(block.number));
        bytes32 entropy = entropySource.entropy(target);
        if (entropy == 0) revert BeaconNotReady(target, uint64(block.number));
        value = keccak256(abi.encode(entropy, run, round, purpose));
        _beacons[round][purpose] = value;
        emit BeaconRecorded(round, purpose, target, value);
        rewards.credit(msg.sender);
    }

    /// @inheritdoc IEpochManager
    function commit(uint64 round, bytes32 digest) external {
        if (round == 0) revert InvalidRound(round);
        if (digest == 0) revert ZeroDigest();
        _requirePutWindow(round);
        Place storage place = _commits[_key(uint160(msg.sender), round)];
        uint256 word = _word(round, digest);
        if ((place.word ^ word) & LAP_MASK == 0) revert AlreadyCommitted(round, msg.sender);
        place.word = word;
        emit Committed(round, msg.sender, digest);
    }

    /// @inheritdoc IEpochManager
    function attest(uint64 round, bytes32 root, bytes calldata bitmap) external {
        if (round == 0) revert InvalidRound(round);
        uint64 t = runningTime();
        uint64 opensAfter = publishDeadline(round);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (t > opensAfter + _attestS) revert TooLate(t, opensAfter + _attestS);
        (address account, Role role, uint32 slot) = _unpackDuty(_dutyIn(round));
        if (role != Role.Validator) revert NotValidator(msg.sender, round);
        _requireBitmapFits(bitmap);
        Place storage place = _attestations[_key(slot, round)];
        uint256 word = _word(round, Hashes.efficientKeccak256(root, keccak256(bitmap)));
        if ((place.word ^ word) & LAP_MASK == 0) revert AlreadyAttested(round, slot);
        place.word = word;
        emit Attested(round, account, slot, root, bitmap);
    }

    /// @inheritdoc IEpochManager
    function finaliseRoot(uint64 round, bytes32 root, bytes32[] calldata bitmapHashes, uint32 mask) external {
        if (root == 0) revert ZeroDigest();
        _requireAttested(round, runningTime());
        if (_roots[round] != 0) revert RootAlreadyFinalised(round, _roots[round]);
        uint64 epoch = epochOf(round);
        (uint256[] memory stakes, uint256 total, bool known) = _snapshot(epoch);
        uint256 stake = 0;
        uint256 next = 0;
        for (uint32 slot = 0; slot < MOST_VALIDATORS; ++slot) {
            if ((mask >> slot) & 1 == 0) continue;
            if (slot >= stakes.length || next == bitmapHashes.length) revert NotAttested(round, slot);
            if (!attested(round, slot, root, bitmapHashes[next++])) revert NotAttested(round, slot);
            stake += stakes[slot];
        }
        // forge-lint: disable-next-line(unsafe-typecast)
        if (next != bitmapHashes.length) revert NotAttested(round, uint32(MOST_VALIDATORS));
        if (2 * stake <= total) revert NoMajority(round, root, stake, total);
        if (!known) _noteSnapshot(epoch, stakes, total);
        _roots[round] = root;
        emit RootFinalised(round, root, stake, total);
        rewards.credit(msg.sender);
    }

    /// @inheritdoc IDutyBook
    function noteDuty(address operator, Duty calldata duty_) external {
        if (msg.sender != address(registry)) revert OnlyRegistry(msg.sender);
        _duties[operator] = uint256(duty_.untilRound) << 216 | uint256(duty_.fromRound) << 184 | uint256(duty_.role)
            << 176 | uint256(duty_.slot) << 160 | uint160(duty_.account);
    }

    /// @inheritdoc IDutyBook
    function dutyOf(address operator, uint64 round, uint64 epoch)
        public
        view
        returns (address account, Role role, uint32 slot)
    {
        uint256 known = _duties[operator];
        // The entry's rounds lie both in the span of the key and in the tenure of the slot.
        if (_knows(known, round) && _knows(known, firstRound(epoch))) return _unpackDuty(known);
        return registry.duty(operator, round, epoch);
    }

    /// @inheritdoc IDutyBook
    function dutyNow(address operator, uint64 epoch)
        external
        view
        returns (uint64 time_, uint64 end, address account, Role role, uint32 slot)
    {
        time_ = runningTime();
        end = epochEnd(epoch);
        (account, role, slot) = dutyOf(operator, currentRound(), epoch);
    }

    /// @inheritdoc IEpochManager
    function beacon(uint64 round, uint8 purpose) external view returns (bytes32) {
        return _beacons[round][purpose];
    }

    /// @inheritdoc IEpochManager
    function judgedBy(uint64 round) external view returns (uint64, uint64, uint64, bytes32) {
        return (runningBlock(), currentEpoch(), epochOf(round), _beacons[round][ASSIGNMENT]);
    }

    /// @inheritdoc IEpochManager
    function beaconTarget(uint64 round, uint8 purpose) external view returns (uint64) {
        return _targets[round][purpose];
    }

    /// @inheritdoc IEpochManager
    function isCommitted(uint64 round, address operator, bytes32 digest) external view returns (bool) {
        return round != 0 && digest != 0 && _commits[_key(uint160(operator), round)].word == _word(round, digest);
    }

    /// @inheritdoc IEpochManager
    function hasAttested(uint64 round, uint32 slot) external view returns (bool) {
        return round != 0 && (_attestations[_key(slot, round)].word ^ _lap(round)) & LAP_MASK == 0;
    }

    /// @inheritdoc IEpochManager
    function attested(uint64 round, uint32 slot, bytes32 root, bytes32 bitmapHash) public view returns (bool) {
        return round != 0
            && _attestations[_key(slot, round)].word == _word(round, Hashes.efficientKeccak256(root, bitmapHash));
    }

    /// @inheritdoc IEpochManager
    function tally(uint64 round, uint32 minerSlot, bytes32 root, Ballot[] calldata ballots)
        external
        view
        returns (Tally memory found)
    {
        uint64 t = time();
        _requireAttested(round, t);
        _requireKept(round, t);
        uint256[] memory stakes;
        (stakes, found.total,) = _snapshot(epochOf(round));
        uint256 misfit = _count(found, stakes, _key(0, round) << LAP_BITS | _lap(round), minerSlot, root, ballots);
        // forge-lint: disable-next-line(unsafe-typecast)
        if (misfit != NONE) revert BallotMismatch(round, uint32(misfit));
    }

    /// @inheritdoc IEpochManager
    function snapshotStake(uint64 epoch) external view returns (uint256 total) {
        Snapshot storage snapshot = _snapshots[epoch % _snapshotRing];
        if (snapshot.epoch == epoch) return snapshot.total;
        (, total,) = _snapshot(epoch);
    }

    /// @inheritdoc IEpochManager
    function finalisedRoot(uint64 round) external view returns (bytes32) {
        return _roots[round];
    }

    /// @inheritdoc IEpochManager
    function roundView(uint64 round) external view returns (RoundView memory view_) {
        view_.round = round;
        view_.epoch = epochOf(round);
        view_.start = roundStart(round);
        view_.putOpens = putOpens(round);
        view_.putDeadline = putDeadline(round);
        view_.publishDeadline = publishDeadline(round);
        view_.attestDeadline = attestDeadline(round);
        view_.end = view_.start + _roundS;
        view_.assignmentTarget = _targets[round][ASSIGNMENT];
        view_.evaluationTarget = _targets[round][EVALUATION];
        view_.assignment = _beacons[round][ASSIGNMENT];
        view_.evaluation = _beacons[round][EVALUATION];
        view_.root = _roots[round];
    }

    /// @inheritdoc IEpochManager
    function termsAt(uint64 epoch) external view returns (Terms memory terms) {
        uint256 count = _schedule.countAt(epoch);
        if (count != 0) terms = _schedule[count - 1];
    }

    /// @inheritdoc IEpochManager
    function dataTermsAt(uint64 epoch) external view returns (DataTerms memory terms) {
        uint256 count = _schedule.countAt(epoch);
        if (count == 0) return terms;
        Terms storage t = _schedule[count - 1];
        terms = DataTerms(t.specHash, t.datasetRoot, t.trainSamples, t.samplesPerRound, t.datasetDepth);
    }

    /// @inheritdoc IEpochManager
    function codecTermsAt(uint64 epoch) external view returns (bytes32 specHash, uint16 chunk, uint8 bits) {
        uint256 count = _schedule.countAt(epoch);
        if (count == 0) return (0, 0, 0);
        Terms storage t = _schedule[count - 1];
        return (t.specHash, t.codecChunk, t.codecBits);
    }

    /// @inheritdoc IEpochManager
    function specHashAt(uint64 epoch) external view returns (bytes32 specHash) {
        uint256 count = _schedule.countAt(epoch);
        if (count != 0) specHash = _schedule[count - 1].specHash;
    }

    /// @inheritdoc IEpochManager
    function schedule() external view returns (Terms[] memory) {
        return _schedule;
    }

    /// @inheritdoc IEpochManager
    function params() external view returns (Params memory) {
        return _params;
    }

    /// @dev Who the caller acts for in a round: an entry of the duty book, its rounds left out if the registry was asked.
    function _dutyIn(uint64 round) private view returns (uint256 known) {
        known = _duties[msg.sender];
        if (_knows(known, round)) return known;
        (address account, Role role, uint32 slot) = registry.duty(msg.sender, round, epochOf(round));
        return uint256(role) << 176 | uint256(slot) << 160 | uint160(account);
    }

    function _knows(uint256 known, uint64 round) private pure returns (bool) {
        return ((known >> 184) & type(uint32).max) <= round && round < known >> 216;
    }

    function _unpackDuty(uint256 known) private pure returns (address account, Role role, uint32 slot) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return (address(uint160(known)), Role(uint8(known >> 176)), uint16(known >> 160));
    }

    /// @dev The stakes of an epoch's validators by slot: as noted, or out of registry and vault.
    // Nothing is drawn: an epoch has its place in the ring, and the place says whose it is.
    // slither-disable-next-line weak-prng,incorrect-equality
    function _snapshot(uint64 epoch) private view returns (uint256[] memory stakes, uint256 total, bool known) {
        uint64 place = epoch % _snapshotRing;
        Snapshot storage noted = _snapshots[place];
        if (noted.epoch == epoch) {
            stakes = new uint256[](noted.slots);
            for (uint256 slot = 0; slot < stakes.length; slot += 2) {
                uint256 pair = _stakes[uint256(place) << 64 | slot / 2];
                // forge-lint: disable-next-line(unsafe-typecast)
                stakes[slot] = uint128(pair);
                if (slot + 1 < stakes.length) stakes[slot + 1] = pair >> 128;
            }
            return (stakes, noted.total, true);
        }
        stakes = vault.stakesAt(registry.slotAccounts(Role.Validator, epoch), epoch);
        for (uint256 slot = 0; slot < stakes.length; ++slot) {
            total += stakes[slot];
        }
    }

    // As above.
    // slither-disable-next-line weak-prng
    function _noteSnapshot(uint64 epoch, uint256[] memory stakes, uint256 total) private {
        uint64 place = epoch % _snapshotRing;
        uint256 count = stakes.length;
        // forge-lint: disable-next-line(unsafe-typecast)
        _snapshots[place] = Snapshot({epoch: epoch, slots: uint32(count), total: SafeCast.toUint128(total)});
        for (uint256 slot = 0; slot < count; slot += 2) {
            // Each is at most the total.
            uint256 high = slot + 1 < count ? stakes[slot + 1] : 0;
            _stakes[uint256(place) << 64 | slot / 2] = high << 128 | stakes[slot];
        }
    }

    /// @dev Unchecked: sums of parts of a snapshot's total.
    /// @param place Place of the round's attestations << 32 | lap.
    /// @return misfit Slot of the first ballot that does not fit; NONE if all do.
    function _count(
        Tally memory found,
        uint256[] memory stakes,
        uint256 place,
        uint256 minerSlot,
        bytes32 root,
        Ballot[] calldata ballots
    ) private view returns (uint256 misfit) {
        unchecked {
            uint256 next = 0;
            for (uint256 slot = 0; slot < stakes.length; ++slot) {
                uint256 word = _attestations[slot << 64 | place >> LAP_BITS].word;
                if ((word ^ place) & LAP_MASK != 0) continue;
                if (next == ballots.length || ballots[next].slot != slot) {
                    found.unopened += stakes[slot];
                    continue;
                }
                if (!_add(found, ballots[next++], word, stakes[slot], minerSlot, root)) return slot;
            }
            return next == ballots.length ? NONE : ballots[next].slot;
        }
    }

    /// @return fits Whether the ballot is what the word says.
    function _add(
        Tally memory found,
        Ballot calldata ballot,
        uint256 word,
        uint256 stake,
        uint256 minerSlot,
        bytes32 root
    ) private pure returns (bool fits) {
        unchecked {
            bytes32 ballotRoot = ballot.root;
            bytes calldata bitmap = ballot.bitmap;
            uint256 hash = uint256(Hashes.efficientKeccak256(ballotRoot, keccak256(bitmap)));
            if (hash >> LAP_BITS != word >> LAP_BITS) return false;
            if (ballotRoot == root) found.forRoot += stake;
            uint256 place = minerSlot / 8;
            if (place < bitmap.length && (uint8(bitmap[place]) >> (minerSlot % 8)) & 1 == 1) {
                found.bitSet += stake;
                found.setters |= uint32(1) << ballot.slot;
            }
            return true;
        }
    }

    /// @dev Where the ring keeps what somebody (an operator or a slot) said in a round.
    function _key(uint256 who, uint64 round) private view returns (uint256) {
        return who << 64 | round % _ring;
    }

    /// @dev From 1 on, so that an unused place is of no lap. Place and lap name the round.
    function _lap(uint64 round) private view returns (uint256) {
        unchecked {
            return (round / _ring + 1) & LAP_MASK;
        }
    }

    function _word(uint64 round, bytes32 hash) private view returns (uint256) {
        return (uint256(hash) & ~LAP_MASK) | _lap(round);
    }

    /// @dev In 256 bits, where no sum of windows overflows; a time before the window wraps to a large one.
    function _requirePutWindow(uint64 round) private view {
        unchecked {
            if (_runningTime() - (_firstPutOpens + (uint256(round) - 1) * _roundLength) <= _putLength) return;
        }
        uint64 t = time();
        if (t < putOpens(round)) revert TooEarly(t, putOpens(round));
        revert TooLate(t, putDeadline(round));
    }

    /// @dev After a round's attest deadline.
    function _requireAttested(uint64 round, uint64 t) private view {
        if (round == 0) revert InvalidRound(round);
        unchecked {
            if (t > _firstAttested + (uint256(round) - 1) * _roundLength) return;
        }
        revert TooEarly(t, attestDeadline(round));
    }

    /// @dev Before the round that uses its places again. In 256 bits; of a round that started, so that no time wraps.
    function _requireKept(uint64 round, uint64 t) private view {
        unchecked {
            if (t - _genesisTime < (uint256(round) - 1 + _ring) * _roundLength) return;
        }
        revert TooOld(round);
    }

    function _requireBeaconWindow(uint64 round, uint8 purpose) private view {
        if (round == 0) revert InvalidRound(round);
        uint64 t = runningTime();
        uint64 opensAfter = beaconOpensAfter(round, purpose);
        uint64 cutOff = beaconCutOff(round, purpose);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (t > cutOff) revert TooLate(t, cutOff);
    }

    function _requireBitmapFits(bytes calldata bitmap) private view {
        uint32 count = registry.slotCount(Role.Miner);
        uint256 length = bitmap.length;
        if (length * 8 <= count) return;
        // The last byte may be partly in use; its unused high bits must be 0.
        if (length * 8 >= uint256(count) + 8 || uint8(bitmap[length - 1]) >> (count % 8) != 0) {
            revert BitmapTooLong(length, count);
        }
    }

    function _validate(Params memory p, Terms memory first) private view {
        if (p.genesisTime < block.timestamp || p.genesisTime <= p.applyS) revert InvalidParams("genesisTime");
        if (p.roundsPerEpoch == 0) revert InvalidParams("roundsPerEpoch");
        if (p.trainS == 0 || p.putS == 0 || p.publishS == 0 || p.attestS == 0 || p.applyS == 0) {
            revert InvalidParams("round windows");
        }
        if (p.weightCommitS == 0 || p.weightRevealS == 0) revert InvalidParams("weight windows");
        if (p.settlementTurnS == 0 || p.settlementWindowS == 0 || p.settlementVoidS == 0) {
            revert InvalidParams("settlement windows");
        }
        if (p.fraudWindowEpochs == 0) revert InvalidParams("fraudWindowEpochs");
        // Who does not like announced terms leaves, and is past the fraud window of its last round before they apply.
        if (p.noticeEpochs <= p.fraudWindowEpochs) revert InvalidParams("noticeEpochs");
        if (p.pauseMostS == 0 || p.pauseEveryS <= p.pauseMostS) revert InvalidParams("pause");
        if (p.beaconDelayBlocks == 0) revert InvalidParams("beaconDelayBlocks");
        if (p.minMinerStake == 0 || p.minValidatorStake == 0) revert InvalidParams("minimum stakes");
        if (p.maxMiners == 0 || p.maxMiners > 4096) revert InvalidParams("maxMiners");
        string memory what = TermsLib.flaw(first);
        if (bytes(what).length != 0) revert InvalidParams(what);
        if (
            p.equivocationSlashBps > RunLib.BPS || p.wrongDataSlashBps > RunLib.BPS || p.minersBps > RunLib.BPS
                || p.computationSlashBps > RunLib.BPS || p.nativeSlashBps > RunLib.BPS
                || p.withheldSlashBps > RunLib.BPS
        ) revert InvalidParams("basis points");
        if (p.bountyBps > 4000) revert InvalidParams("bountyBps");
        if (p.challengeRevealBlocks == 0) revert InvalidParams("challengeRevealBlocks");
        if (p.choreCapPerEpoch > p.emissionPerEpoch) revert InvalidParams("choreCapPerEpoch");
    }
}
