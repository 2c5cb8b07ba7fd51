// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ChallengeBook} from "../../src/ChallengeBook.sol";
import {IDataRequests} from "../../src/interfaces/IDataRequests.sol";
import {IEpochManager} from "../../src/interfaces/IEpochManager.sol";
import {Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Fault, IVerdicts} from "../../src/interfaces/IVerdicts.sol";
import {Treasury} from "./Treasury.sol";

/// @notice Actions around faults: verdicts of every kind in any order, hunters who commit and never come back, a miner
/// that signs twice, validators that serve or withhold.
abstract contract Courts is Treasury {
    struct Case {
        address offender;
        uint64 round;
    }

    /// Rounds that were played, and what each miner handed in.
    uint64[] internal played;
    mapping(uint64 round => mapping(uint256 miner => Submission)) internal handedIn;
    mapping(uint64 round => uint32 mask) internal attesters;
    Case[] internal cases;
    IDataRequests.Item[] internal items;
    bytes32[] internal commitments;

    // ---------------------------------------------------------------- verdicts

    function actConvict(uint8 who, uint8 kindSeed, uint8 back, uint8 lately, bool byDisputes) external {
        Fault kind = Fault(1 + kindSeed % 8);
        // Few offenders and rounds, so that verdicts meet.
        address offender = actorAt(who % 3 == 0 ? who : 0).account;
        uint64 round = 1 + back % 2;
        cases.push(Case(offender, round));
        IVerdicts.Verdict memory before = verdicts.verdictOf(offender, round);
        (uint256 supply, uint256 held, uint256 stake) =
            (token.totalSupply(), verdicts.bountiesHeld(), stakeOf(offender));
        address hunter = hunters[lately % 2];
        uint64 committed = epochs.blockNumber() - lately % 30;
        vm.prank(byDisputes ? address(disputes) : address(faults));
        try verdicts.convict(kind, offender, round, hunter, committed) {}
        catch {
            must(epochs.paused(), "a verdict failed");
            return;
        }
        uint256 taken = stake - stakeOf(offender);
        uint256 bounty = verdicts.bountiesHeld() - held;
        must(taken == bounty + supply - token.totalSupply(), "a verdict is not bounty and burned, to the unit");
        must(bounty <= taken * 4000 / 10_000, "a bounty above 40 %");
        (uint16 bps, uint256 most) = verdicts.penaltyOf(kind);
        must(bounty <= most, "a bounty above its fixed sum");
        uint16 old = before.takenBps;
        must(bps > old || before.kind == Fault.None || taken == 0, "a lighter verdict took something");
        if (taken != 0) must(taken <= stake * (bps - old) / (10_000 - old), "a verdict took more than its fraction");
        slashed += taken;
        slashPaid += bounty;
        slashBurned += supply - token.totalSupply();
    }

    function actPayBounty(uint8 which) external {
        if (cases.length == 0) return;
        Case memory c = cases[which % cases.length];
        IVerdicts.Verdict memory verdict = verdicts.verdictOf(c.offender, c.round);
        uint256 before = token.balanceOf(verdict.hunter);
        uint256 amount = verdicts.payBounty(c.offender, c.round);
        must(amount == verdict.bounty && token.balanceOf(verdict.hunter) == before + amount, "another bounty was paid");
        must(epochs.blockNumber() > verdict.payableAfter, "a bounty was paid too early");
        try verdicts.payBounty(c.offender, c.round) {
            must(false, "a bounty was paid twice");
        } catch {}
    }

    function actWithdrawCredit(bool which) external {
        vm.prank(hunters[which ? 1 : 0]);
        verdicts.withdrawCredit();
    }

    function actAwait(uint8 who, uint8 back, uint8 lately, uint8 length) external {
        uint64 blockNumber = epochs.blockNumber();
        vm.prank(address(disputes));
        verdicts.await(
            actorAt(who % 3 == 0 ? who : 0).account, 1 + back % 2, blockNumber - lately % 30, blockNumber + length
        );
    }

    function actFine(uint8 who, uint256 amount, uint256 bounty, bool byCommittee) external {
        address account = actorAt(who).account;
        (uint256 supply, uint256 held, uint256 stake) =
            (token.totalSupply(), token.balanceOf(hunters[1]), stakeOf(account));
        if (amount % 7 != 0) amount %= 5 ether;
        vm.prank(byCommittee ? address(committee) : address(requests));
        try verdicts.fine(account, amount, hunters[1], bounty) returns (uint256 taken) {
            must(taken == stake - stakeOf(account), "a fine took another sum than it said");
            slashed += taken;
        } catch {
            must(epochs.paused(), "a fine failed");
        }
        slashPaid += token.balanceOf(hunters[1]) - held;
        slashBurned += supply - token.totalSupply();
    }

    // ---------------------------------------------------------------- challenges

    function actCommit(bytes32 commitment, bool inDisputes) external {
        commitments.push(commitment);
        vm.prank(hunters[0]);
        _book(inDisputes).commitChallenge(commitment);
    }

    function actExpire(uint8 which, bool inDisputes) external {
        if (commitments.length == 0) return;
        uint256 supply = token.totalSupply();
        bytes32 commitment = commitments[which % commitments.length];
        uint64 committed = _book(inDisputes).challengeBlock(hunters[0], commitment);
        _book(inDisputes).expireChallenge(hunters[0], commitment);
        must(epochs.blockNumber() > committed + 20 && !epochs.paused(), "a challenge expired too early");
        otherBurned += supply - token.totalSupply();
    }

    function actWithdrawBond(uint64 amount, bool inDisputes) external {
        vm.prank(hunters[0]);
        _book(inDisputes).withdrawBond(amount);
    }

    function _book(bool inDisputes) private view returns (ChallengeBook) {
        return ChallengeBook(inDisputes ? address(disputes) : address(faults));
    }

    // ---------------------------------------------------------------- rounds, and what they leave to judge

    function actRound(uint8 silent) external {
        if (epochs.paused()) return;
        uint64 round = epochs.currentRound() + 1;
        uint64 epoch = epochs.epochOf(round);
        drawIt(round, 1);
        toTime(epochs.putOpens(round));
        for (uint256 i = 0; i < 3; ++i) {
            _handIn(round, i);
        }
        drawIt(round, 2);
        bytes32 root = keccak256(abi.encode("root", round));
        for (uint32 v = 0; v < 3; ++v) {
            address account = registry.slotAccount(Role.Validator, v, epoch);
            if (account == address(0) || silent == v) continue;
            vm.prank(registry.operatorAt(account, round));
            epochs.attest(round, root, hex"07");
            attesters[round] |= uint32(1) << v;
        }
        toTime(epochs.attestDeadline(round) + 1);
        played.push(round);
    }

    function _handIn(uint64 round, uint256 i) private {
        Submission storage s = handedIn[round][i];
        s.run = epochs.run();
        s.specHash = SPEC_HASH;
        s.round = round;
        s.beacon = epochs.beacon(round, 1);
        s.miner = miners[i].account;
        s.initialRoot = keccak256(abi.encode("root", round));
        s.payloadBytes = 100;
        s.steps = 5;
        bytes32 digest = faults.submissionDigest(s);
        vm.prank(miners[i].operator);
        epochs.commit(round, digest);
    }

    /// @dev A miner signs something else for a round that it took part in, and a hunter proves it.
    function actEquivocate(uint8 which, uint8 who) external {
        if (played.length == 0) return;
        Submission memory a = handedIn[played[which % played.length]][who % 3];
        Submission memory b = abi.decode(abi.encode(a), (Submission));
        b.payloadBytes = 1 + which;
        uint256 key = miners[who % 3].operatorKey;
        bytes memory sigA = sign(key, faults.submissionDigest(a));
        bytes memory sigB = sign(key, faults.submissionDigest(b));
        bytes32 commitment = keccak256(abi.encode(hunters[1], keccak256(abi.encode(a, sigA, b, sigB)), SALT));
        vm.prank(hunters[1]);
        faults.commitChallenge(commitment);
        nextBlock();
        cases.push(Case(a.miner, a.round));
        (uint256 supply, uint256 held, uint256 stake) = (token.totalSupply(), verdicts.bountiesHeld(), stakeOf(a.miner));
        vm.prank(hunters[1]);
        faults.proveEquivocation(SALT, a, sigA, b, sigB);
        slashed += stake - stakeOf(a.miner);
        slashPaid += verdicts.bountiesHeld() - held;
        slashBurned += supply - token.totalSupply();
    }

    // ---------------------------------------------------------------- requests

    function actRequest(uint8 which, uint8 who) external {
        if (played.length == 0) return;
        uint64 round = played[which % played.length];
        Submission memory s = handedIn[round][who % 3];
        IDataRequests.Item memory item = IDataRequests.Item({
            round: round,
            minerSlot: who % 3,
            digest: faults.submissionDigest(s),
            kind: IDataRequests.Kind.Submission,
            index: 0
        });
        vm.prank(hunters[who % 2]);
        requests.request(item, _ballots(round));
        items.push(item);
    }

    function actAnswer(uint8 which, uint8 who, bool inTurn) external {
        if (items.length == 0) return;
        IDataRequests.Item memory item = items[which % items.length];
        Submission memory s = handedIn[item.round][item.minerSlot];
        IDataRequests.Opening memory opening;
        opening.content = sign(miners[item.minerSlot].operatorKey, item.digest);
        address sender = validators[who % 3].account;
        if (inTurn) {
            (uint32 slot,) = requests.turnOf(item);
            sender = registry.slotAccount(Role.Validator, slot, epochs.epochOf(item.round));
        }
        uint256 held = requests.held();
        vm.prank(sender);
        requests.answer(item, s, opening);
        must(requests.held() == held, "an answer moved tokens");
    }

    function actResolve(uint8 which, bool wait) external {
        if (items.length == 0) return;
        IDataRequests.Item memory item = items[which % items.length];
        IDataRequests.RequestView memory r = requests.requestOf(item);
        if (wait && r.deadline >= epochs.blockNumber()) vm.roll(block.number + r.deadline + 1 - epochs.blockNumber());
        uint256 before = 0;
        for (uint256 i = 3; i < 6; ++i) {
            before += stakeOf(actorAt(i).account);
        }
        (uint256 supply, uint256 held) = (token.totalSupply(), token.balanceOf(r.requester));
        requests.resolve(item);
        for (uint256 i = 3; i < 6; ++i) {
            before -= stakeOf(actorAt(i).account);
        }
        // 5 % of the least stake of a validator, 40 % of it to the requester.
        must(before <= 3 * 2.5 ether, "a validator lost more than the fixed sum");
        slashed += before;
        slashPaid += token.balanceOf(r.requester) - held;
        slashBurned += supply - token.totalSupply();
        try requests.resolve(item) {
            must(false, "a request was resolved twice");
        } catch {}
    }

    function actWithdrawBalance(uint8 who) external {
        requests.withdraw(who % 5 < 3 ? validators[who % 5].account : hunters[who % 5 - 3]);
    }

    function _ballots(uint64 round) private view returns (IEpochManager.Ballot[] memory ballots) {
        uint32 mask = attesters[round];
        uint256 count = 0;
        for (uint32 v = 0; v < 3; ++v) {
            if (mask >> v & 1 == 1) ++count;
        }
        ballots = new IEpochManager.Ballot[](count);
        count = 0;
        for (uint32 v = 0; v < 3; ++v) {
            if (mask >> v & 1 == 0) continue;
            ballots[count++] = IEpochManager.Ballot(v, keccak256(abi.encode("root", round)), hex"07");
        }
    }
}
