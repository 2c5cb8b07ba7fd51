// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataRequests} from "../src/DataRequests.sol";
import {IDataRequests} from "../src/interfaces/IDataRequests.sol";
import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Genesis, Params} from "../src/interfaces/IRun.sol";
import {Submission} from "../src/interfaces/ISubmission.sol";
import {IVerdicts} from "../src/interfaces/IVerdicts.sol";
import {RequestsTest} from "./base/RequestsTest.sol";

contract RequestTest is RequestsTest {
    error Paused();

    function _expect(bytes memory reason) private {
        vm.prank(requester);
        vm.expectRevert(reason);
    }

    function test_request_succeedsHoldingTheBond() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 3);
        bytes32 id = requests.idOf(wanted);
        uint64 opened = uint64(block.number);
        uint64 deadline = opened + TURNS + OPEN + 8;
        vm.expectEmit(true, true, true, false, address(requests));
        emit IDataRequests.ItemRequested(id, requester, digest, wanted, SETTERS, 0, opened, deadline);
        assertEq(ask(wanted), id);
        IDataRequests.RequestView memory found = requests.requestOf(wanted);
        assertEq(uint8(found.status), uint8(IDataRequests.Status.Open));
        assertEq(found.requester, requester);
        assertEq(found.setters, SETTERS);
        assertEq(found.openedBlock, opened);
        assertEq(found.deadline, deadline);
        assertLt(found.firstSlot, 3);
        assertEq(requests.openRequests(requester, digest), 1);
        assertEq(requests.held(), BOND);
        assertEq(token.balanceOf(address(requests)), BOND);
    }

    function test_request_succeedsFromTheAttestDeadlineUntilTheWindowCloses() public {
        uint256 state = vm.snapshotState();
        vm.warp(epochs.attestDeadline(ROUND));
        uint64 deadline = epochs.attestDeadline(ROUND);
        _expect(abi.encodeWithSelector(IDataRequests.NotFinal.selector, ROUND, deadline, deadline));
        requests.request(item(IDataRequests.Kind.Trace, 0), ballots());
        vm.revertToState(state);
        ask(item(IDataRequests.Kind.Trace, 0));
        goTo(epochs.epochEnd(4) - 1);
        ask(item(IDataRequests.Kind.Trace, 1));
        goTo(epochs.epochEnd(4));
        _expect(abi.encodeWithSelector(IDataRequests.FraudWindowClosed.selector, ROUND, 4, 5));
        requests.request(item(IDataRequests.Kind.Trace, 2), ballots());
    }

    function test_request_revertsIfPaused() public {
        vm.mockCallRevert(
            address(epochs),
            abi.encodeWithSelector(IEpochManager.runningTime.selector),
            abi.encodeWithSelector(Paused.selector)
        );
        _expect(abi.encodeWithSelector(Paused.selector));
        requests.request(item(IDataRequests.Kind.Trace, 0), ballots());
    }

    function test_request_revertsIfNotCommitted() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Submission, 0);
        wanted.digest = keccak256("another");
        _expect(abi.encodeWithSelector(IDataRequests.NotCommitted.selector, ROUND, 0, wanted.digest));
        requests.request(wanted, ballots());
        wanted = item(IDataRequests.Kind.Submission, 0);
        wanted.minerSlot = 1;
        _expect(abi.encodeWithSelector(IDataRequests.NotCommitted.selector, ROUND, 1, digest));
        requests.request(wanted, ballots());
        wanted = item(IDataRequests.Kind.Submission, 0);
        wanted.round = 0;
        _expect(abi.encodeWithSelector(IDataRequests.NotCommitted.selector, 0, 0, digest));
        requests.request(wanted, ballots());
    }

    function test_request_revertsBeyondTheKnownLeaves() public {
        IDataRequests.Kind[3] memory kinds =
            [IDataRequests.Kind.Submission, IDataRequests.Kind.Data, IDataRequests.Kind.Trace];
        uint64[3] memory counts = [uint64(1), 5, 5];
        for (uint256 i = 0; i < 3; ++i) {
            ask(item(kinds[i], counts[i] - 1));
            _expect(abi.encodeWithSelector(IDataRequests.NoSuchItem.selector, kinds[i], counts[i], counts[i]));
            requests.request(item(kinds[i], counts[i]), ballots());
            answerAs(inTurn(item(kinds[i], counts[i] - 1), 0).operator, item(kinds[i], counts[i] - 1));
        }
    }

    function test_request_revertsIfBallotsAreMissing() public {
        IEpochManager.Ballot[] memory opened = ballots();
        assembly {
            mstore(opened, 3)
        }
        _expect(abi.encodeWithSelector(IDataRequests.BallotsMissing.selector, 60 ether));
        requests.request(item(IDataRequests.Kind.Trace, 0), opened);
    }

    /// @dev Exactly half of the stake set the bit: not enough.
    function test_request_revertsWithoutAMajorityOfBits() public {
        IEpochManager.Tally memory tally = IEpochManager.Tally(280 ether, 0, 140 ether, 0, 3);
        vm.mockCall(address(epochs), abi.encodeWithSelector(IEpochManager.tally.selector), abi.encode(tally));
        _expect(abi.encodeWithSelector(IDataRequests.NoMajority.selector, 140 ether, 280 ether));
        requests.request(item(IDataRequests.Kind.Trace, 0), ballots());
        tally.bitSet += 1;
        vm.mockCall(address(epochs), abi.encodeWithSelector(IEpochManager.tally.selector), abi.encode(tally));
        ask(item(IDataRequests.Kind.Trace, 0));
    }

    function test_request_revertsIfAskedBefore() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 0);
        bytes32 id = ask(wanted);
        _expect(abi.encodeWithSelector(IDataRequests.AlreadyRequested.selector, id, IDataRequests.Status.Open));
        requests.request(wanted, ballots());
        answerAs(inTurn(wanted, 0).operator, wanted);
        _expect(abi.encodeWithSelector(IDataRequests.AlreadyRequested.selector, id, IDataRequests.Status.Answered));
        requests.request(wanted, ballots());
    }

    /// @dev Two of one account about one submission; another account has its own two, and an answer makes room.
    function test_request_revertsIfTooManyAreOpen() public {
        ask(item(IDataRequests.Kind.Trace, 0));
        ask(item(IDataRequests.Kind.Data, 0));
        _expect(abi.encodeWithSelector(IDataRequests.TooManyRequests.selector, requester, digest, 2));
        requests.request(item(IDataRequests.Kind.Data, 1), ballots());
        address other = makeAddr("other requester");
        fund(other, BOND);
        askAs(other, item(IDataRequests.Kind.Data, 1));
        answerAs(inTurn(item(IDataRequests.Kind.Data, 0), 0).operator, item(IDataRequests.Kind.Data, 0));
        ask(item(IDataRequests.Kind.Data, 2));
    }

    function test_request_revertsIfTheKindWasFined() public {
        ask(item(IDataRequests.Kind.Payload, 0));
        rollTo(requests.requestOf(item(IDataRequests.Kind.Payload, 0)).deadline + 1);
        requests.resolve(item(IDataRequests.Kind.Payload, 0));
        assertTrue(requests.wasFined(ROUND, 0, digest, IDataRequests.Kind.Payload));
        assertFalse(requests.wasFined(ROUND, 0, digest, IDataRequests.Kind.Local));
        _expect(abi.encodeWithSelector(IDataRequests.AlreadyFined.selector, IDataRequests.Kind.Payload, digest));
        requests.request(item(IDataRequests.Kind.Payload, 1), ballots());
        ask(local(0, 0));
    }

    function test_request_revertsWithoutTheBond() public {
        address poor = makeAddr("poor");
        fund(poor, BOND - 1);
        vm.prank(poor);
        vm.expectRevert();
        requests.request(item(IDataRequests.Kind.Trace, 0), ballots());
    }

    /// @dev Every validator comes up once, in the order of the slots; each may come first.
    function testFuzz_turnOf_visitsEachSetterOnce(uint32 setters, uint64 index) public {
        vm.assume(setters != 0);
        IEpochManager.Tally memory tally = IEpochManager.Tally(2, 0, 2, 0, setters);
        vm.mockCall(address(epochs), abi.encodeWithSelector(IEpochManager.tally.selector), abi.encode(tally));
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, index);
        ask(wanted);
        uint64 opened = uint64(block.number);
        uint32 seen = 0;
        uint32 previous = requests.requestOf(wanted).firstSlot;
        uint64 turn = 0;
        for (; seen != setters; ++turn) {
            rollTo(opened + turn * TURN + (turn == 0 ? 0 : 1));
            (uint32 slot, uint64 lastBlock) = requests.turnOf(wanted);
            assertEq(lastBlock, opened + (turn + 1) * TURN);
            assertEq(seen >> slot & 1, 0);
            assertEq(setters >> slot & 1, 1);
            // None of the setters between the one before and this one.
            for (uint32 between = (previous + 1) % 32; turn != 0 && between != slot; between = (between + 1) % 32) {
                assertEq(setters >> between & 1, 0);
            }
            (seen, previous) = (seen | uint32(1) << slot, slot);
            rollTo(lastBlock);
            (uint32 again,) = requests.turnOf(wanted);
            assertEq(again, slot);
        }
        rollTo(opened + turn * TURN + 1);
        (, uint64 last) = requests.turnOf(wanted);
        assertEq(last, 0);
        assertEq(requests.requestOf(wanted).deadline, opened + turn * TURN + OPEN + 8);
    }

    function test_constructor_revertsIfTheBondDoesNotCoverAnAnswer() public {
        Genesis memory g = genesis();
        g.params.requestBond = 0.5 ether;
        new DataRequests(g);
        g.params.requestBond = 0.5 ether - 1;
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.BondTooSmall.selector, 0.5 ether - 1, 0.5 ether));
        new DataRequests(g);
        g.params.requestBond = 1 ether;
        g.params.answerTurnBlocks = 0;
        vm.expectRevert(IDataRequests.ZeroTurn.selector);
        new DataRequests(g);
    }
}

contract AnswerTest is RequestsTest {
    function _refuse(IDataRequests.Item memory wanted, IDataRequests.Opening memory opening, bytes memory reason)
        private
    {
        vm.prank(inTurn(wanted, 0).operator);
        vm.expectRevert(reason);
        requests.answer(wanted, claim, opening);
    }

    function _refuse(IDataRequests.Item memory wanted, IDataRequests.Opening memory opening) private {
        _refuse(wanted, opening, abi.encodeWithSelector(IDataRequests.InvalidOpening.selector));
    }

    function test_answer_succeedsForEachKind() public {
        IDataRequests.Item[7] memory wanted = [
            item(IDataRequests.Kind.Submission, 0),
            item(IDataRequests.Kind.Data, 4),
            item(IDataRequests.Kind.Trace, 2),
            item(IDataRequests.Kind.Payload, 0),
            item(IDataRequests.Kind.Payload, 4),
            local(0, 0),
            local(2, 1)
        ];
        uint256[7] memory kib = [uint256(1), 1, 1, 2, 6, 2, 2];
        for (uint256 i = 0; i < wanted.length; ++i) {
            bytes32 id = ask(wanted[i]);
            Actor memory server = inTurn(wanted[i], 0);
            uint256 fee = 0.1 ether + kib[i] * 0.05 ether;
            uint256 before = requests.balanceOf(server.account);
            uint256 left = requests.balanceOf(requester);
            vm.expectEmit(address(requests));
            emit IDataRequests.ItemAnswered(id, server.account, fee, wanted[i], claim, open(wanted[i]));
            answerAs(server.operator, wanted[i]);
            assertEq(requests.balanceOf(server.account) - before, fee);
            assertEq(requests.balanceOf(requester) - left, BOND - fee);
            assertEq(requests.openRequests(requester, digest), 0);
            assertEq(uint8(requests.requestOf(wanted[i]).status), uint8(IDataRequests.Status.Answered));
        }
        assertEq(requests.held(), wanted.length * BOND);
        assertEq(token.balanceOf(address(requests)), requests.held());
    }

    function test_answer_succeedsByTheLastLeafIfThereIsNoSuchLeaf() public {
        IDataRequests.Item[5] memory wanted = [
            item(IDataRequests.Kind.Payload, 5),
            item(IDataRequests.Kind.Payload, type(uint64).max),
            local(3, 0),
            local(type(uint32).max, 7),
            local(1, 2)
        ];
        for (uint256 i = 0; i < wanted.length; ++i) {
            ask(wanted[i]);
            answerAs(inTurn(wanted[i], 0).operator, wanted[i]);
        }
    }

    /// @dev While it is a validator's turn nobody else gets in: not those before or after it, nor the miner, nor the requester.
    function test_answer_revertsInTheTurnOfAnother() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        uint64 opened = uint64(block.number);
        for (uint32 k = 0; k < 3; ++k) {
            uint64[2] memory ends = [opened + k * TURN + (k == 0 ? 0 : 1), opened + (k + 1) * TURN];
            for (uint256 i = 0; i < 2; ++i) {
                rollTo(ends[i]);
                bytes memory refusal = abi.encodeWithSelector(
                    IDataRequests.NotYourTurn.selector, (requests.requestOf(wanted).firstSlot + k) % 3, ends[1]
                );
                address[5] memory others = [
                    inTurn(wanted, k + 1).operator,
                    inTurn(wanted, k + 2).account,
                    validators[3].operator,
                    miner.operator,
                    requester
                ];
                IDataRequests.Opening memory opening = open(wanted);
                for (uint256 j = 0; j < 5; ++j) {
                    vm.prank(others[j]);
                    vm.expectRevert(refusal);
                    requests.answer(wanted, claim, opening);
                }
            }
            uint256 state = vm.snapshotState();
            answerAs(inTurn(wanted, k).operator, wanted);
            assertEq(requests.balanceOf(inTurn(wanted, k).account), 0.15 ether);
            vm.revertToState(state);
        }
    }

    function test_answer_succeedsByTheOwnerAndByAKeyThatWasRotatedOut() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        Actor memory server = inTurn(wanted, 0);
        uint256 state = vm.snapshotState();
        answerAs(server.account, wanted);
        assertEq(requests.balanceOf(server.account), 0.15 ether);
        vm.revertToState(state);
        (address next, uint256 key) = makeAddrAndKey("next operator");
        bytes memory consent = sign(key, registry.consentDigest(server.account, 1));
        vm.prank(server.account);
        registry.rotateOperator(next, consent);
        answerAs(server.operator, wanted);
        assertEq(requests.balanceOf(server.account), 0.15 ether);
    }

    /// @dev After the turns: a validator that set the bit is paid, and nobody else.
    function test_answer_succeedsByAnyoneAfterTheTurns() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        uint64 opened = uint64(block.number);
        rollTo(opened + TURNS + 1);
        address[4] memory free = [miner.operator, validators[3].operator, requester, makeAddr("stranger")];
        for (uint256 i = 0; i < free.length; ++i) {
            uint256 state = vm.snapshotState();
            answerAs(free[i], wanted);
            assertEq(requests.balanceOf(requester), BOND);
            vm.revertToState(state);
        }
        answerAs(inTurn(wanted, 0).operator, wanted);
        assertEq(requests.balanceOf(inTurn(wanted, 0).account), 0.15 ether);
        assertEq(requests.balanceOf(requester), BOND - 0.15 ether);
    }

    function test_answer_succeedsUntilTheDeadline() public {
        IDataRequests.Item memory wanted = local(1, 1);
        ask(wanted);
        uint64 deadline = requests.requestOf(wanted).deadline;
        assertEq(deadline, block.number + TURNS + OPEN + 2);
        rollTo(deadline + 1);
        IDataRequests.Opening memory opening = open(wanted);
        vm.prank(miner.operator);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.TooLate.selector, deadline, deadline + 1));
        requests.answer(wanted, claim, opening);
        vm.roll(deadline);
        answerAs(miner.operator, wanted);
        rollTo(deadline + 1);
        vm.expectRevert(
            abi.encodeWithSelector(IDataRequests.NotOpen.selector, requests.idOf(wanted), IDataRequests.Status.Answered)
        );
        requests.resolve(wanted);
    }

    function test_answer_revertsIfNotAsked() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        bytes32 id = requests.idOf(wanted);
        IDataRequests.Opening memory opening = open(wanted);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.NotOpen.selector, id, IDataRequests.Status.None));
        requests.answer(wanted, claim, opening);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.NotOpen.selector, id, IDataRequests.Status.None));
        requests.turnOf(wanted);
    }

    function test_answer_revertsIfAnsweredBefore() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        bytes32 id = ask(wanted);
        answerAs(inTurn(wanted, 0).operator, wanted);
        _refuse(
            wanted,
            open(wanted),
            abi.encodeWithSelector(IDataRequests.NotOpen.selector, id, IDataRequests.Status.Answered)
        );
    }

    function test_answer_revertsIfTheSubmissionIsAnother() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        Submission memory other = claim;
        other.payloadBytes += 1;
        IDataRequests.Opening memory opening = open(wanted);
        bytes32 found = digestOf(other);
        vm.prank(inTurn(wanted, 0).operator);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.WrongSubmission.selector, found));
        requests.answer(wanted, other, opening);
    }

    function test_answer_revertsIfTheSubmissionIsNotSigned() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Submission, 0);
        ask(wanted);
        IDataRequests.Opening memory opening = open(wanted);
        opening.content = sign(validators[0].operatorKey, digest);
        _refuse(wanted, opening, abi.encodeWithSelector(IDataRequests.NotSigned.selector, validators[0].operator));
        (address stranger, uint256 key) = makeAddrAndKey("stranger");
        opening.content = sign(key, digest);
        _refuse(wanted, opening, abi.encodeWithSelector(IDataRequests.NotSigned.selector, stranger));
        opening.content = "";
        vm.prank(inTurn(wanted, 0).operator);
        vm.expectRevert();
        requests.answer(wanted, claim, opening);
    }

    function test_answer_revertsIfTheLeafIsWrong() public {
        IDataRequests.Item[4] memory wanted = [
            item(IDataRequests.Kind.Data, 2),
            item(IDataRequests.Kind.Trace, 2),
            item(IDataRequests.Kind.Payload, 2),
            local(2, 2)
        ];
        address[] memory askers = new address[](4);
        for (uint256 i = 0; i < 4; ++i) {
            askers[i] = makeAddr(vm.toString(i));
        }
        fundAll(askers, BOND);
        for (uint256 i = 0; i < 4; ++i) {
            askAs(askers[i], wanted[i]);
            IDataRequests.Opening memory opening = open(wanted[i]);
            opening.content[0] ^= 0x80;
            _refuse(wanted[i], opening);
            opening = open(wanted[i]);
            opening.content = abi.encodePacked(opening.content, uint8(0));
            _refuse(wanted[i], opening);
            opening = open(wanted[i]);
            opening.proof[0] = keccak256("x");
            _refuse(wanted[i], opening);
            opening = open(wanted[i]);
            opening.proof = new bytes32[](opening.proof.length - 1);
            _refuse(wanted[i], opening);
            // A neighbour in its place, though it stands in the same tree.
            opening = open(item(wanted[i].kind, wanted[i].index - 1));
            _refuse(wanted[i], opening);
            opening.position += 1;
            _refuse(wanted[i], opening);
            opening.position += 1;
            _refuse(wanted[i], opening);
        }
    }

    /// @dev Else the padding would be paid for.
    function test_answer_revertsIfThereIsMoreThanTheLeaf() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 0);
        ask(wanted);
        IDataRequests.Opening memory opening = open(wanted);
        opening.tensor = new bytes(4000);
        _refuse(wanted, opening);
        opening.tensor = "";
        opening.tensorProof = new bytes32[](1);
        _refuse(wanted, opening);
        wanted = local(3, 0);
        ask(wanted);
        opening = open(wanted);
        opening.content = new bytes(1000);
        _refuse(wanted, opening);
        opening.content = "";
        opening.proof = new bytes32[](1);
        _refuse(wanted, opening);
    }

    /// @dev A leaf that exists can't be denied with one before it, nor an inner node shown for a leaf.
    function test_answer_revertsIfAnotherLeafIsShownAsTheLast() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 4);
        ask(wanted);
        for (uint64 i = 0; i < 4; ++i) {
            _refuse(wanted, open(item(IDataRequests.Kind.Payload, i)));
        }
        IDataRequests.Opening memory opening = open(wanted);
        bytes32[] memory whole = opening.proof;
        opening.proof = new bytes32[](2);
        (opening.proof[0], opening.proof[1]) = (whole[1], whole[2]);
        opening.position = 2;
        opening.content = abi.encodePacked(hashes(chunks())[4], bytes32(0));
        _refuse(wanted, opening);
        wanted = local(2, 0);
        ask(wanted);
        _refuse(wanted, open(local(1, 0)));
        opening = open(local(1, 0));
        opening.tensorPosition = 2;
        _refuse(wanted, opening);
    }

    function test_answer_succeedsInAPause() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 1);
        ask(wanted);
        bytes memory paused = abi.encodeWithSignature("Paused()");
        vm.mockCallRevert(address(epochs), abi.encodeWithSelector(IEpochManager.runningBlock.selector), paused);
        vm.expectRevert(paused);
        requests.resolve(wanted);
        answerAs(inTurn(wanted, 0).operator, wanted);
    }

    /// @dev All four others in the mempool first, and the requester too: the pay stays with the one whose turn it is.
    function test_answer_cannotBeFrontRun() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Payload, 3);
        ask(wanted);
        Actor memory honest = inTurn(wanted, 1);
        rollTo(block.number + TURN + 1);
        IDataRequests.Opening memory opening = open(wanted);
        address[4] memory thieves = [inTurn(wanted, 0).operator, inTurn(wanted, 2).operator, miner.operator, requester];
        for (uint256 i = 0; i < thieves.length; ++i) {
            vm.prank(thieves[i]);
            (bool ok,) = address(requests).call(abi.encodeCall(requests.answer, (wanted, claim, opening)));
            assertFalse(ok);
        }
        answerWith(honest.operator, wanted, opening);
        assertEq(requests.balanceOf(honest.account), 0.1 ether + 5 * 0.05 ether);
    }

    /// @dev Twenty accounts ask for whatever there is: every answer is paid, out of their bonds alone.
    function test_answer_paysForAFlood() public {
        IDataRequests.Item[] memory wanted = new IDataRequests.Item[](20);
        uint256 spent = 0;
        for (uint64 i = 0; i < 20; ++i) {
            wanted[i] = i < 5 ? item(IDataRequests.Kind.Data, i) : item(IDataRequests.Kind.Payload, i);
            address account = makeAddr(string.concat("flood ", vm.toString(i)));
            fund(account, BOND);
            askAs(account, wanted[i]);
        }
        assertEq(requests.held(), 20 * BOND);
        for (uint64 i = 0; i < 20; ++i) {
            IDataRequests.Opening memory opening = open(wanted[i]);
            spent += requests.feeOf(wanted[i].kind, opening.content.length);
            answerWith(inTurn(wanted[i], 0).operator, wanted[i], opening);
        }
        uint256 earned = 0;
        for (uint256 i = 0; i < 3; ++i) {
            earned += requests.balanceOf(validators[i].account);
        }
        assertEq(earned, spent);
        assertEq(earned, 5 * 0.15 ether + 15 * 0.4 ether);
        assertEq(requests.held(), 20 * BOND);
    }

    function testFuzz_feeOf_countsBegunKiBUpToTheLargestLeaf(uint256 kind, uint256 size) public view {
        kind = bound(kind, 0, 4);
        size = bound(size, 0, 1 << 40);
        uint256 most = kind == 3 ? 8 : kind == 4 ? 2 : 1;
        uint256 kib = size / 1024 + (size % 1024 == 0 ? 0 : 1);
        if (kib > most) kib = most;
        assertEq(requests.feeOf(IDataRequests.Kind(kind), size), 0.1 ether + kib * 0.05 ether);
    }
}

contract ResolveTest is RequestsTest {
    function _expectFines(uint64 times) private {
        for (uint256 i = 0; i < 3; ++i) {
            vm.expectCall(
                address(verdicts),
                abi.encodeCall(IVerdicts.fine, (validators[i].account, FINE, requester, BOUNTY)),
                times
            );
        }
        vm.expectCall(address(verdicts), abi.encodeWithSelector(IVerdicts.fine.selector), 3 * times);
    }

    function test_resolve_succeedsFiningEachThatSetTheBit() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Data, 3);
        bytes32 id = ask(wanted);
        uint64 deadline = requests.requestOf(wanted).deadline;
        assertEq(deadline, block.number + TURNS + OPEN + 1);
        rollTo(deadline);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.TooEarly.selector, deadline, deadline));
        requests.resolve(wanted);
        rollTo(deadline + 1);
        _expectFines(1);
        vm.expectEmit(address(requests));
        emit IDataRequests.ItemWithheld(id, requester, wanted, SETTERS, FINE);
        requests.resolve(wanted);
        assertEq(requests.balanceOf(requester), BOND);
        assertEq(requests.openRequests(requester, digest), 0);
        assertEq(requests.held(), BOND);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.NotOpen.selector, id, IDataRequests.Status.Withheld));
        requests.resolve(wanted);
    }

    /// @dev Two leaves of one kind withheld together cost one fine, and both bonds go back.
    function test_resolve_finesAKindOnce() public {
        IDataRequests.Item memory first = item(IDataRequests.Kind.Payload, 0);
        IDataRequests.Item memory second = item(IDataRequests.Kind.Payload, 1);
        ask(first);
        ask(second);
        rollTo(requests.requestOf(second).deadline + 1);
        _expectFines(1);
        requests.resolve(first);
        vm.expectEmit(address(requests));
        emit IDataRequests.ItemWithheld(requests.idOf(second), requester, second, SETTERS, 0);
        requests.resolve(second);
        assertEq(requests.balanceOf(requester), 2 * BOND);
    }

    function test_resolve_finesEachKindOfLeaf() public {
        IDataRequests.Item[5] memory wanted = [
            item(IDataRequests.Kind.Submission, 0),
            item(IDataRequests.Kind.Data, 0),
            item(IDataRequests.Kind.Trace, 0),
            item(IDataRequests.Kind.Payload, 0),
            local(0, 0)
        ];
        _expectFines(5);
        for (uint256 i = 0; i < 5; ++i) {
            ask(wanted[i]);
            rollTo(requests.requestOf(wanted[i]).deadline + 1);
            requests.resolve(wanted[i]);
        }
    }

    /// @dev One that serves saves the others: what counts is that the leaf can be had.
    function test_resolve_finesNobodyIfOneServed() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 4);
        ask(wanted);
        uint64 deadline = requests.requestOf(wanted).deadline;
        rollTo(block.number + TURNS);
        answerAs(inTurn(wanted, 2).operator, wanted);
        rollTo(deadline + 1);
        vm.expectCall(address(verdicts), abi.encodeWithSelector(IVerdicts.fine.selector), 0);
        vm.expectRevert(
            abi.encodeWithSelector(IDataRequests.NotOpen.selector, requests.idOf(wanted), IDataRequests.Status.Answered)
        );
        requests.resolve(wanted);
    }

    function test_resolve_succeedsAfterTheFraudWindow() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 4);
        goTo(epochs.epochEnd(4) - 1);
        ask(wanted);
        goTo(epochs.epochEnd(6));
        _expectFines(1);
        requests.resolve(wanted);
    }

    /// @dev All slots of a full subnet, with the miner's bit set by each.
    function test_resolve_succeedsWithAllValidators() public {
        IEpochManager.Tally memory tally = IEpochManager.Tally(2, 0, 2, 0, type(uint32).max);
        vm.mockCall(address(epochs), abi.encodeWithSelector(IEpochManager.tally.selector), abi.encode(tally));
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 4);
        ask(wanted);
        assertEq(requests.requestOf(wanted).deadline, block.number + 32 * TURN + OPEN + 1);
        rollTo(requests.requestOf(wanted).deadline + 1);
        vm.expectCall(address(verdicts), abi.encodeWithSelector(IVerdicts.fine.selector), 32);
        requests.resolve(wanted);
    }

    function test_withdraw_succeedsPayingTheAccount() public {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind.Trace, 4);
        ask(wanted);
        Actor memory server = inTurn(wanted, 0);
        answerAs(server.operator, wanted);
        uint256 before = token.balanceOf(requester);
        vm.expectEmit(address(requests));
        emit IDataRequests.BalanceWithdrawn(server.account, 0.15 ether);
        assertEq(requests.withdraw(server.account), 0.15 ether);
        requests.withdraw(requester);
        assertEq(token.balanceOf(requester) - before, BOND - 0.15 ether);
        assertEq(token.balanceOf(server.account), 0.15 ether);
        assertEq(requests.held(), 0);
        assertEq(token.balanceOf(address(requests)), 0);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.NothingToWithdraw.selector, requester));
        requests.withdraw(requester);
    }

    /// @dev Whatever happens to a handful of requests, in whatever order: bonds and balances are what the contract holds.
    function testFuzz_money_isAccountedToTheUnit(uint256 seed) public {
        IDataRequests.Item[] memory asked = new IDataRequests.Item[](12);
        uint256 count = 0;
        for (uint256 step = 0; step < 24; ++step) {
            uint256 dice = uint256(keccak256(abi.encode(seed, step)));
            if (dice % 4 == 0 && count < asked.length) {
                IDataRequests.Item memory wanted =
                    item(IDataRequests.Kind(1 + (dice >> 8) % 4), uint64((dice >> 16) % 5));
                address account = makeAddr(string.concat("asker ", vm.toString((dice >> 32) % 3)));
                if (token.balanceOf(account) < BOND) fund(account, 10 * BOND);
                vm.prank(account);
                try requests.request(wanted, ballots()) {
                    asked[count++] = wanted;
                } catch {}
            } else if (count != 0) {
                IDataRequests.Item memory wanted = asked[(dice >> 8) % count];
                IDataRequests.RequestView memory found = requests.requestOf(wanted);
                if (dice % 4 == 1) {
                    address[3] memory callers = [inTurn(wanted, 0).operator, inTurn(wanted, 1).account, miner.account];
                    IDataRequests.Opening memory opening = open(wanted);
                    vm.prank(callers[(dice >> 16) % 3]);
                    try requests.answer(wanted, claim, opening) {} catch {}
                } else if (dice % 4 == 2) {
                    vm.roll(block.number + (dice >> 16) % 12);
                    try requests.resolve(wanted) {} catch {}
                } else {
                    try requests.withdraw(found.requester) {} catch {}
                }
            }
            _assertBalanced(asked, count);
        }
    }

    function _assertBalanced(IDataRequests.Item[] memory asked, uint256 count) private {
        uint256 sum = 0;
        for (uint256 i = 0; i < count; ++i) {
            if (requests.requestOf(asked[i]).status == IDataRequests.Status.Open) sum += BOND;
        }
        for (uint256 i = 0; i < 3; ++i) {
            sum += requests.balanceOf(validators[i].account);
            sum += requests.balanceOf(makeAddr(string.concat("asker ", vm.toString(i))));
        }
        assertEq(requests.held(), sum);
        assertEq(token.balanceOf(address(requests)), sum);
    }
}

/// @notice So much time to answer that a request at the window's end would outlast the stake.
contract LongAnswersTest is RequestsTest {
    /// Stake of epoch 1 may leave after `unbondingS`; turns, the open blocks, one for the leaf, and one to resolve.
    uint64 private constant LAST = GENESIS_TIME + 500;

    function params() internal view override returns (Params memory p) {
        p = super.params();
        p.answerBlocks = (p.unbondingS - 500) / p.blockS - uint32(TURNS) - 2;
    }

    function test_request_revertsIfTheStakeMayLeave() public {
        goTo(LAST);
        ask(item(IDataRequests.Kind.Trace, 0));
        goTo(LAST + 1);
        uint256 unlocks = GENESIS_TIME + params().unbondingS;
        vm.prank(requester);
        vm.expectRevert(abi.encodeWithSelector(IDataRequests.StakeMayLeave.selector, unlocks, unlocks + 1));
        requests.request(item(IDataRequests.Kind.Trace, 1), ballots());
    }
}
