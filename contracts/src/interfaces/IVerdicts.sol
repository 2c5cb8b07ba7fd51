// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What was proven against an account.
enum Fault {
    None,
    Equivocation,
    WrongSpec,
    WrongData,
    LocalState,
    BadEncoding,
    /// As a committee found it.
    NativeComputation,
    /// As an arithmetic judge found it.
    Computation,
    StateRoot
}

/// @title Verdicts
/// @notice What a proven fault costs, and who gets the bounty. The only contract that slashes for fraud and excludes; the
/// judges report to it.
/// @dev Of all faults of one account in one round only the gravest counts: each verdict takes what is missing to its
/// fraction, so that an accomplice who proves a small fault shields nobody from a grave one. A bounty goes to the earliest
/// challenge *commit* that won, and is paid once no earlier one can win any more.
/// Token balance = bounties not paid yet, to the unit (donations apart).
interface IVerdicts {
    /// @notice The gravest verdict on an account in a round.
    struct Verdict {
        Fault kind;
        /// What its verdicts took together, in 1/10,000 of the stake before them.
        uint16 takenBps;
        /// Winner so far of the bounty that is held; 0 if none is held.
        address hunter;
        uint256 bounty;
        /// Block of the winner's commit.
        uint64 committedBlock;
        /// The bounty can be paid after this block.
        uint64 payableAfter;
    }

    /// @notice `offender` did it: `taken` was slashed, `bounty` of it is held for `hunter`, the rest was burned.
    event Convicted(
        uint64 indexed round,
        address indexed offender,
        address indexed hunter,
        Fault kind,
        uint256 taken,
        uint256 bounty
    );
    /// @notice The same fault, proven by a challenge that was committed earlier: the bounty held is `hunter`'s now.
    event BountyMoved(uint64 indexed round, address indexed offender, address indexed hunter);
    event BountyPaid(uint64 indexed round, address indexed offender, address indexed hunter, uint256 amount);
    /// @notice A duty was missed that costs a fixed sum and no exclusion.
    event Fined(address indexed account, address indexed by, uint256 taken, address indexed bountyTo, uint256 bounty);

    error OnlyJudge(address caller);
    error NoBounty(address offender, uint64 round);
    error TooEarly(uint64 blockNumber, uint64 payableAfter);

    /// @notice Punishes a proven fault: slash, suspension, and a bounty held for the hunter.
    /// @dev Only ObjectiveFaults and Disputes. Never reverts for them. A fault no graver than the round's verdict only
    /// moves the bounty, if this challenge was committed earlier than the winner's of the same kind.
    /// @param kind What was proven.
    /// @param offender Account.
    /// @param round Round of the fault.
    /// @param hunter Who proved it.
    /// @param committedBlock Block of its commit.
    function convict(Fault kind, address offender, uint64 round, address hunter, uint64 committedBlock) external;

    /// @notice Tells that a challenge committed at `committedBlock` may still win against an account's round until
    /// `lastBlock`: a bounty of a later commit waits so long.
    /// @dev Only Disputes, when a game opens.
    function await(address offender, uint64 round, uint64 committedBlock, uint64 lastBlock) external;

    /// @notice Takes a fixed sum for a missed duty, without suspension. Never reverts for its callers.
    /// @dev Only DataRequests and Committee.
    function fine(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken);

    /// @notice Pays a bounty to its winner. Anyone, after `payableAfter`.
    function payBounty(address offender, uint64 round) external returns (uint256 amount);

    function verdictOf(address offender, uint64 round) external view returns (Verdict memory);

    /// @notice Bounties held: the contract's token balance, donations apart.
    function bountiesHeld() external view returns (uint256);
}
