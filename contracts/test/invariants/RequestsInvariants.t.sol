// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "../../src/interfaces/IDataRequests.sol";
import {InvariantTest} from "../base/InvariantTest.sol";
import {RequestsTest} from "../base/RequestsTest.sol";
import {RunTest} from "../base/RunTest.sol";

/// @notice Requests for data: invariants 1, 7 and 9. Askers want everything, answerers answer in turn, out of turn, late,
/// wrongly or never, and stake leaves where it may.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract RequestsInvariantsTest is RequestsTest, InvariantTest {
    IDataRequests.Item[] private _items;
    mapping(uint32 slot => uint256) private _finesOf;
    address[3] private _askers;
    uint256 private _fines;

    function setUp() public override(RequestsTest, RunTest) {
        RequestsTest.setUp();
        vm.clearMockedCalls();
        for (uint256 i = 0; i < 4; ++i) {
            stakers.push(validators[i].account);
        }
        stakers.push(miner.account);
        for (uint256 i = 0; i < 3; ++i) {
            _askers[i] = makeAddr(string.concat("asker", vm.toString(i)));
            fund(_askers[i], 10_000 ether);
        }
        openBooks();
        bytes4[] memory actions = new bytes4[](14);
        actions[0] = this.actAsk.selector;
        actions[1] = this.actAsk.selector;
        actions[2] = this.actAnswer.selector;
        actions[3] = this.actAnswer.selector;
        actions[4] = this.actAnswerInTurn.selector;
        actions[5] = this.actResolve.selector;
        actions[6] = this.actResolve.selector;
        actions[7] = this.actPass.selector;
        actions[8] = this.actWithdrawBalance.selector;
        actions[9] = this.actUnbond.selector;
        actions[10] = this.actPause.selector;
        actions[11] = this.actResume.selector;
        actions[12] = this.actAnnounce.selector;
        actions[13] = this.actWithhold.selector;
        target(actions);
    }

    function goTo(uint64 time) internal override(RunTest, InvariantTest) {
        InvariantTest.goTo(time);
    }

    function fingerprint() internal view override returns (bytes32 all) {
        all = super.fingerprint();
        for (uint256 i = 0; i < _items.length; ++i) {
            all = keccak256(abi.encode(all, requests.requestOf(_items[i])));
        }
    }

    // ---------------------------------------------------------------- actions

    function actPass(uint8 blocks, bool slow) external logged {
        rollTo(epochs.blockNumber() + 1 + blocks % 12, slow ? 4 : 0);
    }

    function actAsk(uint8 who, uint8 kind, uint8 index) external logged {
        IDataRequests.Item memory wanted = item(IDataRequests.Kind(kind % 5), kind % 5 == 0 ? 0 : index % 7);
        if (kind % 5 == 4) wanted = local(index % 4, index % 3);
        bool isNew = requests.requestOf(wanted).status == IDataRequests.Status.None;
        vm.prank(_askers[who % 3]);
        requests.request(wanted, ballots());
        expect(9, isNew, "asked twice");
        _items.push(wanted);
        reach("request");
        if (uint256(keccak256(abi.encode(who, kind, index))) % 3 == 0) _answerInTurn(wanted);
    }

    /// @dev One that is open, if there is any.
    function _openItem(uint256 which) private view returns (IDataRequests.Item memory wanted) {
        for (uint256 i = 0; i < _items.length; ++i) {
            wanted = _items[(which + i) % _items.length];
            if (requests.requestOf(wanted).status == IDataRequests.Status.Open) return wanted;
        }
    }

    /// @dev Anybody, at any time, rightly or wrongly.
    function actAnswer(uint8 which, uint8 who, bool wrongly) external logged {
        IDataRequests.Item memory wanted = _openItem(which);
        IDataRequests.RequestView memory r = requests.requestOf(wanted);
        if (r.status != IDataRequests.Status.Open) revert("not open");
        IDataRequests.Opening memory opening = open(wanted);
        if (wrongly) opening.content = abi.encodePacked(opening.content, uint8(1));
        address answerer = who % 6 < 4 ? validators[who % 6].operator : _askers[who % 3];
        (uint32 slot, uint64 lastBlock) = requests.turnOf(wanted);
        bool inTurn = lastBlock == 0 || (who % 6 < 4 && slot == who % 6);
        bool inTime = epochs.blockNumber() <= r.deadline;
        bool ok = tryAs(answerer, address(requests), abi.encodeCall(IDataRequests.answer, (wanted, claim, opening)));
        expect(7, ok == (inTurn && inTime && !wrongly), ok ? "a bad answer" : "a good answer refused");
    }

    /// @dev An honest validator is never out of pocket.
    function actAnswerInTurn(uint8 which) external logged {
        IDataRequests.Item memory wanted = _openItem(which);
        if (requests.requestOf(wanted).status != IDataRequests.Status.Open) revert("not open");
        _answerInTurn(wanted);
    }

    function _answerInTurn(IDataRequests.Item memory wanted) private {
        (uint32 slot, uint64 lastBlock) = requests.turnOf(wanted);
        if (lastBlock == 0) revert("no turn");
        IDataRequests.Opening memory opening = open(wanted);
        uint256 fee = requests.feeOf(wanted.kind, opening.content.length + opening.tensor.length);
        uint256 before = requests.balanceOf(validators[slot].account);
        bytes memory data = abi.encodeCall(IDataRequests.answer, (wanted, claim, opening));
        expect(6, tryAs(validators[slot].operator, address(requests), data), "an answer in turn refused");
        expect(4, requests.balanceOf(validators[slot].account) == before + fee && fee <= BOND, "unpaid");
    }

    function actResolve(uint8 which, uint8 who) external logged {
        IDataRequests.Item memory wanted = which % 4 == 0 ? _items[which % _items.length] : _openItem(which);
        _resolve(wanted, _askers[who % 3]);
    }

    function _resolve(IDataRequests.Item memory wanted, address asker) private {
        IDataRequests.RequestView memory r = requests.requestOf(wanted);
        bool fined = requests.wasFined(wanted.round, wanted.minerSlot, wanted.digest, wanted.kind);
        bytes memory data = abi.encodeCall(IDataRequests.resolve, (wanted));
        uint256 slashedBefore = _stakeOfAll();
        bool ok = tryAs(asker, address(requests), data);
        bool due = r.status == IDataRequests.Status.Open && epochs.blockNumber() > r.deadline && !epochs.paused();
        expect(7, ok == due, ok ? "resolved early or twice" : "a request can't be resolved");
        if (!ok) return;
        uint256 lost = slashedBefore - _stakeOfAll();
        // Three set the bit; each loses the fixed sum, once a kind.
        if (fined) expect(4, lost == 0, "a kind fined twice");
        else expect(4, lost == 3 * FINE, "another fine");
        if (!fined) ++_fines;
        expect(4, _fines <= 5, "more than five fines");
    }

    /// @dev Nobody answers any more.
    function actWithhold(uint8 which) external logged {
        IDataRequests.Item memory wanted = _openItem(which);
        if (requests.requestOf(wanted).status != IDataRequests.Status.Open) revert("not open");
        // A kind that was fined is not asked for any more.
        if (reached["answered"] == 0) revert("later");
        rollTo(requests.requestOf(wanted).deadline + 1, 0);
        _resolve(wanted, address(0xa11));
    }

    function actWithdrawBalance(uint8 who) external logged {
        requests.withdraw(who % 7 < 4 ? validators[who % 7].account : _askers[who % 7 - 4]);
    }

    /// @dev Not the whole of it, so that each fine finds its sum.
    function actUnbond(uint8 who, uint64 amount) external logged {
        vm.prank(validators[who % 4].account);
        vault.requestUnbond(1 + amount % 1 ether);
    }

    function _stakeOfAll() private view returns (uint256 sum) {
        for (uint256 i = 0; i < 4; ++i) {
            (uint256 unbonding,) = vault.unbondingOf(validators[i].account);
            sum += vault.activeOf(validators[i].account) + unbonding;
        }
    }

    // ---------------------------------------------------------------- invariants

    function invariant_1_and_9_bondsAndBalancesAreHeldAndEachRequestEndsOnce() public view {
        assertFlawless(9);
        uint256 sum = 0;
        for (uint256 i = 0; i < _items.length; ++i) {
            IDataRequests.Status status = requests.requestOf(_items[i]).status;
            if (status == IDataRequests.Status.Open) sum += BOND;
            assertEq(endings[requests.idOf(_items[i])], status == IDataRequests.Status.Open ? 0 : 1);
        }
        for (uint256 i = 0; i < 4; ++i) {
            sum += requests.balanceOf(validators[i].account);
        }
        for (uint256 i = 0; i < 3; ++i) {
            sum += requests.balanceOf(_askers[i]);
        }
        assertEq(requests.held(), sum);
        assertEq(booked[validators[3].account], 60 ether, "who vouched for nothing pays nothing");
        assertMoney();
    }

    function afterInvariant() public logged {
        assertReached("request");
        // Items are few, so that a run may see only one of the two ends.
        if (isLong()) assertGt(reached["answered"] + reached["withheld"], 0, "never reached: an end");
        uint64 last = epochs.blockNumber();
        for (uint256 i = 0; i < _items.length; ++i) {
            uint64 deadline = requests.requestOf(_items[i]).deadline;
            if (deadline > last) last = deadline;
        }
        rollTo(last + 1, 0);
        if (epochs.paused()) endPause();
        for (uint256 i = 0; i < _items.length; ++i) {
            if (requests.requestOf(_items[i]).status != IDataRequests.Status.Open) continue;
            bytes memory data = abi.encodeCall(IDataRequests.resolve, (_items[i]));
            assertTrue(tryAs(address(0xa11), address(requests), data), "a request without an end");
        }
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(requests.openRequests(_askers[i], digest), 0);
        }
    }
}
