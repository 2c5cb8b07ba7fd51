// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ICommittee} from "../../src/interfaces/ICommittee.sol";
import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Ruling} from "../../src/interfaces/IJudge.sol";
import {Params} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {GamesTest} from "../base/GamesTest.sol";
import {InvariantTest} from "../base/InvariantTest.sol";
import {NativeTest} from "../base/NativeTest.sol";
import {RunTest} from "../base/RunTest.sol";
import {Vm} from "forge-std/Vm.sol";

/// @notice Games that a committee decides: invariants 1, 4, 7 and 9. Validators vote as they like, twice, late or not at all;
/// whatever they do, the verdict is the majority's of the total stake, and each vote costs a validator one fine at most.
/// forge-config: default.invariant.check_interval = 5
/// forge-config: long.invariant.check_interval = 25
contract CommitteeInvariantsTest is NativeTest, InvariantTest {
    Submission private _claim;
    bool private _handedIn;
    /// Those that are open, and all.
    bytes32[] private _games;
    bytes32[] private _all;
    mapping(bytes32 game => uint64) private _opened;
    mapping(bytes32 game => IDisputes.Outcome) private _outcomes;
    mapping(bytes32 game => mapping(uint256 slot => uint256)) private _votes;
    mapping(bytes32 game => mapping(uint256 slot => bool)) private _fined;
    uint256 private _salt;

    function params() internal view override(NativeTest, RunTest) returns (Params memory) {
        return NativeTest.params();
    }

    function setUp() public override(GamesTest, RunTest) {
        GamesTest.setUp();
        stakers.push(miner.account);
        for (uint256 i = 0; i < VALIDATORS; ++i) {
            stakers.push(validators[i].account);
        }
        fund(hunter, 20_000 ether);
        _claim = native();
        commitSubmission(_claim);
        openBooks();
        bytes4[] memory actions = new bytes4[](17);
        actions[0] = this.actOpen.selector;
        actions[1] = this.actBisect.selector;
        actions[2] = this.actBisect.selector;
        actions[3] = this.actDecide.selector;
        actions[4] = this.actDecide.selector;
        actions[5] = this.actCommitVotes.selector;
        actions[6] = this.actRevealVotes.selector;
        actions[7] = this.actRevealVotes.selector;
        actions[8] = this.actFine.selector;
        actions[9] = this.actPass.selector;
        actions[10] = this.actPause.selector;
        actions[11] = this.actResume.selector;
        actions[12] = this.actAnnounce.selector;
        actions[13] = this.actUnbond.selector;
        actions[14] = this.actWhole.selector;
        actions[15] = this.actBisect.selector;
        actions[16] = this.actWhole.selector;
        target(actions);
    }

    function goTo(uint64 time) internal override(RunTest, InvariantTest) {
        InvariantTest.goTo(time);
    }

    function readLogs() internal override {
        sync();
    }

    function noted(Vm.Log memory log) internal override(GamesTest, InvariantTest) {
        InvariantTest.noted(log);
        if (log.emitter != address(disputes) || log.topics[0] != IDisputes.GameOver.selector) return;
        (_outcomes[log.topics[1]],,) = abi.decode(log.data, (IDisputes.Outcome, uint256, uint256));
        for (uint256 i = 0; i < _games.length; ++i) {
            if (_games[i] != log.topics[1]) continue;
            _games[i] = _games[_games.length - 1];
            _games.pop();
        }
    }

    function fingerprint() internal view override returns (bytes32 all) {
        all = super.fingerprint();
        for (uint256 i = 0; i < _games.length; ++i) {
            bytes32 game = _games[i];
            all = keccak256(abi.encode(all, disputes.stateOf(game), disputes.clockOf(game), committee.voteOf(game)));
        }
    }

    function _game(uint256 which) private view returns (bytes32) {
        return _games[which % _games.length];
    }

    // ---------------------------------------------------------------- actions

    function actOpen(uint8 extra) external logged {
        if (_games.length > 2 || extra % 3 == 0) revert("enough");
        _open();
    }

    function _open() private returns (bytes32 game) {
        game = open(hunter, _claim, bytes32(++_salt));
        _games.push(game);
        _all.push(game);
        _opened[game] = epochs.blockNumber();
    }

    /// @dev To the point where the committee is asked; both sides are quick here.
    function actBisect(uint8 which, uint8 interval) external logged {
        _bisect(_game(which), interval);
    }

    function _bisect(bytes32 game, uint8 interval) private {
        uint64 last = disputes.lastBlockOf(game);
        if (last != 0 && epochs.blockNumber() > last) {
            disputes.resolveTimeout(game, positionOf(game));
        } else if (turnOf(game) == IDisputes.Turn.DefendantPosts && positionOf(game).level == 0) {
            bisect(game, 1 + interval % 3);
        } else if (turnOf(game) == IDisputes.Turn.ChallengerPicks) {
            pickChild(game, positionOf(game).level == 0 ? 1 + interval % 3 : 0);
        } else if (turnOf(game) == IDisputes.Turn.DefendantEnters) {
            enterFresh(game, positionOf(game), inner(positionOf(game).picks[0]));
        } else if (turnOf(game) == IDisputes.Turn.DefendantPosts) {
            disputes.postList(game, positionOf(game), inner(positionOf(game).picks[0]));
        } else {
            revert("done");
        }
    }

    function actDecide(uint8 which) external logged {
        bytes32 game = _game(which);
        ICommittee.Vote memory vote = committee.voteOf(game);
        bool due = turnOf(game) == IDisputes.Turn.JudgeDecides && epochs.blockNumber() > vote.revealDeadline;
        if (turnOf(game) == IDisputes.Turn.ChallengerProves) reach("vote");
        disputes.decide(game, positionOf(game), "");
        if (due) _checkEnd(game);
        else expect(7, committee.voteOf(game).ruling == Ruling.Pending, "decided early");
    }

    function actCommitVotes(uint8 which, uint16 how) external logged {
        _commitVotes(_game(which), how);
    }

    /// @dev A whole game, in time.
    function actWhole(uint256 seed) external logged {
        bytes32 game = _open();
        seed = uint256(keccak256(abi.encode(seed)));
        _bisect(game, uint8(seed));
        while (turnOf(game) != IDisputes.Turn.ChallengerProves) {
            _bisect(game, uint8(seed));
            sync();
        }
        disputes.decide(game, positionOf(game), "");
        reach("vote");
        _commitVotes(game, uint16(seed >> 8));
        rollTo(committee.voteOf(game).commitDeadline + 1, 0);
        _revealVotes(game, seed >> 24 | seed >> 32);
        rollTo(committee.voteOf(game).revealDeadline + 1, 0);
        disputes.decide(game, positionOf(game), "");
        _checkEnd(game);
    }

    function _commitVotes(bytes32 game, uint16 how) private {
        uint64 deadline = committee.voteOf(game).commitDeadline;
        if (deadline == 0) revert("no vote");
        bool inTime = epochs.blockNumber() <= deadline && !epochs.paused();
        for (uint256 i = 0; i < VALIDATORS; ++i) {
            uint256 v = how >> (3 * i) & 7;
            if (v > 5) continue;
            bool isNew = committee.commitmentOf(game, uint32(i)) == 0;
            bytes memory data = abi.encodeCall(ICommittee.commitVote, (game, commitmentOf(game, i, v < 3)));
            bool ok = tryAs(validators[i].operator, address(committee), data);
            expect(7, ok == (inTime && isNew), ok ? "a late or second vote" : "a vote refused");
            if (ok) _votes[game][i] = v < 3 ? 1 : 2;
        }
    }

    function actRevealVotes(uint8 which, uint8 whom) external logged {
        _revealVotes(_game(which), uint256(keccak256(abi.encode(which, whom))));
    }

    /// @param whom A bit for each validator.
    function _revealVotes(bytes32 game, uint256 whom) private {
        ICommittee.Vote memory vote = committee.voteOf(game);
        bool inTime = epochs.blockNumber() > vote.commitDeadline && epochs.blockNumber() <= vote.revealDeadline
            && !epochs.paused();
        for (uint32 i = 0; i < VALIDATORS; ++i) {
            if (whom >> i & 1 == 0 || _votes[game][i] == 0) continue;
            bool isNew = (vote.votedGuilty | vote.votedNotGuilty) >> i & 1 == 0;
            bytes memory other = abi.encodeCall(ICommittee.revealVote, (game, i, _votes[game][i] == 2, VOTE_SALT));
            expect(9, !tryAs(address(0xa11), address(committee), other), "another vote than committed");
            bytes memory data = abi.encodeCall(ICommittee.revealVote, (game, i, _votes[game][i] == 1, VOTE_SALT));
            bool ok = tryAs(address(0xa11), address(committee), data);
            expect(7, ok == (inTime && isNew), ok ? "a reveal out of time" : "a reveal refused");
            if (ok) reach("reveal");
        }
    }

    function actFine(uint8 which, uint8 who) external logged {
        (bytes32 game, uint32 slot) = (_all[which % _all.length], who % uint32(VALIDATORS));
        committee.fineVoter(game, slot);
        expect(9, !_fined[game][slot], "fined twice");
        _fined[game][slot] = true;
        ICommittee.Vote memory vote = committee.voteOf(game);
        uint32 right = vote.ruling == Ruling.Guilty ? vote.votedGuilty : vote.votedNotGuilty;
        if (vote.ruling == Ruling.Undecided) right = vote.votedGuilty | vote.votedNotGuilty;
        expect(4, right >> slot & 1 == 0, "a fine for the majority");
        reach("fine");
    }

    function actPass(uint8 blocks, bool slow) external logged {
        rollTo(epochs.blockNumber() + 1 + blocks % 12, slow ? 2 : 0);
    }

    function actUnbond(uint8 who, uint64 amount) external logged {
        vm.prank(validators[who % VALIDATORS].account);
        vault.requestUnbond(1 + amount % 1 ether);
    }

    function _checkEnd(bytes32 game) private {
        sync();
        ICommittee.Vote memory vote = committee.voteOf(game);
        Ruling expected = Ruling.Undecided;
        if (2 * vote.guilty > vote.total) expected = Ruling.Guilty;
        else if (2 * vote.notGuilty > vote.total) expected = Ruling.NotGuilty;
        expect(6, vote.ruling == expected, "not the majority's ruling");
        expect(6, uint8(_outcomes[game]) == uint8(expected), "not the ruling's outcome");
        reach("verdict");
    }

    // ---------------------------------------------------------------- invariants

    function invariant_7_and_9_everyVoteEndsByItsBoundOnceAndForEver() public view {
        for (uint256 i = 0; i < _games.length; ++i) {
            bytes32 game = _games[i];
            uint64 bound_ = _opened[game] + disputes.longestGameBlocks();
            assertLe(disputes.lastBlockOf(game), bound_);
            assertLe(committee.voteOf(game).revealDeadline, bound_);
            assertEq(endings[game], 0);
        }
        assertEq(vault.locksOf(miner.account), _games.length);
        assertMoney();
    }

    function afterInvariant() public logged {
        assertReached("vote");
        assertReached("reveal");
        assertReached("game over");
        sync();
        uint64 last = epochs.blockNumber();
        for (uint256 i = 0; i < _games.length; ++i) {
            uint64 bound_ = _opened[_games[i]] + disputes.longestGameBlocks();
            if (bound_ > last) last = bound_;
        }
        rollTo(last + 1, 2);
        if (epochs.paused()) endPause();
        while (_games.length != 0) {
            bytes32 game = _games[0];
            bytes memory data = turnOf(game) == IDisputes.Turn.JudgeDecides
                ? abi.encodeCall(IDisputes.decide, (game, positionOf(game), ""))
                : abi.encodeCall(IDisputes.resolveTimeout, (game, positionOf(game)));
            assertTrue(tryAs(address(0xa11), address(disputes), data), "a game without an end");
            sync();
            assertTrue(_games.length == 0 || _games[0] != game, "a game goes on");
        }
        sync();
        assertEq(vault.locksOf(miner.account), 0);
        assertMoney();
    }
}
