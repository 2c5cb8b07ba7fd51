// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Role} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {EpochTrace} from "./libraries/EpochTrace.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// @title Registry
contract Registry is IRegistry, EIP712 {
    using EpochTrace for EpochTrace.Trace;

    /// @dev Rounds in which an operator key serves its account: [fromRound, untilRound).
    struct Span {
        address account;
        uint48 fromRound;
        uint48 untilRound;
    }

    struct Account {
        address payout;
        /// Operators that it had so far, replaced ones included.
        uint32 operators;
        uint16 faults;
        /// Max: for ever.
        uint48 suspendedUntil;
    }

    bytes32 public constant CONSENT_TYPEHASH = keccak256("OperatorConsent(bytes32 run,address account,uint64 nonce)");
    uint32 public constant MAX_VALIDATORS = 32;
    uint256 public constant MAX_ENDPOINT_BYTES = 256;
    uint16 public constant FAULTS_FOR_EVER = 3;
    uint48 private constant FOR_EVER = type(uint48).max;

    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    address public immutable faults;
    bytes32 public immutable run;

    uint256 private immutable _minMinerStake;
    uint256 private immutable _minValidatorStake;
    uint32 private immutable _maxMiners;
    uint48 private immutable _suspensionEpochs;

    mapping(address operator => Span) private _spans;
    /// Operator by round.
    mapping(address account => EpochTrace.Trace) private _operators;
    mapping(address account => Account) private _accounts;
    mapping(address account => string) private _endpoints;
    /// role << 32 | slot by epoch; 0 without slot.
    mapping(address account => EpochTrace.Trace) private _slotOf;
    /// Account by epoch.
    mapping(Role role => mapping(uint32 slot => EpochTrace.Trace)) private _holders;
    mapping(Role role => uint32[]) private _freeSlots;
    mapping(Role role => uint32) private _slotCount;

    constructor(Genesis memory g) EIP712("Syntience", "1") {
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        faults = g.addresses.faults;
        run = RunLib.id(address(this), g.nonce);
        _minMinerStake = g.params.minMinerStake;
        _minValidatorStake = g.params.minValidatorStake;
        _maxMiners = g.params.maxMiners;
        _suspensionEpochs = g.params.suspensionEpochs;
    }

    /// @inheritdoc IRegistry
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
        _accounts[msg.sender].payout = payout;
        _setEndpoint(msg.sender, endpoint);
        slot = _takeSlot(role);
        _holders[role][slot].push(epoch + 1, uint160(msg.sender));
        _slotOf[msg.sender].push(epoch + 1, (uint208(uint8(role)) << 32) | slot);
        emit Registered(msg.sender, role, slot, operator, payoutOf(msg.sender), endpoint, epoch + 1);
    }

    /// @inheritdoc IRegistry
    function rotateOperator(address newOperator, bytes calldata operatorSig) external {
        if (_accounts[msg.sender].operators == 0) revert NotRegistered(msg.sender);
        _setOperator(newOperator, operatorSig);
    }

    /// @inheritdoc IRegistry
    function setPayout(address payout) external {
        if (_accounts[msg.sender].operators == 0) revert NotRegistered(msg.sender);
        _accounts[msg.sender].payout = payout;
        emit PayoutSet(msg.sender, payoutOf(msg.sender));
    }

    /// @inheritdoc IRegistry
    function setEndpoint(address account, string calldata endpoint) external {
        if (_accounts[account].operators == 0) revert NotRegistered(account);
        if (msg.sender != account && accountActing(msg.sender, epochs.currentRound()) != account) {
            revert NotOwnerOrOperator(msg.sender, account);
        }
        _setEndpoint(account, endpoint);
        emit EndpointSet(account, endpoint);
    }

    /// @inheritdoc IRegistry
    function vacate(address account) external {
        if (msg.sender != address(vault)) revert OnlyVault(msg.sender);
        _vacate(account, epochs.currentEpoch());
    }

    /// @inheritdoc IRegistry
    function exclude(address account) external {
        if (msg.sender != faults) revert OnlyFaults(msg.sender);
        uint64 epoch = epochs.currentEpoch();
        Account storage record = _accounts[account];
        uint16 count = record.faults;
        if (count < FAULTS_FOR_EVER) record.faults = ++count;
        uint48 until = FOR_EVER;
        // An epoch number needs 48 bits in 10^14 seconds at the earliest.
        // forge-lint: disable-next-line(unsafe-typecast)
        if (count < FAULTS_FOR_EVER) until = uint48(epoch) + _suspensionEpochs;
        record.suspendedUntil = until;
        emit Excluded(account, count, _untilEpoch(until));
        _vacate(account, epoch);
    }

    /// @inheritdoc IRegistry
    function slotAccount(Role role, uint32 slot, uint64 epoch) public view returns (address) {
        return address(uint160(_holders[role][slot].valueAt(epoch)));
    }

    /// @inheritdoc IRegistry
    function slotOf(address account, uint64 epoch) public view returns (Role role, uint32 slot) {
        return _unpackSlot(_slotOf[account].valueAt(epoch));
    }

    /// @inheritdoc IRegistry
    function slotSpan(address account, uint64 epoch) external view returns (Role role, uint32 slot, uint64 since) {
        uint208 packed;
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
    function operatorCount(address account) external view returns (uint256) {
        return _accounts[account].operators;
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
        address payout = _accounts[account].payout;
        return payout == address(0) ? account : payout;
    }

    /// @inheritdoc IRegistry
    function slotCount(Role role) external view returns (uint32) {
        return _slotCount[role];
    }

    /// @inheritdoc IRegistry
    function slots(Role role, uint64 epoch) external view returns (SlotView[] memory) {
        return slotsInRange(role, epoch, 0, _slotCount[role]);
    }

    /// @inheritdoc IRegistry
    function slotsInRange(Role role, uint64 epoch, uint32 from, uint32 to)
        public
        view
        returns (SlotView[] memory held)
    {
        if (to > _slotCount[role]) to = _slotCount[role];
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
        uint32 count = _slotCount[Role.Validator];
        for (uint32 slot = 0; slot < count; ++slot) {
            address account = slotAccount(Role.Validator, slot, epoch);
            if (account != address(0)) total += vault.stakeAt(account, epoch);
        }
    }

    /// @inheritdoc IRegistry
    function faultsOf(address account) external view returns (uint32, uint64) {
        Account storage record = _accounts[account];
        return (record.faults, _untilEpoch(record.suspendedUntil));
    }

    /// @inheritdoc IRegistry
    function consentDigest(address account, uint256 nonce) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(CONSENT_TYPEHASH, run, account, nonce)));
    }

    /// @inheritdoc IRegistry
    function domainSeparator() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    function _setOperator(address operator, bytes calldata operatorSig) private {
        if (operator == address(0)) revert ZeroAddress();
        if (_spans[operator].account != address(0)) revert OperatorTaken(operator, _spans[operator].account);
        address signer = ECDSA.recover(consentDigest(msg.sender, _accounts[msg.sender].operators), operatorSig);
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
        ++_accounts[msg.sender].operators;
        emit OperatorSet(msg.sender, operator, fromRound);
    }

    function _setEndpoint(address account, string calldata endpoint) private {
        uint256 length = bytes(endpoint).length;
        if (length > MAX_ENDPOINT_BYTES) revert EndpointTooLong(length, MAX_ENDPOINT_BYTES);
        _endpoints[account] = endpoint;
    }

    function _takeSlot(Role role) private returns (uint32 slot) {
        uint32[] storage free = _freeSlots[role];
        uint256 count = free.length;
        if (count != 0) {
            slot = free[count - 1];
            free.pop();
            return slot;
        }
        uint32 most = role == Role.Miner ? _maxMiners : MAX_VALIDATORS;
        slot = _slotCount[role];
        if (slot >= most) revert SubnetFull(role, most);
        _slotCount[role] = slot + 1;
    }

    function _vacate(address account, uint64 epoch) private {
        (Role role, uint32 slot) = _unpackSlot(_slotOf[account].latest());
        if (role == Role.None) return;
        _slotOf[account].push(epoch + 1, 0);
        _holders[role][slot].push(epoch + 1, 0);
        _freeSlots[role].push(slot);
        emit SlotVacated(account, role, slot, epoch + 1);
    }

    function _requireNotSuspended(address account, uint64 epoch) private view {
        if (account == address(0)) return;
        uint48 until = _accounts[account].suspendedUntil;
        if (epoch < until) revert Suspended(account, _untilEpoch(until));
    }

    function _untilEpoch(uint48 until) private pure returns (uint64) {
        return until == FOR_EVER ? type(uint64).max : until;
    }

    function _unpackSlot(uint208 packed) private pure returns (Role role, uint32 slot) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return (Role(uint8(packed >> 32)), uint32(packed));
    }
}
