// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "./IRun.sol";

/// @title Registry of participants
/// @notice Slots map to accounts in a snapshot per epoch and change only from one epoch to the next. An owner account
/// holds the stake and the slot; its operator key signs for it and rotates from one round to the next.
/// The registry is the verifying contract of the run's EIP-712 domain {name "Syntience", version "1"}.
/// @dev Slots and stakes are checkpoints by epoch: no transaction takes a snapshot, and the past never changes.
interface IRegistry {
    /// @notice One slot of an epoch, with what a node needs to know of its holder.
    struct SlotView {
        uint32 slot;
        address account;
        /// The operator valid in the current round (in round 1 before genesis).
        address operator;
        /// The operator from the next round on; the same unless it was just rotated.
        address nextOperator;
        address payout;
        /// Active stake in the epoch's snapshot.
        uint256 stake;
        string endpoint;
    }

    /// @notice `account` holds `slot` from `fromEpoch` on.
    event Registered(
        address indexed account,
        Role indexed role,
        uint32 indexed slot,
        address operator,
        address payout,
        string endpoint,
        uint64 fromEpoch
    );
    /// @notice `operator` signs for `account` from `fromRound` on.
    event OperatorSet(address indexed account, address indexed operator, uint64 fromRound);
    event PayoutSet(address indexed account, address payout);
    event EndpointSet(address indexed account, string endpoint);
    /// @notice `account` holds no slot from `fromEpoch` on.
    event SlotVacated(address indexed account, Role indexed role, uint32 indexed slot, uint64 fromEpoch);
    /// @notice A fault of `account` was proven; it can't register before `untilEpoch` (max uint64: never again).
    event Excluded(address indexed account, uint32 faults, uint64 untilEpoch);

    error InvalidRole();
    error ZeroAddress();
    error AlreadyRegistered(address account);
    error NotRegistered(address account);
    error StakeTooLow(address account, uint256 active, uint256 minimum);
    error Suspended(address account, uint64 untilEpoch);
    /// @notice All slots of the role are taken.
    error SubnetFull(Role role, uint32 slots);
    /// @notice An operator key belongs to one account for ever and serves one unbroken span of rounds.
    error OperatorTaken(address operator, address account);
    /// @notice The consent was not signed by the operator.
    error InvalidConsent(address operator, address signer);
    error EndpointTooLong(uint256 length, uint256 most);
    error OnlyVault(address caller);
    error OnlyVerdicts(address caller);
    error NotOwnerOrOperator(address caller, address account);

    /// @notice Takes a slot for the calling owner account, from the next epoch on (before genesis: from epoch 1).
    /// @dev The vault must hold the role's minimum as active stake. An account holds one slot at a time. Registering
    /// again with the same operator needs no new consent. A stranger's operator key can't be registered: it must sign.
    /// @param role Miner or validator.
    /// @param operator Hot key that commits, attests, reveals and signs submissions; may be the caller itself.
    /// @param operatorSig 65-byte signature of `operator` over OperatorConsent(run, account, nonce).
    /// @param payout Where rewards go; 0 means the account itself.
    /// @param endpoint URL under which the node serves its blobs, at most 256 bytes.
    /// @return slot The slot taken.
    function register(Role role, address operator, bytes calldata operatorSig, address payout, string calldata endpoint)
        external
        returns (uint32 slot);

    /// @notice Replaces the caller's operator from the next round on. The old key never serves again.
    function rotateOperator(address newOperator, bytes calldata operatorSig) external;

    /// @notice Sets where the caller's rewards go; only the owner account can.
    function setPayout(address payout) external;

    /// @notice Sets an account's endpoint; its owner or its operator can.
    function setEndpoint(address account, string calldata endpoint) external;

    /// @notice Ends the slot of an account whose active stake fell below its role's minimum, from the next epoch on.
    /// @dev Only the vault. Does nothing for an account without slot, or with enough stake left.
    function vacate(address account, uint256 active) external;

    /// @notice Ends the offender's slot with the current epoch and suspends it; the third fault is for ever.
    /// @dev Only Verdicts.
    function exclude(address account) external;

    /// @notice Who holds a slot in an epoch; 0 if nobody.
    function slotAccount(Role role, uint32 slot, uint64 epoch) external view returns (address);

    /// @notice Who holds the slots of a role in an epoch, by slot; 0 where nobody does.
    function slotAccounts(Role role, uint64 epoch) external view returns (address[] memory);

    /// @notice Which slot an account holds in an epoch.
    /// @return role None without slot.
    /// @return slot The slot, 0 without one.
    function slotOf(address account, uint64 epoch) external view returns (Role role, uint32 slot);

    /// @notice `slotOf` and the epoch since which that has been so (0: since ever).
    function slotSpan(address account, uint64 epoch) external view returns (Role role, uint32 slot, uint64 since);

    /// @notice The operator valid in a round; 0 if none.
    function operatorAt(address account, uint64 round) external view returns (address);

    /// @notice The account that an operator key belongs to, at whatever time; 0 if none.
    function accountOfOperator(address operator) external view returns (address);

    /// @notice The account that an operator key may act for in a round; 0 if none.
    function accountActing(address operator, uint64 round) external view returns (address);

    /// @notice Account, role and slot that an operator acts for in a round of an epoch, in one call.
    /// @return account 0 if the key is not valid in that round.
    /// @return role None without slot in that epoch.
    /// @return slot The slot, 0 without one.
    function duty(address operator, uint64 round, uint64 epoch)
        external
        view
        returns (address account, Role role, uint32 slot);

    /// @notice Operators that the account had so far: the nonce of its next OperatorConsent.
    function operatorCount(address account) external view returns (uint256);

    /// @notice The role that the account holds or will hold from the next epoch on.
    function roleOf(address account) external view returns (Role);

    function endpointOf(address account) external view returns (string memory);

    /// @notice Where the account's rewards go: its payout address, or itself.
    function payoutOf(address account) external view returns (address);

    /// @notice Slots of a role that were ever used; a bitmap or a weight vector has no more places.
    function slotCount(Role role) external view returns (uint32);

    /// @notice All slots of a role that are held in an epoch.
    function slots(Role role, uint64 epoch) external view returns (SlotView[] memory);

    /// @notice `slots` for the slots in [from, to) alone, for large subnets.
    function slotsInRange(Role role, uint64 epoch, uint32 from, uint32 to) external view returns (SlotView[] memory);

    /// @notice Snapshot stake of all validators of an epoch.
    function totalValidatorStake(uint64 epoch) external view returns (uint256);

    /// @notice Proven faults of an account, and the epoch until which it is suspended.
    function faultsOf(address account) external view returns (uint32 faults, uint64 untilEpoch);

    /// @notice Digest that an operator signs to serve an account.
    function consentDigest(address account, uint256 nonce) external view returns (bytes32);

    /// @notice EIP-712 domain separator of the run.
    function domainSeparator() external view returns (bytes32);
}
