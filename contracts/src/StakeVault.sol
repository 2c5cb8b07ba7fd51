// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {IRewardsDistributor} from "./interfaces/IRewardsDistributor.sol";
import {Genesis, Params} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {StakeTrace} from "./libraries/StakeTrace.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title StakeVault
contract StakeVault is IStakeVault {
    using StakeTrace for StakeTrace.Trace;
    using SafeERC20 for ISynToken;

    /// @dev One word. It stays in use after a withdrawal, so that the next exit writes over used storage.
    struct Exit {
        uint96 amount;
        uint64 unlockTime;
        /// Epoch in which the account last asked to leave: until its end that stake counted.
        uint48 epoch;
        /// Open games against the account.
        uint48 locks;
    }

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IEpochManager public immutable epochs;
    IRewardsDistributor public immutable rewards;
    address public immutable scores;
    address public immutable verdicts;
    address public immutable disputes;

    /// @inheritdoc IStakeVault
    uint256 public immutable epochsKnown;

    uint256 private immutable _ringWords;
    uint256 private immutable _unbondingS;
    uint256 private immutable _genesisTime;
    uint256 private immutable _epochS;
    /// With so much left no role's minimum is missed.
    uint256 private immutable _ampleStake;

    /// Active stake by epoch; the newest entry is the stake now.
    mapping(address account => StakeTrace.Trace) private _active;
    mapping(address account => Exit) private _exits;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        epochs = IEpochManager(g.addresses.epochs);
        rewards = IRewardsDistributor(g.addresses.rewards);
        scores = g.addresses.scores;
        verdicts = g.addresses.verdicts;
        disputes = g.addresses.disputes;
        Params memory p = g.params;
        _unbondingS = p.unbondingS;
        _ampleStake = Math.max(p.minMinerStake, p.minValidatorStake);
        _genesisTime = p.genesisTime;
        uint256 epochS = uint256(p.roundsPerEpoch) * (uint256(p.trainS) + p.putS + p.publishS + p.attestS + p.applyS);
        _epochS = epochS;
        // An exit is requested within epoch c at the earliest at its start, a fault of epoch c can be proven until the end
        // of epoch c + fraudWindowEpochs, and a game that opens then takes its time.
        uint256 least = (uint256(p.fraudWindowEpochs) + 1) * epochS + uint256(RunLib.longestGameBlocks(p)) * p.blockS;
        if (p.unbondingS < least) revert UnbondingTooShort(p.unbondingS, least);
        // A stake of epoch c is asked for until `unbondingS` after the end of c. By then so many more epochs have begun.
        epochsKnown = (p.unbondingS + epochS - 1) / epochS + 1;
        // The newest entry may be of the next epoch.
        _ringWords = StakeTrace.wordsFor(epochsKnown + 1);
    }

    /// @inheritdoc IStakeVault
    function deposit(uint256 amount) external {
        _deposit(amount);
    }

    /// @inheritdoc IStakeVault
    // Calls the run's own token, which calls nobody.
    // slither-disable-next-line reentrancy-events
    function depositWithPermit(uint256 amount, uint256 deadline, uint8 v, bytes32 r, bytes32 s) external {
        // Anybody may have submitted this permit before: then the call fails and the allowance is there all the same.
        try token.permit(msg.sender, address(this), amount, deadline, v, r, s) {} catch {}
        _deposit(amount);
    }

    /// @inheritdoc IStakeVault
    function requestUnbond(uint256 amount) external {
        if (amount == 0) revert ZeroAmount();
        uint256 time = epochs.runningTime();
        uint256 epoch = _epochAt(time);
        StakeTrace.Trace storage trace = _active[msg.sender];
        uint256 active = trace.latest();
        if (amount > active) revert InsufficientActive(msg.sender, active, amount);
        active -= amount;
        Exit memory out = _exits[msg.sender];
        out.amount = SafeCast.toUint96(out.amount + amount);
        // Time and the unbonding time grow and stay: a later request never unlocks earlier.
        out.unlockTime = SafeCast.toUint64(time + _unbondingS);
        out.epoch = SafeCast.toUint48(epoch);
        _exits[msg.sender] = out;
        trace.push(_ringWords, epoch + 1, active);
        emit UnbondRequested(msg.sender, amount, out.amount, out.unlockTime);
        _vacateBelowMinimum(msg.sender, active);
    }

    /// @inheritdoc IStakeVault
    function withdraw() external returns (uint256 amount) {
        uint64 time = epochs.runningTime();
        Exit storage out = _exits[msg.sender];
        amount = out.amount;
        if (amount == 0) revert NothingUnbonding(msg.sender);
        if (time <= out.unlockTime) revert StillLocked(msg.sender, out.unlockTime, time);
        uint64 next = rewards.nextEpoch();
        if (next <= out.epoch) revert NotSettled(msg.sender, out.epoch, next);
        if (out.locks != 0) revert GamesOpen(msg.sender, out.locks);
        out.amount = 0;
        emit Withdrawn(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IStakeVault
    function lock(address account) external {
        if (msg.sender != disputes) revert OnlyDisputes(msg.sender);
        Exit storage out = _exits[account];
        uint48 locks = out.locks;
        // As many games can't be opened; if they could, one lock more or less would not matter.
        if (locks != type(uint48).max) ++locks;
        out.locks = locks;
        emit Locked(account, locks);
    }

    /// @inheritdoc IStakeVault
    function unlock(address account) external {
        if (msg.sender != disputes) revert OnlyDisputes(msg.sender);
        Exit storage out = _exits[account];
        uint48 locks = out.locks;
        if (locks != 0) --locks;
        out.locks = locks;
        emit Unlocked(account, locks);
    }

    /// @inheritdoc IStakeVault
    function slash(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken) {
        if (msg.sender != verdicts && msg.sender != scores) revert OnlyJudge(msg.sender);
        uint256 epoch = _epochAt(epochs.runningTime());
        StakeTrace.Trace storage trace = _active[account];
        uint256 active = trace.latest();
        uint256 fromActive = amount < active ? amount : active;
        uint256 unbonding = _exits[account].amount;
        uint256 fromUnbonding = amount - fromActive < unbonding ? amount - fromActive : unbonding;
        taken = fromActive + fromUnbonding;
        if (bountyTo == address(0)) bounty = 0;
        if (bounty > taken) bounty = taken;

        if (fromActive != 0) trace.push(_ringWords, epoch + 1, active - fromActive);
        // forge-lint: disable-next-line(unsafe-typecast)
        if (fromUnbonding != 0) _exits[account].amount = uint96(unbonding - fromUnbonding);
        emit Slashed(account, msg.sender, taken, bountyTo, bounty);
        if (fromActive != 0) _vacateBelowMinimum(account, active - fromActive);
        if (taken != bounty) token.burn(taken - bounty);
        // The run's own token, which reverts rather than to return false.
        if (bounty != 0) assert(token.transfer(bountyTo, bounty));
    }

    /// @inheritdoc IStakeVault
    function activeOf(address account) public view returns (uint256) {
        return _active[account].latest();
    }

    /// @inheritdoc IStakeVault
    function stakeOf(address account) external view returns (uint256) {
        return activeOf(account) + _exits[account].amount;
    }

    /// @inheritdoc IStakeVault
    function unbondingOf(address account) external view returns (uint256 amount, uint64 unlockTime) {
        Exit storage out = _exits[account];
        return out.amount == 0 ? (0, 0) : (out.amount, out.unlockTime);
    }

    /// @inheritdoc IStakeVault
    function locksOf(address account) external view returns (uint256) {
        return _exits[account].locks;
    }

    /// @inheritdoc IStakeVault
    function stakeAt(address account, uint64 epoch) external view returns (uint256) {
        return _active[account].valueAt(_ringWords, epoch);
    }

    /// @inheritdoc IStakeVault
    function stakesAt(address[] calldata accounts, uint64 epoch) external view returns (uint256[] memory stakes) {
        stakes = new uint256[](accounts.length);
        for (uint256 i = 0; i < stakes.length; ++i) {
            if (accounts[i] != address(0)) stakes[i] = _active[accounts[i]].valueAt(_ringWords, epoch);
        }
    }

    function _deposit(uint256 amount) private {
        if (amount == 0) revert ZeroAmount();
        StakeTrace.Trace storage trace = _active[msg.sender];
        uint256 active = trace.latest() + amount;
        trace.push(_ringWords, _epochAt(epochs.time()) + 1, active);
        emit Deposited(msg.sender, amount, active);
        // The run's own token, which reverts rather than to return false.
        assert(token.transferFrom(msg.sender, address(this), amount));
    }

    function _vacateBelowMinimum(address account, uint256 active) private {
        if (active < _ampleStake) registry.vacate(account, active);
    }

    /// @dev As the epoch manager's: an epoch's length never changes. Saves a call in what is called most.
    function _epochAt(uint256 time) private view returns (uint256) {
        unchecked {
            return time < _genesisTime ? 0 : (time - _genesisTime) / _epochS + 1;
        }
    }
}
