// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IBeacon} from "./interfaces/IBeacon.sol";
import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Params, Role, Terms} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {Hashes} from "@openzeppelin/contracts/utils/cryptography/Hashes.sol";

/// @title EpochManager
contract EpochManager is IEpochManager, IDutyBook {
    /// @dev What was committed in a place of the ring.
    struct Commit {
        bytes32 word;
    }

    uint8 private constant ASSIGNMENT = 1;
    uint8 private constant EVALUATION = 2;
    /// Of a commit's word, so many low bits tell in which use of the place it was made; the rest is hash.
    uint256 private constant LAP_MASK = type(uint32).max;

    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IBeacon public immutable entropySource;
    IRewardsDistributor public immutable rewards;
    /// @inheritdoc IEpochManager
    bytes32 public immutable run;
    /// @inheritdoc IEpochManager
    uint64 public immutable ringSize;

    uint64 private immutable _genesisTime;
    uint64 private immutable _roundsPerEpoch;
    uint64 private immutable _roundS;
    uint64 private immutable _trainS;
    uint64 private immutable _putS;
    uint64 private immutable _publishS;
    uint64 private immutable _attestS;
    uint64 private immutable _applyS;
    uint64 private immutable _weightCommitS;
    uint64 private immutable _weightRevealS;
    uint64 private immutable _settlementVoidS;
    uint64 private immutable _beaconDelayBlocks;

    Params private _params;
    Terms private _terms;
    ScheduleEntry[] private _schedule;
    mapping(uint64 round => mapping(uint8 purpose => uint64 targetBlock)) private _targets;
    mapping(uint64 round => mapping(uint8 purpose => bytes32 value)) private _beacons;
    /// By operator << 64 | place.
    mapping(uint256 key => Commit) private _commits;
    mapping(uint32 slot => mapping(uint64 place => Attestation)) private _attestations;
    mapping(uint64 round => bytes32 root) private _roots;
    /// untilRound << 216 | fromRound << 184 | role << 176 | slot << 160 | account.
    mapping(address operator => uint256) private _duties;

    constructor(Genesis memory g) {
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        entropySource = IBeacon(g.addresses.beacon);
        rewards = IRewardsDistributor(g.addresses.rewards);
        run = RunLib.id(g.addresses.registry, g.nonce);

        Params memory p = g.params;
        _validate(p);
        _params = p;
        _genesisTime = p.genesisTime;
        _roundsPerEpoch = p.roundsPerEpoch;
        _trainS = p.trainS;
        _putS = p.putS;
        _publishS = p.publishS;
        _attestS = p.attestS;
        _applyS = p.applyS;
        _roundS = uint64(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS;
        _weightCommitS = p.weightCommitS;
        _weightRevealS = p.weightRevealS;
        _settlementVoidS = p.settlementVoidS;
        _beaconDelayBlocks = p.beaconDelayBlocks;
        // A commit is evidence until the end of the fraud window, the epoch of the round itself apart.
        ringSize = (uint64(p.fraudWindowEpochs) + 2) * p.roundsPerEpoch;
        _terms = Terms({
            fromEpoch: 1,
            specHash: g.specHash,
            judge: address(0),
            datasetRoot: p.datasetRoot,
            trainSamples: p.trainSamples,
            datasetDepth: p.datasetDepth,
            samplesPerRound: p.samplesPerRound,
            steps: p.steps,
            traceEvery: p.traceEvery
        });
        _schedule.push(ScheduleEntry({fromEpoch: 1, specHash: g.specHash}));
        emit SpecScheduled(1, g.specHash);
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
        uint256 known = _dutyIn(round);
        // The fields of an entry, cut out here because this is the call made most often.
        // forge-lint: disable-next-line(unsafe-typecast)
        if (uint8(known >> 176) != uint8(Role.Miner)) revert NotMiner(msg.sender, round);
        // forge-lint: disable-next-line(unsafe-typecast)
        (address account, uint32 slot) = (address(uint160(known)), uint16(known >> 160));
        Commit storage place = _commitPlace(round, msg.sender);
        bytes32 word = _commitWord(round, msg.sender, digest);
        if (uint256(place.word ^ word) & LAP_MASK == 0) revert AlreadyCommitted(round, slot);
        place.word = word;
        emit Committed(round, account, slot, digest);
    }

    /// @inheritdoc IEpochManager
    function attest(uint64 round, bytes32 root, bytes calldata bitmap) external {
        if (round == 0) revert InvalidRound(round);
        uint64 t = time();
        uint64 opensAfter = publishDeadline(round);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (t > opensAfter + _attestS) revert TooLate(t, opensAfter + _attestS);
        (address account, Role role, uint32 slot) = _unpackDuty(_dutyIn(round));
        if (role != Role.Validator) revert NotValidator(msg.sender, round);
        _requireBitmapFits(bitmap);
        Attestation storage place = _attestations[slot][round % ringSize];
        if (place.round == round) revert AlreadyAttested(round, slot);
        place.round = round;
        place.account = account;
        place.root = root;
        place.bitmapHash = keccak256(bitmap);
        emit Attested(round, account, slot, root, bitmap);
    }

    /// @inheritdoc IEpochManager
    function finaliseRoot(uint64 round, bytes32 root) external {
        if (round == 0) revert InvalidRound(round);
        if (root == 0) revert ZeroDigest();
        uint64 t = time();
        uint64 opensAfter = attestDeadline(round);
        if (t <= opensAfter) revert TooEarly(t, opensAfter);
        if (_roots[round] != 0) revert RootAlreadyFinalised(round, _roots[round]);
        uint64 epoch = epochOf(round);
        uint256 stake = 0;
        uint256 total = 0;
        uint32 count = registry.slotCount(Role.Validator);
        for (uint32 slot = 0; slot < count; ++slot) {
            address account = registry.slotAccount(Role.Validator, slot, epoch);
            if (account == address(0)) continue;
            uint256 weight = vault.stakeAt(account, epoch);
            total += weight;
            Attestation storage place = _attestations[slot][round % ringSize];
            if (place.round == round && place.root == root) stake += weight;
        }
        if (2 * stake <= total) revert NoMajority(round, root, stake, total);
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
        time_ = time();
        end = epochEnd(epoch);
        (account, role, slot) = dutyOf(operator, currentRound(), epoch);
    }

    /// @inheritdoc IEpochManager
    /// @dev The one place that reads the block's time.
    function time() public view returns (uint64) {
        return uint64(block.timestamp);
    }

    /// @inheritdoc IEpochManager
    function currentRound() public view returns (uint64) {
        uint64 t = time();
        return t < _genesisTime ? 0 : (t - _genesisTime) / _roundS + 1;
    }

    /// @inheritdoc IEpochManager
    function currentEpoch() external view returns (uint64) {
        return epochOf(currentRound());
    }

    /// @inheritdoc IEpochManager
    function nowView() external view returns (Now memory) {
        uint64 round = currentRound();
        return Now({time: time(), blockNumber: uint64(block.number), round: round, epoch: epochOf(round)});
    }

    /// @inheritdoc IEpochManager
    function epochOf(uint64 round) public view returns (uint64) {
        return round == 0 ? 0 : (round - 1) / _roundsPerEpoch + 1;
    }

    /// @inheritdoc IEpochManager
    function firstRound(uint64 epoch) public view returns (uint64) {
        return epoch == 0 ? 0 : (epoch - 1) * _roundsPerEpoch + 1;
    }

    /// @inheritdoc IEpochManager
    function lastRound(uint64 epoch) public view returns (uint64) {
        return epoch * _roundsPerEpoch;
    }

    /// @inheritdoc IEpochManager
    function roundStart(uint64 round) public view returns (uint64) {
        return _genesisTime + round * _roundS - _roundS;
    }

    /// @inheritdoc IEpochManager
    function putOpens(uint64 round) public view returns (uint64) {
        return roundStart(round) + _trainS;
    }

    /// @inheritdoc IEpochManager
    function putDeadline(uint64 round) public view returns (uint64) {
        return putOpens(round) + _putS;
    }

    /// @inheritdoc IEpochManager
    function publishDeadline(uint64 round) public view returns (uint64) {
        return putDeadline(round) + _publishS;
    }

    /// @inheritdoc IEpochManager
    function attestDeadline(uint64 round) public view returns (uint64) {
        return publishDeadline(round) + _attestS;
    }

    /// @inheritdoc IEpochManager
    function beaconOpensAfter(uint64 round, uint8 purpose) public view returns (uint64) {
        if (purpose == ASSIGNMENT) return roundStart(round) - _applyS;
        if (purpose == EVALUATION) return publishDeadline(round);
        revert InvalidPurpose(purpose);
    }

    /// @inheritdoc IEpochManager
    function beaconCutOff(uint64 round, uint8 purpose) public view returns (uint64) {
        if (purpose == ASSIGNMENT) return putOpens(round);
        if (purpose == EVALUATION) return attestDeadline(round) + _applyS / 2;
        revert InvalidPurpose(purpose);
    }

    /// @inheritdoc IEpochManager
    function epochEnd(uint64 epoch) public view returns (uint64) {
        return roundStart(lastRound(epoch) + 1);
    }

    /// @inheritdoc IEpochManager
    function weightCommitDeadline(uint64 epoch) public view returns (uint64) {
        return epochEnd(epoch) + _weightCommitS;
    }

    /// @inheritdoc IEpochManager
    function weightRevealDeadline(uint64 epoch) public view returns (uint64) {
        return weightCommitDeadline(epoch) + _weightRevealS;
    }

    /// @inheritdoc IEpochManager
    function settlementVoidAt(uint64 epoch) external view returns (uint64) {
        return weightRevealDeadline(epoch) + _settlementVoidS;
    }

    /// @inheritdoc IEpochManager
    function beacon(uint64 round, uint8 purpose) external view returns (bytes32) {
        return _beacons[round][purpose];
    }

    /// @inheritdoc IEpochManager
    function beaconTarget(uint64 round, uint8 purpose) external view returns (uint64) {
        return _targets[round][purpose];
    }

    /// @inheritdoc IEpochManager
    function isCommitted(uint64 round, address operator, bytes32 digest) external view returns (bool) {
        return digest != 0 && _commitPlace(round, operator).word == _commitWord(round, operator, digest);
    }

    /// @inheritdoc IEpochManager
    function blockNumber() public view returns (uint64) {
        return uint64(block.number);
    }

    /// @inheritdoc IEpochManager
    function runningTime() external view returns (uint64) {
        return time();
    }

    /// @inheritdoc IEpochManager
    function runningBlock() external view returns (uint64) {
        return blockNumber();
    }

    /// @inheritdoc IEpochManager
    function termsAt(uint64) external view returns (Terms memory) {
        return _terms;
    }

    /// @inheritdoc IEpochManager
    function tally(uint64 round, uint32 minerSlot, bytes32 root, Ballot[] calldata ballots)
        external
        view
        returns (Tally memory t)
    {
        uint64 epoch = epochOf(round);
        uint32 count = registry.slotCount(Role.Validator);
        uint256 next = 0;
        for (uint32 slot = 0; slot < count; ++slot) {
            address account = registry.slotAccount(Role.Validator, slot, epoch);
            if (account == address(0)) continue;
            uint256 weight = vault.stakeAt(account, epoch);
            t.total += weight;
            Attestation storage place = _attestations[slot][round % ringSize];
            if (place.round != round) continue;
            if (next == ballots.length || ballots[next].slot != slot) {
                t.unopened += weight;
                continue;
            }
            Ballot calldata ballot = ballots[next++];
            if (ballot.root != place.root || keccak256(ballot.bitmap) != place.bitmapHash) {
                revert BallotMismatch(round, slot);
            }
            if (ballot.root == root) t.forRoot += weight;
            if (_hasBit(ballot.bitmap, minerSlot)) {
                t.bitSet += weight;
                t.setters |= uint32(1) << slot;
            }
        }
        if (next != ballots.length) revert BallotMismatch(round, ballots[next].slot);
    }

    /// @inheritdoc IEpochManager
    function attestation(uint64 round, uint32 slot) external view returns (Attestation memory found) {
        Attestation storage place = _attestations[slot][round % ringSize];
        if (place.round == round) found = place;
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
    function specHashAt(uint64 epoch) external view returns (bytes32 specHash) {
        for (uint256 i = _schedule.length; i > 0; --i) {
            if (_schedule[i - 1].fromEpoch <= epoch) return _schedule[i - 1].specHash;
        }
    }

    /// @inheritdoc IEpochManager
    function schedule() external view returns (ScheduleEntry[] memory) {
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

    function _hasBit(bytes calldata bitmap, uint32 slot) private pure returns (bool) {
        return slot / 8 < bitmap.length && uint8(bitmap[slot / 8]) >> (slot % 8) & 1 == 1;
    }

    function _commitPlace(uint64 round, address operator) private view returns (Commit storage) {
        return _commits[uint256(uint160(operator)) << 64 | round % ringSize];
    }

    /// @dev In 256 bits, where no sum of three windows overflows; a time before the window wraps to a large one.
    function _requirePutWindow(uint64 round) private view {
        unchecked {
            uint256 since = uint256(time()) - (uint256(_genesisTime) + (uint256(round) - 1) * _roundS + _trainS);
            if (since <= _putS) return;
        }
        uint64 t = time();
        if (t < putOpens(round)) revert TooEarly(t, putOpens(round));
        revert TooLate(t, putDeadline(round));
    }

    function _requireBeaconWindow(uint64 round, uint8 purpose) private view {
        if (round == 0) revert InvalidRound(round);
        uint64 t = time();
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

    /// @dev One word tells digest, round and account, and by its low bits whether the place was used in this round. 224 bits
    /// of hash remain.
    function _commitWord(uint64 round, address account, bytes32 digest) private view returns (bytes32) {
        unchecked {
            uint256 lap = (uint256(round) / ringSize + 1) & LAP_MASK;
            bytes32 hash = Hashes.efficientKeccak256(digest, bytes32(uint256(round) << 160 | uint160(account)));
            return bytes32((uint256(hash) & ~LAP_MASK) | lap);
        }
    }

    function _validate(Params memory p) private view {
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
        if (p.beaconDelayBlocks == 0) revert InvalidParams("beaconDelayBlocks");
        if (p.minMinerStake == 0 || p.minValidatorStake == 0) revert InvalidParams("minimum stakes");
        if (p.maxMiners == 0 || p.maxMiners > 4096) revert InvalidParams("maxMiners");
        if (p.samplesPerRound == 0 || p.trainSamples == 0) revert InvalidParams("samples");
        if (p.datasetDepth > 63 || p.trainSamples > uint64(1) << p.datasetDepth) revert InvalidParams("datasetDepth");
        if (p.equivocationSlashBps > RunLib.BPS || p.wrongDataSlashBps > RunLib.BPS || p.minersBps > RunLib.BPS) {
            revert InvalidParams("basis points");
        }
        if (p.bountyBps > 4000) revert InvalidParams("bountyBps");
        if (p.challengeRevealBlocks == 0) revert InvalidParams("challengeRevealBlocks");
        if (p.choreCapPerEpoch > p.emissionPerEpoch) revert InvalidParams("choreCapPerEpoch");
    }
}
