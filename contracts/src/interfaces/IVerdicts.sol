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
    // From here on: at the end of a game.
    /// As a committee found it.
    NativeComputation,
    /// As an arithmetic judge found it.
    Computation,
    StateRoot
}

/// @title Verdicts
/// @notice What a proven fault costs, and who gets the bounty. The only contract that slashes for fraud and excludes; the
/// judges report to it.
/// @dev Of all faults of one account in one round only the gravest counts, by the fraction of the stake that it costs. A
/// graver verdict takes (new - old) / (1 - old) of the stake that the lighter one left, so that both together take the
/// new fraction of the whole: an accomplice who proves a small fault shields nobody from a grave one, nor gets any of its
/// bounty. Each verdict rounds down: together they never take more than the gravest fraction, and less than one base unit
/// a verdict below it. A bounty is kept to 50 significant bits, rounded down; what that leaves is burned too.
/// A bounty goes to the earliest challenge *commit* that won, and is paid once no earlier one can win any more: when an
/// earlier one must have been revealed, and, of the kinds that take a game, no game against the offender is open or the
/// longest game is over after that. So no game need be noted here, and one that opens later holds up a bounty to a bound
/// that nobody can move. A challenge of another kind never gets it, however early. Blocks are counted by the run's clock.
/// Token balance = bounties and credits not paid yet, to the unit (donations apart); nothing else keeps their sum, which
/// would cost every proof a word.
interface IVerdicts {
    /// @notice The gravest verdict on an account in a round.
    struct Verdict {
        Fault kind;
        /// What its verdicts took together, in 1/10,000 of the stake before them.
        uint16 takenBps;
        /// Winner so far of the bounty that is held; 0 if none is held.
        address hunter;
        uint256 bounty;
        /// Block of the winner's commit; 0 if no bounty is held.
        uint64 committedBlock;
        /// The bounty can be paid after this block, as things stand; 0 if none is held.
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
    /// @notice A graver verdict took the place of `hunter`'s, whose bounty it can withdraw from now on.
    event BountyCredited(uint64 indexed round, address indexed offender, address indexed hunter, uint256 amount);
    event BountyPaid(uint64 indexed round, address indexed offender, address indexed hunter, uint256 amount);
    event CreditWithdrawn(address indexed hunter, uint256 amount);
    /// @notice A duty was missed that costs a fixed sum and no exclusion.
    event Fined(address indexed account, address indexed by, uint256 taken, address indexed bountyTo, uint256 bounty);

    error OnlyJudge(address caller);
    error NoBounty(address offender, uint64 round);
    error NoCredit(address hunter);
    error TooEarly(uint64 blockNumber, uint64 payableAfter);

    /// @notice Punishes a proven fault: slash, suspension (once for all faults of a round), and a bounty held for the
    /// hunter.
    /// @dev Only ObjectiveFaults and Disputes. Never reverts for them. A fault no graver than the round's verdict only
    /// moves the bounty, if this challenge was committed earlier than the winner's of the same kind.
    /// @param kind What was proven; not None.
    /// @param offender Account.
    /// @param round Round of the fault.
    /// @param hunter Who proved it.
    /// @param committedBlock Block of its commit.
    function convict(Fault kind, address offender, uint64 round, address hunter, uint64 committedBlock) external;

    /// @notice Takes a fixed sum for a missed duty, without suspension. Never reverts for its callers.
    /// @dev Only DataRequests and Committee.
    /// @param account Who missed it.
    /// @param amount In base units; capped by the stake.
    /// @param bountyTo Who gets the bounty at once; may be 0 if `bounty` is 0.
    /// @param bounty In base units; capped by what was taken. The rest is burned.
    /// @return taken What was taken.
    function fine(address account, uint256 amount, address bountyTo, uint256 bounty) external returns (uint256 taken);

    /// @notice Pays a bounty to its winner. Anyone, after `payableAfter`.
    function payBounty(address offender, uint64 round) external returns (uint256 amount);

    /// @notice Pays out the caller's credits.
    function withdrawCredit() external returns (uint256 amount);

    function verdictOf(address offender, uint64 round) external view returns (Verdict memory);

    /// @notice Bounties that gave way to graver verdicts, for the hunter to withdraw.
    function creditOf(address hunter) external view returns (uint256);

    /// @notice Fraction of the stake that a fault costs, in 1/10,000, and the most that its bounty comes to.
    function penaltyOf(Fault kind) external view returns (uint16 bps, uint256 mostBounty);

    /// @notice Bounties and credits held: the contract's token balance.
    function bountiesHeld() external view returns (uint256);
}
