// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params} from "./interfaces/IRun.sol";
import {IStakeVault} from "./interfaces/IStakeVault.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {Fault, IVerdicts} from "./interfaces/IVerdicts.sol";
import {BountyWord} from "./libraries/BountyWord.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Verdicts
contract Verdicts is IVerdicts {
    using BountyWord for uint256;
    using SafeERC20 for ISynToken;

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IStakeVault public immutable vault;
    IEpochManager public immutable epochs;
    address public immutable faults;
    address public immutable disputes;
    address public immutable requests;
    address public immutable committee;
    bytes32 public immutable run;

    uint64 private immutable _revealBlocks;
    uint64 private immutable _longestGameBlocks;
    uint16 private immutable _equivocationSlashBps;
    uint16 private immutable _wrongDataSlashBps;
    uint16 private immutable _nativeSlashBps;
    uint16 private immutable _computationSlashBps;
    uint256 private immutable _bountyBps;
    uint256 private immutable _equivocationBounty;
    uint256 private immutable _nativeBounty;

    /// BountyWord: the gravest verdict, and the bounty that is held for it; hunter 0: none is.
    mapping(address offender => mapping(uint64 round => uint256 word)) private _verdicts;
    /// @inheritdoc IVerdicts
    mapping(address hunter => uint256) public creditOf;

    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        vault = IStakeVault(g.addresses.vault);
        epochs = IEpochManager(g.addresses.epochs);
        faults = g.addresses.faults;
        disputes = g.addresses.disputes;
        requests = g.addresses.requests;
        committee = g.addresses.committee;
        run = RunLib.id(g.addresses.registry, g.nonce);
        Params memory p = g.params;
        _revealBlocks = p.challengeRevealBlocks;
        _longestGameBlocks = RunLib.longestGameBlocks(p);
        _equivocationSlashBps = p.equivocationSlashBps;
        _wrongDataSlashBps = p.wrongDataSlashBps;
        _nativeSlashBps = p.nativeSlashBps;
        _computationSlashBps = p.computationSlashBps;
        _bountyBps = p.bountyBps;
        _equivocationBounty = p.equivocationBounty;
        _nativeBounty = p.nativeBounty;
    }

    /// @inheritdoc IVerdicts
    function convict(Fault kind, address offender, uint64 round, address hunter, uint64 committedBlock) external {
        if (msg.sender != faults && msg.sender != disputes) revert OnlyJudge(msg.sender);
        uint256 word = _verdicts[offender][round];
        address winner = word.hunterOf();
        if (!_isGraver(kind, word.kindOf())) {
            if (kind == word.kindOf() && winner != address(0) && committedBlock < word.committedBlockOf()) {
                _verdicts[offender][round] = BountyWord.pack(kind, hunter, committedBlock, word.bountyOf());
                emit BountyMoved(round, offender, hunter);
            }
            return;
        }
        if (winner != address(0)) {
            creditOf[winner] += word.bountyOf();
            emit BountyCredited(round, offender, winner, word.bountyOf());
        }
        // The bounty as priced goes into its word, which keeps less of it; that is what counts from there on.
        // slither-disable-next-line write-after-write
        (uint256 taken, uint256 bounty) = _price(kind, word.kindOf(), offender);
        uint256 newWord = BountyWord.pack(kind, hunter, committedBlock, bounty);
        _verdicts[offender][round] = newWord;
        bounty = newWord.bountyOf();
        emit Convicted(round, offender, hunter, kind, taken, bounty);
        vault.slash(offender, taken, address(this), bounty);
        if (word == 0) registry.exclude(offender);
    }

    /// @inheritdoc IVerdicts
    // Calls the run's vault, which tells what it took.
    // slither-disable-next-line reentrancy-events
    function fine(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken) {
        if (msg.sender != requests && msg.sender != committee) revert OnlyJudge(msg.sender);
        taken = vault.slash(account, amount, bountyTo, bounty);
        emit Fined(account, msg.sender, taken, bountyTo, bountyTo == address(0) ? 0 : Math.min(bounty, taken));
    }

    /// @inheritdoc IVerdicts
    function payBounty(address offender, uint64 round) external returns (uint256 amount) {
        uint256 word = _verdicts[offender][round];
        address hunter = word.hunterOf();
        if (hunter == address(0)) revert NoBounty(offender, round);
        uint64 payableAfter = _payableAfter(offender, word);
        uint64 blockNumber = epochs.blockNumber();
        if (blockNumber <= payableAfter) revert TooEarly(blockNumber, payableAfter);
        amount = word.bountyOf();
        _verdicts[offender][round] = BountyWord.pack(word.kindOf(), address(0), 0, 0);
        emit BountyPaid(round, offender, hunter, amount);
        token.safeTransfer(hunter, amount);
    }

    /// @inheritdoc IVerdicts
    function withdrawCredit() external returns (uint256 amount) {
        amount = creditOf[msg.sender];
        if (amount == 0) revert NoCredit(msg.sender);
        creditOf[msg.sender] = 0;
        emit CreditWithdrawn(msg.sender, amount);
        token.safeTransfer(msg.sender, amount);
    }

    /// @inheritdoc IVerdicts
    function verdictOf(address offender, uint64 round) external view returns (Verdict memory verdict) {
        uint256 word = _verdicts[offender][round];
        verdict.kind = word.kindOf();
        (verdict.takenBps,) = _penaltyOf(verdict.kind);
        verdict.hunter = word.hunterOf();
        if (verdict.hunter == address(0)) return verdict;
        verdict.bounty = word.bountyOf();
        verdict.committedBlock = word.committedBlockOf();
        verdict.payableAfter = _payableAfter(offender, word);
    }

    /// @inheritdoc IVerdicts
    function bountiesHeld() external view returns (uint256) {
        return token.balanceOf(address(this));
    }

    /// @inheritdoc IVerdicts
    function penaltyOf(Fault kind) external view returns (uint16 bps, uint256 mostBounty) {
        return _penaltyOf(kind);
    }

    /// @dev A challenge that was committed before the winner's is revealed by then. If its kind takes a game, that one is
    /// over when no game against the offender is open, or by its bound.
    function _payableAfter(address offender, uint256 word) private view returns (uint64 last) {
        last = word.committedBlockOf() + _revealBlocks;
        if (word.kindOf() >= Fault.NativeComputation && vault.locksOf(offender) != 0) last += _longestGameBlocks;
    }

    /// @dev The first verdict of a round is graver than none, whatever it costs.
    function _isGraver(Fault kind, Fault before) private view returns (bool) {
        if (before == Fault.None) return true;
        (uint256 bps,) = _penaltyOf(kind);
        (uint256 oldBps,) = _penaltyOf(before);
        return bps > oldBps;
    }

    /// @dev What is missing to this fault's fraction, out of what the lighter verdict left, and the hunter's part of it.
    // The bounty is a share of what is taken, in base units: both round down, against the hunter.
    // slither-disable-next-line divide-before-multiply
    function _price(Fault kind, Fault before, address offender) private view returns (uint256 taken, uint256 bounty) {
        (uint256 bps, uint256 mostBounty) = _penaltyOf(kind);
        (uint256 oldBps,) = _penaltyOf(before);
        taken = vault.stakeOf(offender) * (bps - oldBps) / (RunLib.BPS - oldBps);
        bounty = Math.min(taken * _bountyBps / RunLib.BPS, mostBounty);
    }

    function _penaltyOf(Fault kind) private view returns (uint16 bps, uint256 mostBounty) {
        if (kind == Fault.Equivocation || kind == Fault.WrongSpec) return (_equivocationSlashBps, _equivocationBounty);
        if (kind == Fault.NativeComputation) return (_nativeSlashBps, _nativeBounty);
        if (kind == Fault.Computation || kind == Fault.StateRoot) return (_computationSlashBps, type(uint256).max);
        if (kind == Fault.None) return (0, 0);
        return (_wrongDataSlashBps, type(uint256).max);
    }
}
