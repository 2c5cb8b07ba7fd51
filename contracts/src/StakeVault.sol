// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {StakeTrace} from "./libraries/StakeTrace.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title StakeVault
contract StakeVault is IStakeVault {
    using StakeTrace for StakeTrace.Trace;
    using SafeERC20 for ISynToken;

    struct Bucket {
        uint128 amount;
        uint64 unlockTime;
    }

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IEpochManager public immutable epochs;
    address public immutable scores;
    address public immutable verdicts;

    uint256 private immutable _unbondingS;
    uint256 private immutable _minMinerStake;
    uint256 private immutable _minValidatorStake;

    /// Active stake by epoch; the newest entry is the stake now.
    mapping(address account => StakeTrace.Trace) private _active;
    mapping(address account => Bucket) private _unbonding;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        epochs = IEpochManager(g.addresses.epochs);
        scores = g.addresses.scores;
        verdicts = g.addresses.verdicts;
        Params memory p = g.params;
        _unbondingS = p.unbondingS;
        _minMinerStake = p.minMinerStake;
        _minValidatorStake = p.minValidatorStake;
        uint256 roundS = uint256(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS;
        // An exit is requested within epoch c at the earliest at its start, and a fault of epoch c can be proven until the
        // end of epoch c + fraudWindowEpochs.
        uint256 least = (uint256(p.fraudWindowEpochs) + 1) * p.roundsPerEpoch * roundS;
        if (p.unbondingS < least) revert UnbondingTooShort(p.unbondingS, least);
    }

    /// @inheritdoc IStakeVault
    function deposit(uint256 amount) external {
        _deposit(amount);
    }

    /// @inheritdoc IStakeVault
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external {
        // Anybody may have submitted this permit before: then the call fails and the allowance is there all the same.
        try token.permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(amount);
    }

    /// @inheritdoc IStakeVault
    function requestUnbond(uint256 amount) external {
        if (amount == 0) revert ZeroAmount();
        uint256 active = activeOf(msg.sender);
        if (amount > active) revert InsufficientActive(msg.sender, active, amount);
        Bucket storage bucket = _unbonding[msg.sender];
        uint64 unlockTime = SafeCast.toUint64(epochs.time() + _unbondingS);
        if (unlockTime < bucket.unlockTime) unlockTime = bucket.unlockTime;
        uint128 total = SafeCast.toUint128(bucket.amount + amount);
        (bucket.amount, bucket.unlockTime) = (total, unlockTime);
        _setActive(msg.sender, active - amount);
        emit UnbondRequested(msg.sender, amount, total, unlockTime);
        _vacateBelowMinimum(msg.sender, active - amount);
    }

    /// @inheritdoc IStakeVault
    function withdraw() external returns (uint256 amount) {
        Bucket memory bucket = _unbonding[msg.sender];
        if (bucket.amount == 0) revert NothingUnbonding(msg.sender);
        uint64 time = epochs.time();
        if (time <= bucket.unlockTime) revert StillLocked(msg.sender, bucket.unlockTime, time);
        amount = bucket.amount;
        delete _unbonding[msg.sender];
        emit Withdrawn(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IStakeVault
    function slash(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken) {
        if (msg.sender != verdicts && msg.sender != scores) revert OnlyJudge(msg.sender);
        uint256 active = activeOf(account);
        uint256 fromActive = amount < active ? amount : active;
        uint256 unbonding = _unbonding[account].amount;
        uint256 fromUnbonding = amount - fromActive < unbonding ? amount - fromActive : unbonding;
        taken = fromActive + fromUnbonding;
        if (bountyTo == address(0)) bounty = 0;
        if (bounty > taken) bounty = taken;

        if (fromActive != 0) _setActive(account, active - fromActive);
        // forge-lint: disable-next-line(unsafe-typecast)
        if (fromUnbonding != 0) _unbonding[account].amount = uint128(unbonding - fromUnbonding);
        emit Slashed(account, msg.sender, taken, bountyTo, bounty);
        _vacateBelowMinimum(account, active - fromActive);
        if (taken != bounty) token.burn(taken - bounty);
        if (bounty != 0) token.safeTransfer(bountyTo, bounty);
    }

    /// @inheritdoc IStakeVault
    function activeOf(address account) public view returns (uint256) {
        return _active[account].latest();
    }

    /// @inheritdoc IStakeVault
    function unbondingOf(address account) external view returns (uint256 amount, uint64 unlockTime) {
        Bucket storage bucket = _unbonding[account];
        return (bucket.amount, bucket.unlockTime);
    }

    /// @inheritdoc IStakeVault
    function stakeAt(address account, uint64 epoch) external view returns (uint256) {
        return _active[account].valueAt(epoch);
    }

    function _deposit(uint256 amount) private {
        if (amount == 0) revert ZeroAmount();
        uint256 active = activeOf(msg.sender) + amount;
        _setActive(msg.sender, active);
        emit Deposited(msg.sender, amount, active);
        token.safeTransferFrom(msg.sender, address(this), amount);
    }

    function _setActive(address account, uint256 active) private {
        _active[account].push(epochs.currentEpoch() + 1, active);
    }

    function _vacateBelowMinimum(address account, uint256 active) private {
        Role role = registry.roleOf(account);
        if (role == Role.None) return;
        if (active < (role == Role.Miner ? _minMinerStake : _minValidatorStake)) registry.vacate(account);
    }
}
