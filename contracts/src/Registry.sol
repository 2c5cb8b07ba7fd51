// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDutyBook} from "./interfaces/IDutyBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Role} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {EpochTrace} from "./libraries/EpochTrace.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {TenureTrace} from "./libraries/TenureTrace.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Registry
contract Registry is IRegistry, EIP712 {
    using EpochTrace for EpochTrace.Trace;
    using TenureTrace for TenureTrace.Trace;

    /// @dev Slots of a role that were ever used, and those free again: a list through the notes of their last tenures.
    struct Places {
        uint32 count;
        /// The slot that was given up last, plus 1; 0 if none is free.
        uint16 free;
    }

    /// @dev Rounds in which an operator key serves its account: [fromRound, untilRound).
    struct Span {
        address account;
        uint48 fromRound;
        uint48 untilRound;
    }

    bytes32 public constant CONSENT_TYPEHASH = keccak256("OperatorConsent(bytes32 run,address account,uint64 nonce)");
    uint32 public constant MAX_VALIDATORS = 32;
    uint256 public constant MAX_ENDPOINT_BYTES = 256;
    uint16 public constant FAULTS_FOR_EVER = 3;
    uint48 private constant FOR_EVER = type(uint48).max;
    uint8 private constant RECORD_SHIFT = 40;
    uint8 private constant FAULTS_BITS = 16;

    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    IRewardsDistributor public immutable rewards;
    address public immutable verdicts;
    bytes32 public immutable run;

    uint256 private immutable _minMinerStake;
    uint256 private immutable _minValidatorStake;
    uint32 private immutable _maxMiners;
    uint48 private immutable _suspensionEpochs;
    uint256 private immutable _roundsPerEpoch;

    mapping(address operator => Span) private _spans;
    /// Operator by round.
    mapping(address account => EpochTrace.Trace) private _operators;
    /// @inheritdoc IRegistry
    mapping(address account => uint256) public operatorCount;
    mapping(address account => string) private _endpoints;
    /// suspendedUntil << 56 | faults << 40 | role << 32 | slot by epoch. What was proven stands beside the newest tenure,
    /// so that a verdict writes one word; suspended until MAX: for ever. Of older tenures it means nothing.
    mapping(address account => TenureTrace.Trace) private _slotOf;
    /// Account by epoch.
    mapping(Role role => mapping(uint32 slot => TenureTrace.Trace)) private _holders;
    mapping(Role role => Places) private _places;

    constructor(Genesis memory g) EIP712("Syntience", "1") {
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        rewards = IRewardsDistributor(g.addresses.rewards);
        verdicts = g.addresses.verdicts;
        run = RunLib.id(address(this), g.nonce);
        _minMinerStake = g.params.minMinerStake;
        _minValidatorStake = g.params.minValidatorStake;
        _maxMiners = g.params.maxMiners;
        _suspensionEpochs = g.params.suspensionEpochs;
        _roundsPerEpoch = g.params.roundsPerEpoch;
    }

    /// @inheritdoc IRegistry
    // Calls the run's own contracts, which don't call back.
    // slither-disable-next-line reentrancy-benign,reentrancy-events
    function register(Role role, address operator, bytes calldata operatorSig, address payout, string calldata endpoint)
        external
        returns (uint32 slot)
    {
        if (role == Role.None) revert InvalidRole();
        if (roleOf(msg.sender) != Role.None) revert AlreadyRegistered(msg.sender);
        uint64 epoch = epochs.currentEpoch();
        _requireNotSuspended(msg.sender, epoch);
        _requireNotSuspended(_spans[msg.sender].account, epoch);
        _requireNotSuspended(operator, epoch);
        uint256 active = vault.activeOf(msg.sender);
        uint256 minimum = role == Role.Miner ? _minMinerStake : _minValidatorStake;
        if (active < minimum) revert StakeTooLow(msg.sender, active, minimum);

        if (operator != address(uint160(_operators[msg.sender].latest()))) _setOperator(operator, operatorSig);
        payout = _setPayout(payout);
        _setEndpoint(msg.sender, endpoint);
        slot = _takeSlot(role);
        _holders[role][slot].start(epoch + 1, uint160(msg.sender));
        _slotOf[msg.sender].start(epoch + 1, _record(msg.sender) << RECORD_SHIFT | uint160(uint8(role)) << 32 | slot);
        // What a miner does, nobody asks the duty book about.
        if (role == Role.Validator) _noteDuty(operator, msg.sender);
        emit Registered(msg.sender, role, slot, operator, payout, endpoint, epoch + 1);
    }

    /// @inheritdoc IRegistry
    function rotateOperator(address newOperator, bytes calldata operatorSig) external {
        if (operatorCount[msg.sender] == 0) revert NotRegistered(msg.sender);
        _setOperator(newOperator, operatorSig);
    }

    /// @inheritdoc IRegistry
    function setPayout(address payout) external {
        if (operatorCount[msg.sender] == 0) revert NotRegistered(msg.sender);
        emit PayoutSet(msg.sender, _setPayout(payout));
    }

    /// @inheritdoc IRegistry
    function setEndpoint(address account, string calldata endpoint) external {
        if (operatorCount[account] == 0) revert NotRegistered(account);
        if (msg.sender != account && accountActing(msg.sender, epochs.currentRound()) != account) {
            revert NotOwnerOrOperator(msg.sender, account);
        }
        _setEndpoint(account, endpoint);
        emit EndpointSet(account, endpoint);
    }

    /// @inheritdoc IRegistry
    function vacate(address account, uint256 active) external {
        if (msg.sender != address(vault)) revert OnlyVault(msg.sender);
        uint160 packed = _slotOf[account].latest();
        (Role role,) = _unpackSlot(packed);
        if (role == Role.None || active >= (role == Role.Miner ? _minMinerStake : _minValidatorStake)) return;
        _vacate(account, epochs.currentEpoch(), packed);
    }

    /// @inheritdoc IRegistry
    function exclude(address account) external {
        if (msg.sender != verdicts) revert OnlyVerdicts(msg.sender);
        uint64 epoch = epochs.currentEpoch();
        TenureTrace.Trace storage tenures = _slotOf[account];
        (uint160 packed,, uint256 end) = tenures.newest();
        (uint16 count, uint48 until) = _unpackRecord(packed >> RECORD_SHIFT);
        if (count < FAULTS_FOR_EVER) ++count;
        until = FOR_EVER;
        // An epoch number needs 48 bits in 10^14 seconds at the earliest.
        // forge-lint: disable-next-line(unsafe-typecast)
        if (count < FAULTS_FOR_EVER) until = uint48(epoch) + _suspensionEpochs;
        uint160 record = uint160(until) << FAULTS_BITS | count;
        // forge-lint: disable-next-line(unsafe-typecast)
        packed = record << RECORD_SHIFT | uint40(packed);
        emit Excluded(account, count, _untilEpoch(until));
        if (end == TenureTrace.OPEN) _vacate(account, epoch, packed);
        else tenures.rename(packed);
    }

    /// @inheritdoc IRegistry
    function slotAccount(Role role, uint32 slot, uint64 epoch) public view returns (address) {
        (, uint160 holder) = _holders[role][slot].entryAt(epoch);
        return address(holder);
    }

    /// @inheritdoc IRegistry
    function slotAccounts(Role role, uint64 epoch) external view returns (address[] memory accounts) {
        accounts = new address[](_places[role].count);
        mapping(uint32 slot => TenureTrace.Trace) storage holders = _holders[role];
        for (uint32 slot = 0; slot < accounts.length; ++slot) {
            (, uint160 holder) = holders[slot].entryAt(epoch);
            accounts[slot] = address(holder);
        }
    }

    /// @inheritdoc IRegistry
    function slotOf(address account, uint64 epoch) public view returns (Role role, uint32 slot) {
        (, uint160 packed) = _slotOf[account].entryAt(epoch);
        return _unpackSlot(packed);
    }

    /// @inheritdoc IRegistry
    function slotSpan(address account, uint64 epoch) external view returns (Role role, uint32 slot, uint64 since) {
        uint160 packed;
        (since, packed) = _slotOf[account].entryAt(epoch);
        (role, slot) = _unpackSlot(packed);
    }

    /// @inheritdoc IRegistry
    function operatorAt(address account, uint64 round) public view returns (address) {
        return address(uint160(_operators[account].valueAt(round)));
    }

    /// @inheritdoc IRegistry
    function accountOfOperator(address operator) external view returns (address) {
        return _spans[operator].account;
    }

    /// @inheritdoc IRegistry
    function accountActing(address operator, uint64 round) public view returns (address) {
        Span memory span = _spans[operator];
        return span.fromRound <= round && round < span.untilRound ? span.account : address(0);
    }

    /// @inheritdoc IRegistry
    function duty(address operator, uint64 round, uint64 epoch)
        external
        view
        returns (address account, Role role, uint32 slot)
    {
        account = accountActing(operator, round);
        if (account != address(0)) (role, slot) = slotOf(account, epoch);
    }

    /// @inheritdoc IRegistry
    function roleOf(address account) public view returns (Role role) {
        (role,) = _unpackSlot(_slotOf[account].latest());
    }

    /// @inheritdoc IRegistry
    function endpointOf(address account) external view returns (string memory) {
        return _endpoints[account];
    }

    /// @inheritdoc IRegistry
    function payoutOf(address account) public view returns (address) {
        return rewards.payoutOf(account);
    }

    /// @inheritdoc IRegistry
    function slotCount(Role role) external view returns (uint32) {
        return _places[role].count;
    }

    /// @inheritdoc IRegistry
    function slots(Role role, uint64 epoch) external view returns (SlotView[] memory) {
        return slotsInRange(role, epoch, 0, _places[role].count);
    }

    /// @inheritdoc IRegistry
    function slotsInRange(Role role, uint64 epoch, uint32 from, uint32 to)
        public
        view
        returns (SlotView[] memory held)
    {
        if (to > _places[role].count) to = _places[role].count;
        uint64 round = epochs.currentRound();
        if (round == 0) round = 1;
        held = new SlotView[](to > from ? to - from : 0);
        uint256 count = 0;
        for (uint32 slot = from; slot < to; ++slot) {
            address account = slotAccount(role, slot, epoch);
            if (account == address(0)) continue;
            held[count++] = SlotView({
                slot: slot,
                account: account,
                operator: operatorAt(account, round),
                nextOperator: operatorAt(account, round + 1),
                payout: payoutOf(account),
                stake: vault.stakeAt(account, epoch),
                endpoint: _endpoints[account]
            });
        }
        assembly ("memory-safe") {
            mstore(held, count)
        }
    }

    /// @inheritdoc IRegistry
    function totalValidatorStake(uint64 epoch) external view returns (uint256 total) {
        uint32 count = _places[Role.Validator].count;
        for (uint32 slot = 0; slot < count; ++slot) {
            address account = slotAccount(Role.Validator, slot, epoch);
            if (account != address(0)) total += vault.stakeAt(account, epoch);
        }
    }

    /// @inheritdoc IRegistry
    function faultsOf(address account) external view returns (uint32, uint64) {
        (uint16 count, uint48 until) = _unpackRecord(_record(account));
        return (count, _untilEpoch(until));
    }

    /// @inheritdoc IRegistry
    function consentDigest(address account, uint256 nonce) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(CONSENT_TYPEHASH, run, account, nonce)));
    }

    /// @inheritdoc IRegistry
    function domainSeparator() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    // Calls the duty book of the epoch manager, which calls nobody.
    // slither-disable-next-line reentrancy-no-eth,reentrancy-events
    function _setOperator(address operator, bytes calldata operatorSig) private {
        if (operator == address(0)) revert ZeroAddress();
        if (_spans[operator].account != address(0)) revert OperatorTaken(operator, _spans[operator].account);
        address signer = ECDSA.recover(consentDigest(msg.sender, operatorCount[msg.sender]), operatorSig);
        if (signer != operator) revert InvalidConsent(operator, signer);

        uint64 fromRound = epochs.currentRound() + 1;
        EpochTrace.Trace storage history = _operators[msg.sender];
        address old = address(uint160(history.latest()));
        // One that was to start in this very round never serves: its span is empty.
        // forge-lint: disable-next-line(unsafe-typecast)
        if (old != address(0)) _spans[old].untilRound = uint48(fromRound);
        // forge-lint: disable-next-line(unsafe-typecast)
        _spans[operator] = Span({account: msg.sender, fromRound: uint48(fromRound), untilRound: FOR_EVER});
        history.push(fromRound, uint160(operator));
        if (old != address(0)) _noteDuty(old, msg.sender);
        _noteDuty(operator, msg.sender);
        ++operatorCount[msg.sender];
        emit OperatorSet(msg.sender, operator, fromRound);
    }

    /// @dev Kept where it is needed, so that a claim asks nobody.
    function _setPayout(address payout) private returns (address) {
        if (payout == address(0)) payout = msg.sender;
        rewards.setPayout(msg.sender, payout);
        return payout;
    }

    function _setEndpoint(address account, string calldata endpoint) private {
        uint256 length = bytes(endpoint).length;
        if (length > MAX_ENDPOINT_BYTES) revert EndpointTooLong(length, MAX_ENDPOINT_BYTES);
        _endpoints[account] = endpoint;
    }

    /// @dev The slot that was given up last, or a new one.
    function _takeSlot(Role role) private returns (uint32 slot) {
        Places storage places = _places[role];
        uint16 free = places.free;
        if (free != 0) {
            slot = free - 1;
            places.free = _holders[role][slot].note();
            return slot;
        }
        uint32 most = role == Role.Miner ? _maxMiners : MAX_VALIDATORS;
        slot = places.count;
        if (slot >= most) revert SubnetFull(role, most);
        places.count = slot + 1;
    }

    /// @param packed What the account's newest tenure, which must be open, says from now on.
    // Calls the duty book of the epoch manager, which calls nobody.
    // slither-disable-next-line reentrancy-events
    function _vacate(address account, uint64 epoch, uint160 packed) private {
        (Role role, uint32 slot) = _unpackSlot(packed);
        Places storage places = _places[role];
        _slotOf[account].endAs(packed, epoch + 1);
        _holders[role][slot].end(epoch + 1, places.free);
        // A role has at most 4096 slots.
        // forge-lint: disable-next-line(unsafe-typecast)
        places.free = uint16(slot + 1);
        if (role == Role.Validator) _noteDuty(address(uint160(_operators[account].latest())), account);
        emit SlotVacated(account, role, slot, epoch + 1);
    }

    /// @dev Tells the epoch manager in which rounds an operator acts for the newest slot of its account. An operator that
    /// was replaced needs no word when the slot ends: its rounds end before the next epoch. A miner's operator has an empty
    /// entry, if any: then the book asks here.
    function _noteDuty(address operator, address account) private {
        (uint160 packed, uint256 since, uint256 until) = _slotOf[account].newest();
        (Role role, uint32 slot) = _unpackSlot(packed);
        if (role == Role.None) return;
        if (role == Role.Miner) (since, until) = (1, 1);
        Span storage span = _spans[operator];
        IDutyBook(address(epochs))
            .noteDuty(
                operator,
                IDutyBook.Duty({
                account: account,
                // A role has at most 4096 slots.
                // forge-lint: disable-next-line(unsafe-typecast)
                slot: uint16(slot),
                role: role,
                fromRound: _clamp(Math.max(span.fromRound, _firstRound(since))),
                untilRound: _clamp(Math.min(span.untilRound, _firstRound(until)))
            })
            );
    }

    function _firstRound(uint256 epoch) private view returns (uint256) {
        return (epoch - 1) * _roundsPerEpoch + 1;
    }

    /// @dev What lies beyond is not in the duty book.
    function _clamp(uint256 round) private pure returns (uint32) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return round < type(uint32).max ? uint32(round) : type(uint32).max;
    }

    function _requireNotSuspended(address account, uint64 epoch) private view {
        if (account == address(0)) return;
        (, uint48 until) = _unpackRecord(_record(account));
        if (epoch < until) revert Suspended(account, _untilEpoch(until));
    }

    function _record(address account) private view returns (uint160) {
        (uint160 packed,,) = _slotOf[account].newest();
        return packed >> RECORD_SHIFT;
    }

    function _unpackRecord(uint160 record) private pure returns (uint16 count, uint48 until) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return (uint16(record), uint48(record >> FAULTS_BITS));
    }

    function _untilEpoch(uint48 until) private pure returns (uint64) {
        return until == FOR_EVER ? type(uint64).max : until;
    }

    function _unpackSlot(uint160 packed) private pure returns (Role role, uint32 slot) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return (Role(uint8(packed >> 32)), uint32(packed));
    }
}
