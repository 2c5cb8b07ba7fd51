// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "./interfaces/IChallengeBook.sol";
import {IEpochManager} from "./interfaces/IEpochManager.sol";
import {Genesis} from "./interfaces/IRun.sol";
import {ISynToken} from "./interfaces/ISynToken.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

/// @title ChallengeBook
/// @notice What ObjectiveFaults and Disputes have in common: challenges that are committed before they are revealed, and
/// the bonds behind them.
abstract contract ChallengeBook is IChallengeBook {
    using SafeERC20 for ISynToken;

    /// @dev One word a hunter that is used again and again; most hunters never have two challenges open.
    struct Hunter {
        /// Of the first challenge's commitment; kept when it is over, so that the word is never cleared just to be filled
        /// again. To reveal what it did not commit to, a hunter would need a second preimage of 104 bits within a block.
        bytes13 tag;
        /// Of the first challenge's commit; 0: its place is free.
        uint40 blockNumber;
        /// Open challenges that have places of their own.
        uint16 others;
        /// Bonds at the hunter's disposal.
        uint96 free;
    }

    /// So that the bonds of all challenges that a hunter can have open fit into `free`.
    uint256 private constant MOST_BOND = type(uint80).max;

    ISynToken public immutable token;
    IEpochManager public immutable epochs;
    /// @inheritdoc IChallengeBook
    uint256 public immutable challengeBond;

    uint64 private immutable _revealBlocks;

    mapping(address hunter => Hunter) private _hunters;
    /// Blocks of challenges that were committed while the hunter's first place was taken.
    mapping(address hunter => mapping(bytes32 commitment => uint64 blockNumber)) private _others;
    /// @inheritdoc IChallengeBook
    uint256 public bondsHeld;

    constructor(Genesis memory g, uint256 bond) {
        if (bond > MOST_BOND) revert BondTooLarge(bond, MOST_BOND);
        token = ISynToken(g.addresses.token);
        epochs = IEpochManager(g.addresses.epochs);
        challengeBond = bond;
        _revealBlocks = g.params.challengeRevealBlocks;
    }

    /// @inheritdoc IChallengeBook
    function commitChallenge(bytes32 commitment) external {
        Hunter memory hunter = _hunters[msg.sender];
        if (_blockOf(msg.sender, hunter, commitment) != 0) revert AlreadyChallenged(msg.sender, commitment);
        uint64 blockNumber = epochs.runningBlock();
        if (hunter.blockNumber == 0) {
            (hunter.tag, hunter.blockNumber) = (_tag(commitment), SafeCast.toUint40(blockNumber));
        } else {
            if (hunter.others == type(uint16).max) revert TooManyChallenges(msg.sender);
            ++hunter.others;
            _others[msg.sender][commitment] = blockNumber;
        }
        uint256 missing = challengeBond > hunter.free ? challengeBond - hunter.free : 0;
        hunter.free = SafeCast.toUint96(hunter.free + missing - challengeBond);
        _hunters[msg.sender] = hunter;
        emit ChallengeCommitted(msg.sender, commitment, blockNumber + _revealBlocks, challengeBond);
        if (missing == 0) return;
        bondsHeld += missing;
        token.safeTransferFrom(msg.sender, address(this), missing);
    }

    /// @inheritdoc IChallengeBook
    function expireChallenge(address hunter, bytes32 commitment) external {
        Hunter memory record = _hunters[hunter];
        uint64 last = _requireChallenge(hunter, record, commitment) + _revealBlocks;
        uint64 blockNumber = epochs.runningBlock();
        if (blockNumber <= last) revert NotExpired(last, blockNumber);
        _close(hunter, record, commitment, 0);
        emit ChallengeExpired(hunter, commitment, challengeBond);
        _burnBond(challengeBond);
    }

    /// @inheritdoc IChallengeBook
    function withdrawBond(uint256 amount) external {
        _takeBond(msg.sender, amount);
        emit BondWithdrawn(msg.sender, amount);
        _payBond(msg.sender, amount);
    }

    /// @inheritdoc IChallengeBook
    function challengeBlock(address hunter, bytes32 commitment) external view returns (uint64) {
        return _blockOf(hunter, _hunters[hunter], commitment);
    }

    /// @inheritdoc IChallengeBook
    function freeBond(address hunter) external view returns (uint256) {
        return _hunters[hunter].free;
    }

    /// @dev Consumes the caller's commitment to this evidence and returns its bond to the caller's free balance.
    /// @param blockNumber Now.
    /// @return commitment What was committed.
    /// @return committedBlock When. Blocks are of the run's clock.
    function _reveal(bytes32 evidenceHash, bytes32 salt, uint64 blockNumber)
        internal
        returns (bytes32 commitment, uint64 committedBlock)
    {
        commitment = keccak256(abi.encode(msg.sender, evidenceHash, salt));
        Hunter memory hunter = _hunters[msg.sender];
        committedBlock = _requireChallenge(msg.sender, hunter, commitment);
        if (blockNumber <= committedBlock) revert RevealTooEarly(committedBlock, blockNumber);
        uint64 last = committedBlock + _revealBlocks;
        if (blockNumber > last) revert RevealTooLate(last, blockNumber);
        _close(msg.sender, hunter, commitment, challengeBond);
    }

    /// @dev Takes some of a hunter's free balance for as long as its game lasts. It stays among the bonds held.
    function _takeBond(address hunter, uint256 amount) internal {
        uint256 free = _hunters[hunter].free;
        if (amount > free) revert InsufficientBond(hunter, free, amount);
        _hunters[hunter].free = SafeCast.toUint96(free - amount);
    }

    /// @dev Gives back what was taken.
    function _returnBond(address hunter, uint256 amount) internal {
        _hunters[hunter].free = SafeCast.toUint96(_hunters[hunter].free + amount);
    }

    /// @dev Pays somebody out of what was taken.
    function _payBond(address to, uint256 amount) internal {
        bondsHeld -= amount;
        token.safeTransfer(to, amount);
    }

    /// @dev Burns some of what was taken.
    function _burnBond(uint256 amount) internal {
        bondsHeld -= amount;
        token.burn(amount);
    }

    function _close(address account, Hunter memory hunter, bytes32 commitment, uint256 freed) private {
        if (_isFirst(hunter, commitment)) {
            hunter.blockNumber = 0;
        } else {
            --hunter.others;
            delete _others[account][commitment];
        }
        hunter.free = SafeCast.toUint96(hunter.free + freed);
        _hunters[account] = hunter;
    }

    function _requireChallenge(address hunter, Hunter memory record, bytes32 commitment)
        private
        view
        returns (uint64 committedBlock)
    {
        committedBlock = _blockOf(hunter, record, commitment);
        if (committedBlock == 0) revert NotChallenged(hunter, commitment);
    }

    function _blockOf(address account, Hunter memory hunter, bytes32 commitment) private view returns (uint64) {
        if (_isFirst(hunter, commitment)) return hunter.blockNumber;
        return hunter.others == 0 ? 0 : _others[account][commitment];
    }

    function _isFirst(Hunter memory hunter, bytes32 commitment) private pure returns (bool) {
        return hunter.blockNumber != 0 && hunter.tag == _tag(commitment);
    }

    function _tag(bytes32 commitment) private pure returns (bytes13) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return bytes13(commitment);
    }
}
