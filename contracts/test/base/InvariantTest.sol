// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../../src/interfaces/IChallengeBook.sol";
import {IDataRequests} from "../../src/interfaces/IDataRequests.sol";
import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {IEpochManager} from "../../src/interfaces/IEpochManager.sol";
import {IRewardsDistributor} from "../../src/interfaces/IRewardsDistributor.sol";
import {Terms} from "../../src/interfaces/IRun.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {Fault, IVerdicts} from "../../src/interfaces/IVerdicts.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Vm} from "forge-std/Vm.sol";
import {RunTest} from "./RunTest.sol";

/// @notice What all invariants have in common: a governor that pauses and announces as often as it may, and books of all
/// money that are kept from the events alone, beside those of the contracts.
///
/// The ten invariants of a run, and where they are tested (contracts/test/invariants):
///  1. Token balance = active + unbonding + bonds + escrow + unclaimed: Money, Settlement, Games, Verdicts, Requests.
///  2. Liable stake never leaves before finality: Money, Games.
///  3. Claimed <= budget per epoch; cumulative claims only grow: Settlement.
///  4. Slashed = bounty + burned + refunded, exactly; bounty <= cap: Money, Verdicts.
///  5. Slash never reverts, for any amount or mix: Money.
///  6. Against any opponent, an honest defender never loses and an honest challenger of a bad trace always wins: Games.
///  7. Anyone can resolve every dispute by its bound: Games, Committee, Requests, Settlement.
///  8. A parameter change leaves open disputes byte-identical: Governance; and in all others whenever the governor acts.
///  9. One payout per dispute, none reopens: Games, Committee, Verdicts, Requests.
/// 10. Supply changes only by schedule or burn: Settlement; and in all others.
/// @dev The test contract is its own handler; its `act` functions are the actions. An action that reverts is undone and
/// forgotten, so a handler must not say by a revert that something is wrong: it notes a flaw, which the invariants then find.
/// What the invariants look at (books kept from events, flaws once found) stays wrong once it is: they need not look after
/// every call, which costs several times the calls themselves, and always look after the last one (`check_interval`).
/// Every handler counts what it got to; in the long profile a run that got nowhere fails.
abstract contract InvariantTest is RunTest {
    uint256 internal constant INVARIANTS = 10;

    /// The first thing that was wrong, by the number of the invariant.
    mapping(uint256 number => string) private _flaws;
    bool private _hasFlaws;
    /// How often what happened.
    mapping(string what => uint256) internal reached;

    /// Whoever may have a stake.
    address[] internal stakers;
    /// By the events: the vault's stakes, and the epoch in which an account last asked to leave.
    mapping(address account => uint256) internal booked;
    mapping(address account => uint64) internal exitEpoch;
    mapping(address to => uint256) internal donated;
    mapping(address account => uint256) internal claimedBy;
    uint256 internal claimed;
    uint256 internal fees;
    uint256 internal minted;
    uint256 internal emitted;
    uint256 internal refundsMinted;
    uint256 internal burned;
    uint256 internal slashed;
    uint256 internal slashBounties;
    /// What each contract burned, by the token's events, and what it said that it burns.
    mapping(address by => uint256) internal burnedBy;
    mapping(address by => uint256) internal saidToBurn;
    /// Bounties held for (offender, round), and how often each game or request ended.
    mapping(bytes32 key => uint256) internal heldBounty;
    mapping(bytes32 id => uint256) internal endings;
    uint256 internal bountiesOwed;
    uint256 private _supplyBefore;
    uint256 private _mintedBefore;

    modifier logged() {
        vm.recordLogs();
        _;
        readLogs();
    }

    /// @dev Once everybody is there: from here on the events tell.
    function openBooks() internal {
        readLogs();
        for (uint256 i = 0; i < stakers.length; ++i) {
            (uint256 unbonding,) = vault.unbondingOf(stakers[i]);
            booked[stakers[i]] = vault.activeOf(stakers[i]) + unbonding;
        }
        (minted, emitted, refundsMinted, burned, slashed, slashBounties) = (0, 0, 0, 0, 0, 0);
        _supplyBefore = token.totalSupply();
        _mintedBefore = token.totalMinted();
        // Refunds that are noted already are minted later.
        targetContract(address(this));
    }

    function target(bytes4[] memory actions) internal {
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    // ---------------------------------------------------------------- what was wrong, what was reached

    function expect(uint256 number, bool isSo, string memory what) internal {
        if (isSo || bytes(_flaws[number]).length != 0) return;
        _flaws[number] = what;
        _hasFlaws = true;
    }

    function assertFlawless() internal view {
        if (!_hasFlaws) return;
        for (uint256 number = 1; number <= INVARIANTS; ++number) {
            assertFlawless(number);
        }
    }

    function assertFlawless(uint256 number) internal view {
        assertEq(_flaws[number], "");
    }

    function reach(string memory what) internal {
        ++reached[what];
    }

    /// @dev For `afterInvariant`: a long run gets everywhere.
    function assertReached(string memory what) internal view {
        if (!isLong()) return;
        assertGt(reached[what], 0, string.concat("never reached: ", what));
    }

    function isLong() internal view returns (bool) {
        return keccak256(bytes(vm.envOr("FOUNDRY_PROFILE", string("default")))) == keccak256("long");
    }

    /// @dev Whether a call of somebody's succeeds. If not, neither its revert nor its events are heard of: those that a
    /// call told before it reverted are recorded all the same.
    function tryAs(address who, address callee, bytes memory data) internal returns (bool ok) {
        readLogs();
        vm.prank(who);
        (ok,) = callee.call(data);
        if (!ok) vm.getRecordedLogs();
    }

    // ---------------------------------------------------------------- time

    /// @dev To a time of the run's clock; out of a pause first.
    function goTo(uint64 time) internal virtual override {
        if (epochs.paused()) endPause();
        super.goTo(uint64(block.timestamp) + time - epochs.time());
    }

    /// @dev To a block of the run's clock.
    function rollTo(uint64 blockNumber, uint64 secondsEach) internal {
        if (epochs.paused()) endPause();
        uint64 now_ = epochs.blockNumber();
        if (blockNumber <= now_) return;
        vm.warp(block.timestamp + (blockNumber - now_) * secondsEach);
        vm.roll(block.number + blockNumber - now_);
    }

    /// @dev As anybody can, and only after its bound.
    function endPause() internal {
        uint256 most = params().pauseMostS;
        uint256 since = epochs.pauseState().lastStart;
        if (block.timestamp + 1 < since + most) {
            vm.warp(since + most - 1);
            expect(
                7, !tryAs(address(0xa11), address(epochs), abi.encodeCall(IEpochManager.resume, ())), "resumed early"
            );
            vm.warp(since + most);
            vm.roll(block.number + most / 2);
        }
        vm.warp(since + most > block.timestamp ? since + most : block.timestamp);
        expect(7, tryAs(address(0xa11), address(epochs), abi.encodeCall(IEpochManager.resume, ())), "a pause holds");
    }

    // ---------------------------------------------------------------- the governor

    function actPause() external logged {
        _govern(abi.encodeCall(IEpochManager.pause, ()));
        reach("pause");
    }

    function actResume() external logged {
        _govern(abi.encodeCall(IEpochManager.resume, ()));
    }

    function actAnnounce(uint8 later, uint16 seed) external logged {
        Terms[] memory all = epochs.schedule();
        Terms memory terms = all[all.length - 1];
        uint64 earliest = epochs.currentEpoch() + params().noticeEpochs;
        if (earliest <= terms.fromEpoch) earliest = terms.fromEpoch + 1;
        terms.fromEpoch = earliest + later % 2;
        terms.specHash = keccak256(abi.encode("spec", seed));
        terms.steps = 1 + seed % 99;
        terms.traceEvery = 1 + seed % terms.steps;
        terms.samplesPerRound = 1 + seed % 9;
        terms.judge = seed % 2 == 0 ? address(committee) : otherJudge();
        _govern(abi.encodeCall(IEpochManager.announceTerms, (terms)));
        reach("terms");
    }

    function actWithdrawTerms() external logged {
        _govern(abi.encodeCall(IEpochManager.withdrawTerms, ()));
    }

    function otherJudge() internal view virtual returns (address) {
        return address(registry);
    }

    /// @dev All that is open, as its participants see it: no word of the governor's may change a bit of it.
    function fingerprint() internal view virtual returns (bytes32) {
        return keccak256(abi.encode(rewards.posts(), epochs.termsAt(epochs.currentEpoch()), vault.locksOf(stakers[0])));
    }

    function everywhere() internal view returns (address[11] memory) {
        return [
            address(token),
            address(registry),
            address(vault),
            address(beaconSource),
            address(scores),
            address(rewards),
            address(faults),
            address(verdicts),
            address(requests),
            address(disputes),
            address(committee)
        ];
    }

    /// @dev What the governor does writes into the epoch manager and nowhere else.
    function _govern(bytes memory data) private {
        bytes32 before = fingerprint();
        vm.record();
        vm.prank(governor);
        (bool ok,) = address(epochs).call(data);
        vm.stopRecord();
        if (!ok) revert("refused");
        address[11] memory others = everywhere();
        for (uint256 i = 0; i < others.length; ++i) {
            (, bytes32[] memory writes) = vm.accesses(others[i]);
            expect(8, writes.length == 0, "the governor wrote elsewhere");
        }
        // Forgets them: what is on record is copied with every call.
        vm.record();
        vm.stopRecord();
        expect(8, fingerprint() == before, "the governor changed something open");
    }

    // ---------------------------------------------------------------- books

    function readLogs() internal virtual {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            noted(logs[i]);
        }
    }

    function noted(Vm.Log memory log) internal virtual {
        if (log.topics.length == 0) return;
        if (log.emitter == address(token)) _noteToken(log);
        else if (log.emitter == address(vault)) _noteStake(log);
        else if (log.emitter == address(rewards)) _noteRewards(log);
        else if (log.emitter == address(verdicts)) _noteVerdict(log);
        else if (log.emitter == address(requests)) _noteRequest(log);
        else if (log.emitter == address(faults) || log.emitter == address(disputes)) _noteBook(log);
    }

    function _noteToken(Vm.Log memory log) private {
        if (log.topics[0] != IERC20.Transfer.selector) return;
        uint256 amount = abi.decode(log.data, (uint256));
        if (log.topics[1] == 0) minted += amount;
        if (log.topics[2] != 0) return;
        burned += amount;
        burnedBy[_address(log.topics[1])] += amount;
    }

    function _noteStake(Vm.Log memory log) private {
        address account = _address(log.topics[1]);
        if (log.topics[0] == IStakeVault.Deposited.selector) {
            (uint256 amount,) = abi.decode(log.data, (uint256, uint256));
            booked[account] += amount;
        } else if (log.topics[0] == IStakeVault.UnbondRequested.selector) {
            exitEpoch[account] = epochs.currentEpoch();
            reach("exit");
        } else if (log.topics[0] == IStakeVault.Withdrawn.selector) {
            _noteWithdrawal(account, abi.decode(log.data, (uint256)));
        } else if (log.topics[0] == IStakeVault.Slashed.selector) {
            (uint256 taken, uint256 bounty) = abi.decode(log.data, (uint256, uint256));
            expect(4, bounty <= taken && taken <= booked[account], "more than there was");
            booked[account] -= taken;
            slashed += taken;
            slashBounties += bounty;
            saidToBurn[address(vault)] += taken - bounty;
            reach("slash");
        }
    }

    /// @dev Nothing that the stake answers for is open any more.
    function _noteWithdrawal(address account, uint256 amount) private {
        booked[account] -= amount;
        expect(2, epochs.currentEpoch() > exitEpoch[account] + params().fraudWindowEpochs, "inside the fraud window");
        expect(2, rewards.nextEpoch() > exitEpoch[account], "before the settlement");
        expect(2, vault.locksOf(account) == 0, "during a game");
        expect(2, !epochs.paused(), "in a pause");
        reach("withdrawal");
    }

    function _noteRewards(Vm.Log memory log) private {
        bytes32 topic = log.topics[0];
        if (topic == IRewardsDistributor.SettlementStruck.selector) {
            (, uint256 bounty, uint256 burns) = abi.decode(log.data, (uint32, uint256, uint256));
            expect(4, bounty + burns == rewards.requiredBond() && bounty * 10 <= burns * 7, "a struck bond");
            saidToBurn[address(rewards)] += burns;
            reach("struck");
        } else if (topic == IRewardsDistributor.PostClosed.selector) {
            (, uint256 burns) = abi.decode(log.data, (uint32, uint256));
            saidToBurn[address(rewards)] += burns;
            reach("closed");
        } else if (topic == IRewardsDistributor.Emitted.selector) {
            uint64 epoch = uint64(uint256(log.topics[1]));
            uint256 amount = abi.decode(log.data, (uint256));
            emitted += amount;
            expect(10, endings[bytes32(uint256(epoch))]++ == 0, "an epoch emitted twice");
            expect(10, amount + rewards.choresOf(epoch) <= rewards.scheduledEmission(epoch), "above the schedule");
        } else if (topic == IRewardsDistributor.RefundsWithdrawn.selector) {
            refundsMinted += abi.decode(log.data, (uint256));
        } else if (topic == IRewardsDistributor.FeesAdded.selector) {
            fees += abi.decode(log.data, (uint256));
        } else if (topic == IRewardsDistributor.SettlementFinalised.selector) {
            reach("final");
        } else if (topic == IRewardsDistributor.Claimed.selector) {
            (, uint256 amount) = abi.decode(log.data, (address, uint256));
            address account = _address(log.topics[1]);
            claimed += amount;
            claimedBy[account] += amount;
            expect(3, amount != 0 && rewards.claimedOf(account) == claimedBy[account], "a claim that does not grow");
            reach("claim");
        }
    }

    function _noteVerdict(Vm.Log memory log) private {
        bytes32 topic = log.topics[0];
        if (topic == IVerdicts.CreditWithdrawn.selector) bountiesOwed -= abi.decode(log.data, (uint256));
        if (log.topics.length < 3) return;
        bytes32 key = keccak256(abi.encode(_address(log.topics[2]), log.topics[1]));
        if (topic == IVerdicts.Convicted.selector) {
            (Fault kind, uint256 taken, uint256 bounty) = abi.decode(log.data, (Fault, uint256, uint256));
            (, uint256 most) = verdicts.penaltyOf(kind);
            expect(4, bounty <= most && bounty * 10_000 <= taken * params().bountyBps, "a bounty above its cap");
            expect(9, heldBounty[key] == 0 || bounty == 0, "two bounties held");
            heldBounty[key] += bounty;
            bountiesOwed += bounty;
            reach("conviction");
        } else if (topic == IVerdicts.BountyPaid.selector || topic == IVerdicts.BountyCredited.selector) {
            uint256 amount = abi.decode(log.data, (uint256));
            expect(9, amount == heldBounty[key], "a bounty paid twice");
            heldBounty[key] = 0;
            if (topic == IVerdicts.BountyPaid.selector) bountiesOwed -= amount;
            reach("bounty");
        }
    }

    function _noteRequest(Vm.Log memory log) private {
        bytes32 topic = log.topics[0];
        if (topic != IDataRequests.ItemAnswered.selector && topic != IDataRequests.ItemWithheld.selector) return;
        expect(9, ++endings[log.topics[1]] == 1, "a request ended twice");
        reach(topic == IDataRequests.ItemAnswered.selector ? "answered" : "withheld");
    }

    function _noteBook(Vm.Log memory log) private {
        bytes32 topic = log.topics[0];
        if (topic == IChallengeBook.ChallengeExpired.selector) {
            saidToBurn[log.emitter] += abi.decode(log.data, (uint256));
            reach("expired");
        } else if (topic == IDisputes.GameOver.selector) {
            (, uint256 toDefendant, uint256 toChallenger) = abi.decode(log.data, (uint8, uint256, uint256));
            expect(9, ++endings[log.topics[1]] == 1, "a game ended twice");
            uint256 bond = disputes.challengeBond();
            expect(4, toDefendant + toChallenger <= bond, "more than the bond");
            saidToBurn[address(disputes)] += bond - toDefendant - toChallenger;
            reach("game over");
        }
    }

    function _address(bytes32 topic) private pure returns (address) {
        return address(uint160(uint256(topic)));
    }

    // ---------------------------------------------------------------- what always holds

    /// @dev Invariant 1: each contract holds exactly what it accounts for.
    function assertBalances() internal view {
        uint256 stakes = donated[address(vault)];
        for (uint256 i = 0; i < stakers.length; ++i) {
            (uint256 unbonding,) = vault.unbondingOf(stakers[i]);
            uint256 active = vault.activeOf(stakers[i]);
            assertEq(active + unbonding, booked[stakers[i]], "a stake");
            stakes += active + unbonding;
        }
        _assertHeld(address(vault), stakes);
        _assertHeld(address(rewards), rewards.held() + rewards.settled() - claimed + donated[address(rewards)]);
        _assertHeld(address(faults), faults.bondsHeld() + donated[address(faults)]);
        _assertHeld(address(disputes), disputes.bondsHeld() + donated[address(disputes)]);
        _assertHeld(address(verdicts), bountiesOwed + donated[address(verdicts)]);
        _assertHeld(address(requests), requests.held() + donated[address(requests)]);
        _assertHeld(address(registry), 0);
        _assertHeld(address(epochs), 0);
        _assertHeld(address(scores), 0);
        _assertHeld(address(committee), 0);
        assertFlawless(1);
    }

    function _assertHeld(address account, uint256 amount) private view {
        assertEq(token.balanceOf(account), amount, "a balance");
    }

    /// @dev Invariant 4: what was slashed was paid as a bounty or burned, and no contract burned without saying so.
    function assertSlashesAddUp() internal view {
        assertEq(slashed, slashBounties + burnedBy[address(vault)], "slashed = bounty + burned");
        address[11] memory all = everywhere();
        uint256 sum = 0;
        for (uint256 i = 0; i < all.length; ++i) {
            assertEq(burnedBy[all[i]], saidToBurn[all[i]], "a burn");
            sum += burnedBy[all[i]];
        }
        assertEq(sum, burned, "burned by nobody");
        assertFlawless(4);
    }

    /// @dev Invariant 10.
    function assertSupply() internal view {
        assertEq(minted, emitted + refundsMinted, "minted beside the schedule");
        assertEq(token.totalMinted(), _mintedBefore + minted);
        assertEq(token.totalSupply(), _supplyBefore + minted - burned);
        assertLe(token.totalMinted() + rewards.refundsOwed(), CAP);
        assertFlawless(10);
    }

    /// @dev What money every invariant looks at besides its own concern.
    function assertMoney() internal view {
        assertBalances();
        assertSlashesAddUp();
        assertSupply();
        assertFlawless();
    }
}
