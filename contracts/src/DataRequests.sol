// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "./interfaces/IDataRequests.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {IRegistry} from "./interfaces/IRegistry.sol";
import {Genesis, Params, Role} from "./interfaces/IRun.sol";
import {Submission} from "./interfaces/ISubmission.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {IVerdicts} from "./interfaces/IVerdicts.sol";
import {LeafLib} from "./libraries/LeafLib.sol";
import {RunLib} from "./libraries/RunLib.sol";
import {SubmissionLib} from "./libraries/SubmissionLib.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title DataRequests
contract DataRequests is IDataRequests {
    using SafeERC20 for ISynToken;

    /// @dev One word. What it is about stands in its id alone.
    struct Request {
        address requester;
        uint48 openedBlock;
        uint32 setters;
        uint8 firstSlot;
        Status status;
    }

    uint8 private constant EVALUATION = 2;
    uint256 private constant VALIDATOR_SLOTS = 32;
    uint256 private constant KIB = 1024;
    /// What the largest leaf of a kind has at most: a chunk of 4096 values, all kept, is 7,172 bytes.
    uint64 private constant PAYLOAD_KIB = 8;
    /// A leaf of a tensor, and the tensor's own.
    uint64 private constant LOCAL_KIB = 2;

    ISynToken public immutable token;
    IRegistry public immutable registry;
    IEpochManager public immutable epochs;
    IVerdicts public immutable verdicts;
    bytes32 public immutable run;

    uint64 private immutable _fraudWindowEpochs;
    uint256 private immutable _unbondingS;
    uint256 private immutable _blockS;
    uint256 private immutable _bond;
    uint256 private immutable _tariff;
    uint256 private immutable _tariffPerKiB;
    uint64 private immutable _turnBlocks;
    uint64 private immutable _answerBlocks;
    uint256 private immutable _mostOpen;
    uint256 private immutable _fine;
    uint256 private immutable _bounty;

    /// @inheritdoc IDataRequests
    uint256 public held;
    mapping(bytes32 id => Request) private _requests;
    mapping(bytes32 key => bool) private _fined;
    /// @inheritdoc IDataRequests
    mapping(address requester => mapping(bytes32 digest => uint256)) public openRequests;
    /// @inheritdoc IDataRequests
    mapping(address account => uint256) public balanceOf;

    // The bounty is a share of the fine as it is taken, rounded down once each.
    // slither-disable-next-line divide-before-multiply
    constructor(Genesis memory g) {
        token = ISynToken(g.addresses.token);
        registry = IRegistry(g.addresses.registry);
        epochs = IEpochManager(g.addresses.epochs);
        verdicts = IVerdicts(g.addresses.verdicts);
        run = RunLib.id(g.addresses.registry, g.nonce);
        Params memory p = g.params;
        _fraudWindowEpochs = p.fraudWindowEpochs;
        _unbondingS = p.unbondingS;
        _blockS = p.blockS;
        _bond = p.requestBond;
        _tariff = p.answerTariff;
        _tariffPerKiB = p.answerTariffPerKiB;
        _turnBlocks = p.answerTurnBlocks;
        _answerBlocks = p.answerBlocks;
        _mostOpen = p.requestsPerSubmission;
        _fine = uint256(p.minValidatorStake) * p.withheldSlashBps / RunLib.BPS;
        _bounty = _fine * p.bountyBps / RunLib.BPS;
        uint256 dearest = uint256(p.answerTariff) + PAYLOAD_KIB * p.answerTariffPerKiB;
        if (p.requestBond < dearest) revert BondTooSmall(p.requestBond, dearest);
        if (p.answerTurnBlocks == 0) revert ZeroTurn();
    }

    /// @inheritdoc IDataRequests
    function request(Item calldata item, IEpochManager.Ballot[] calldata ballots) external returns (bytes32 id) {
        uint64 epoch = epochs.epochOf(item.round);
        uint64 time = _requireOwed(item.round, epoch);
        _requireExists(item, epoch);
        if (_fined[_kindKey(item)]) revert AlreadyFined(item.kind, item.digest);
        id = idOf(item);
        if (_requests[id].status != Status.None) revert AlreadyRequested(id, _requests[id].status);
        if (openRequests[msg.sender][item.digest] >= _mostOpen) {
            revert TooManyRequests(msg.sender, item.digest, _mostOpen);
        }

        uint32 setters = _settersOf(item, ballots);
        uint64 blockNumber = epochs.runningBlock();
        uint64 deadline = _deadline(blockNumber, setters, item.kind);
        uint256 decidedBy = time + (uint256(deadline) + 1 - blockNumber) * _blockS;
        uint256 unlockTime = epochs.epochEnd(epoch - 1) + _unbondingS;
        if (decidedBy > unlockTime) revert StakeMayLeave(unlockTime, decidedBy);

        uint32 firstSlot = _draw(setters, keccak256(abi.encode(epochs.beacon(item.round, EVALUATION), id)));
        _requests[id] = Request({
            requester: msg.sender,
            openedBlock: SafeCast.toUint48(blockNumber),
            setters: setters,
            // forge-lint: disable-next-line(unsafe-typecast)
            firstSlot: uint8(firstSlot),
            status: Status.Open
        });
        ++openRequests[msg.sender][item.digest];
        held += _bond;
        emit ItemRequested(id, msg.sender, item.digest, item, setters, firstSlot, blockNumber, deadline);
        token.safeTransferFrom(msg.sender, address(this), _bond);
    }

    /// @inheritdoc IDataRequests
    function answer(Item calldata item, Submission calldata submission, Opening calldata opening) external {
        bytes32 id = idOf(item);
        Request memory r = _requireOpen(id);
        uint64 deadline = _deadline(r.openedBlock, r.setters, item.kind);
        uint64 blockNumber = epochs.blockNumber();
        if (blockNumber > deadline) revert TooLate(deadline, blockNumber);
        uint64 epoch = epochs.epochOf(item.round);
        address paid = _payee(r, epoch, blockNumber);
        _requireShown(item, epoch, submission, opening);

        uint256 fee = paid == address(0) ? 0 : feeOf(item.kind, opening.content.length + opening.tensor.length);
        _close(id, r.requester, item.digest, Status.Answered);
        balanceOf[r.requester] += _bond - fee;
        if (fee != 0) balanceOf[paid] += fee;
        emit ItemAnswered(id, paid, fee, item, submission, opening);
    }

    /// @inheritdoc IDataRequests
    function resolve(Item calldata item) external {
        bytes32 id = idOf(item);
        Request memory r = _requireOpen(id);
        uint64 deadline = _deadline(r.openedBlock, r.setters, item.kind);
        uint64 blockNumber = epochs.runningBlock();
        if (blockNumber <= deadline) revert TooEarly(deadline, blockNumber);

        bytes32 key = _kindKey(item);
        uint256 fine = _fined[key] ? 0 : _fine;
        _fined[key] = true;
        _close(id, r.requester, item.digest, Status.Withheld);
        balanceOf[r.requester] += _bond;
        emit ItemWithheld(id, r.requester, item, r.setters, fine);
        if (fine == 0) return;
        uint64 epoch = epochs.epochOf(item.round);
        for (uint32 slot = 0; slot < VALIDATOR_SLOTS; ++slot) {
            if (!_has(r.setters, slot)) continue;
            verdicts.fine(registry.slotAccount(Role.Validator, slot, epoch), fine, r.requester, _bounty);
        }
    }

    /// @inheritdoc IDataRequests
    function withdraw(address account) external returns (uint256 amount) {
        amount = balanceOf[account];
        if (amount == 0) revert NothingToWithdraw(account);
        balanceOf[account] = 0;
        held -= amount;
        emit BalanceWithdrawn(account, amount);
        token.safeTransfer(account, amount);
    }

    /// @inheritdoc IDataRequests
    function requestOf(Item calldata item) external view returns (RequestView memory) {
        Request memory r = _requests[idOf(item)];
        return RequestView({
            status: r.status,
            requester: r.requester,
            openedBlock: r.openedBlock,
            deadline: r.status == Status.None ? 0 : _deadline(r.openedBlock, r.setters, item.kind),
            setters: r.setters,
            firstSlot: r.firstSlot
        });
    }

    /// @inheritdoc IDataRequests
    function turnOf(Item calldata item) external view returns (uint32 slot, uint64 lastBlock) {
        return _turn(_requireOpen(idOf(item)), epochs.blockNumber());
    }

    /// @inheritdoc IDataRequests
    function wasFined(uint64 round, uint32 minerSlot, bytes32 digest, Kind kind) external view returns (bool) {
        return _fined[keccak256(abi.encode(round, minerSlot, digest, kind))];
    }

    /// @inheritdoc IDataRequests
    // Begun KiB count whole.
    // slither-disable-next-line divide-before-multiply
    function feeOf(Kind kind, uint256 contentBytes) public view returns (uint256) {
        uint256 kib = (contentBytes + KIB - 1) / KIB;
        uint256 most = _mostKiB(kind);
        return _tariff + (kib < most ? kib : most) * _tariffPerKiB;
    }

    /// @inheritdoc IDataRequests
    function idOf(Item calldata item) public pure returns (bytes32) {
        return keccak256(abi.encode(item));
    }

    function _close(bytes32 id, address requester, bytes32 digest, Status status) private {
        _requests[id].status = status;
        --openRequests[requester][digest];
    }

    /// @dev The duty begins when the set is final and ends with the fraud window.
    function _requireOwed(uint64 round, uint64 epoch) private view returns (uint64 time) {
        time = epochs.runningTime();
        uint64 attestDeadline = epochs.attestDeadline(round);
        if (time <= attestDeadline) revert NotFinal(round, attestDeadline, time);
        uint64 current = epochs.currentEpoch();
        if (current > epoch + _fraudWindowEpochs) revert FraudWindowClosed(round, epoch + _fraudWindowEpochs, current);
    }

    /// @dev How many chunks and tensors there are, only an answer can tell.
    function _requireExists(Item calldata item, uint64 epoch) private view {
        address miner = registry.slotAccount(Role.Miner, item.minerSlot, epoch);
        address operator = registry.operatorAt(miner, item.round);
        if (miner == address(0) || !epochs.isCommitted(item.round, operator, item.digest)) {
            revert NotCommitted(item.round, item.minerSlot, item.digest);
        }
        uint256 count = type(uint256).max;
        if (item.kind == Kind.Submission) count = 1;
        else if (item.kind == Kind.Data) count = epochs.termsAt(epoch).samplesPerRound;
        else if (item.kind == Kind.Trace) count = LeafLib.traceLeaves(epochs.termsAt(epoch));
        if (item.index >= count) revert NoSuchItem(item.kind, item.index, count);
    }

    /// @dev The root is none of its business: who set the bit holds the submission, whatever it starts from.
    function _settersOf(Item calldata item, IEpochManager.Ballot[] calldata ballots) private view returns (uint32) {
        IEpochManager.Tally memory tally = epochs.tally(item.round, item.minerSlot, 0, ballots);
        if (tally.unopened != 0) revert BallotsMissing(tally.unopened);
        if (2 * tally.bitSet <= tally.total) revert NoMajority(tally.bitSet, tally.total);
        return tally.setters;
    }

    function _requireOpen(bytes32 id) private view returns (Request memory r) {
        r = _requests[id];
        if (r.status != Status.Open) revert NotOpen(id, r.status);
    }

    /// @dev Who is paid for an answer of the caller's: the validator it acts for, if it set the bit; else 0. Reverts in the
    /// turn of another.
    function _payee(Request memory r, uint64 epoch, uint64 blockNumber) private view returns (address account) {
        uint32 slot;
        (account, slot) = _setterOf(msg.sender, r.setters, epoch);
        if (account == address(0)) {
            (account, slot) = _setterOf(registry.accountOfOperator(msg.sender), r.setters, epoch);
        }
        (uint32 turnSlot, uint64 lastBlock) = _turn(r, blockNumber);
        if (lastBlock != 0 && (account == address(0) || slot != turnSlot)) revert NotYourTurn(turnSlot, lastBlock);
    }

    function _setterOf(address candidate, uint32 setters, uint64 epoch) private view returns (address, uint32) {
        (Role role, uint32 slot) = registry.slotOf(candidate, epoch);
        return role == Role.Validator && _has(setters, slot) ? (candidate, slot) : (address(0), 0);
    }

    function _requireShown(Item calldata item, uint64 epoch, Submission calldata submission, Opening calldata opening)
        private
        view
    {
        bytes32 digest = SubmissionLib.digest(submission, registry.domainSeparator());
        if (digest != item.digest) revert WrongSubmission(digest);
        bool shown;
        // What is not looked at is not paid for.
        if (item.kind != Kind.Local && opening.tensor.length + opening.tensorProof.length != 0) {
            revert InvalidOpening();
        }
        if (item.kind == Kind.Submission) {
            address signer = ECDSA.recover(digest, opening.content);
            address acting = registry.accountActing(signer, item.round);
            if (acting == address(0) || acting != submission.miner) revert NotSigned(signer);
            shown = true;
        } else if (item.kind == Kind.Data) {
            shown = LeafLib.showsHash(submission.dataRoot, item.index, opening, epochs.termsAt(epoch).samplesPerRound);
        } else if (item.kind == Kind.Trace) {
            uint256 count = LeafLib.traceLeaves(epochs.termsAt(epoch));
            shown = LeafLib.showsContent(submission.traceRoot, item.index, opening, count);
        } else if (item.kind == Kind.Payload) {
            shown = LeafLib.showsOrEnds(submission.payloadRoot, item.index, opening);
        } else {
            shown = LeafLib.showsLocal(submission.localOut, item.index, opening);
        }
        if (!shown) revert InvalidOpening();
    }

    /// @dev Turns last `_turnBlocks` each after the block of the request, which belongs to the first one.
    /// @return slot Whose turn it is.
    /// @return lastBlock Of the turn; 0 after all turns.
    function _turn(Request memory r, uint64 blockNumber) private view returns (uint32 slot, uint64 lastBlock) {
        uint64 elapsed = blockNumber - r.openedBlock;
        uint64 turn = elapsed == 0 ? 0 : (elapsed - 1) / _turnBlocks;
        if (turn >= _count(r.setters)) return (0, 0);
        slot = _next(r.setters, r.firstSlot, turn);
        lastBlock = r.openedBlock + (turn + 1) * _turnBlocks;
    }

    function _deadline(uint64 openedBlock, uint32 setters, Kind kind) private view returns (uint64) {
        return openedBlock + _count(setters) * _turnBlocks + _answerBlocks + _mostKiB(kind);
    }

    function _mostKiB(Kind kind) private pure returns (uint64) {
        return kind == Kind.Payload ? PAYLOAD_KIB : kind == Kind.Local ? LOCAL_KIB : 1;
    }

    function _kindKey(Item calldata item) private pure returns (bytes32) {
        return keccak256(abi.encode(item.round, item.minerSlot, item.digest, item.kind));
    }

    function _draw(uint32 setters, bytes32 entropy) private pure returns (uint32) {
        return _next(setters, 0, uint256(entropy) % _count(setters));
    }

    /// @dev The set slot that comes `steps` set slots after the first one at or after `from`, in cyclic order.
    function _next(uint32 setters, uint256 from, uint256 steps) private pure returns (uint32 slot) {
        // Two laps reach every step below the count.
        for (uint256 i = from; i < from + 2 * VALIDATOR_SLOTS; ++i) {
            // forge-lint: disable-next-line(unsafe-typecast)
            slot = uint32(i % VALIDATOR_SLOTS);
            if (!_has(setters, slot)) continue;
            if (steps == 0) return slot;
            --steps;
        }
    }

    function _has(uint32 setters, uint32 slot) private pure returns (bool) {
        return setters >> slot & 1 == 1;
    }

    function _count(uint32 setters) private pure returns (uint64 count) {
        for (; setters != 0; setters &= setters - 1) {
            ++count;
        }
    }
}
