// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {Params, Terms} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Fault} from "../../src/interfaces/IVerdicts.sol";
import {GamesTest} from "../base/GamesTest.sol";

/// @notice Several games about one submission, an honest side that moves in time, and an opponent that does anything, with
/// pauses and new terms in between. Invariants 6 to 9 of the list in docs/testing.md.
/// @dev As in Ledger.sol, what must not happen is noted: a handler's revert is dropped.
abstract contract GamesInvariants is GamesTest {
    uint256 private constant MOST_GAMES = 12;

    string internal violation;
    bytes32[] internal opened;
    mapping(bytes32 game => uint64) internal openedAt;
    /// Of finished games: their word, and what the bonds held then.
    mapping(bytes32 game => bytes32) internal finished;
    World internal world;
    Submission internal accused;

    /// @dev Pauses so short and frequent that the fraud window stays open meanwhile.
    function params() internal view override returns (Params memory p) {
        p = super.params();
        (p.pauseMostS, p.pauseEveryS) = (5, 10);
    }

    function setUp() public override {
        shape.ops = 9;
        shape.elements = 3;
        super.setUp();
        world = worldOfMiner();
        accused = submission(world);
        commitSubmission(accused);
        bytes4[] memory actions = new bytes4[](8);
        actions[0] = this.actOpen.selector;
        actions[1] = this.actMove.selector;
        actions[2] = this.actWait.selector;
        actions[3] = this.actTimeout.selector;
        actions[4] = this.actPause.selector;
        actions[5] = this.actAnnounce.selector;
        actions[6] = this.actPoke.selector;
        actions[7] = this.actMove.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    function worldOfMiner() internal pure virtual returns (World memory);
    function honestDefends() internal pure virtual returns (bool);
    function moveAgainst(bytes32 game, uint256 seed) internal virtual;

    function must(bool holds, string memory what) internal {
        if (!holds && bytes(violation).length == 0) violation = what;
    }

    // ---------------------------------------------------------------- actions

    function actOpen(uint8 salt) external {
        // A challenge is a block older than its game: not while the honest side is in its last one.
        if (opened.length == MOST_GAMES || epochs.paused() || _spare(1) == 0) return;
        vm.recordLogs();
        bytes32 game = open(hunter, accused, keccak256(abi.encode(salt, opened.length)));
        opened.push(game);
        openedAt[game] = epochs.blockNumber();
    }

    /// @dev Whoever's turn it is moves: the honest side well, its opponent as it likes.
    function actMove(uint8 which, uint256 seed) external {
        bytes32 game = _pickGame(which);
        if (game == 0 || epochs.paused() || _isOver(game)) return;
        vm.recordLogs();
        bytes32[] memory before = _statesOfOthers(game);
        if (!_isHonestTurn(game)) moveAgainst(game, seed);
        else this.moveHonestly(game);
        must(
            keccak256(abi.encode(before)) == keccak256(abi.encode(_statesOfOthers(game))), "a move changed another game"
        );
        if (_isOver(game)) _finish(game);
    }

    /// @dev External, so that its revert is seen. The honest side can always move in its time.
    function moveHonestly(bytes32 game) external {
        require(msg.sender == address(this));
        IDisputes.Turn turn = turnOf(game);
        if (turn == IDisputes.Turn.ChallengerPicks) {
            pickFirstWrong(game);
        } else if (turn == IDisputes.Turn.ChallengerProves) {
            Position memory p = positionOf(game);
            disputes.decide(game, p, evidence(world, p));
        } else {
            must(answer(game, world), "an honest defendant had no answer");
        }
    }

    /// @dev Some blocks, up to the last one that the honest side has in any game: it is never late.
    function actWait(uint16 blocks, bool toTheLast) external {
        uint64 spare = _spare(60);
        vm.roll(block.number + (toTheLast ? spare : blocks % (spare + 1)));
    }

    function actTimeout(uint8 which) external {
        bytes32 game = _pickGame(which);
        if (game == 0 || _isOver(game)) return;
        Position memory p = positionOf(game);
        uint64 last = disputes.lastBlockOf(game);
        bool due = last != 0 && epochs.blockNumber() > last && !epochs.paused();
        vm.prank(makeAddr("anyone"));
        try disputes.resolveTimeout(game, p) {
            must(due, "a game timed out in time");
            _finish(game);
        } catch {
            must(!due, "nobody can end a game whose time is up");
        }
    }

    /// @dev Clocks stand still in a pause, and nobody can move.
    function actPause(uint8 blocks) external {
        bool paused = epochs.paused();
        if (!paused && blocks % 4 != 0) return;
        if (!paused) vm.warp(block.timestamp + 10);
        uint64 before = epochs.blockNumber();
        vm.prank(governor);
        paused ? epochs.resume() : epochs.pause();
        vm.roll(block.number + (paused ? 0 : blocks));
        must(epochs.blockNumber() == before, "the clock of games ran in a pause");
    }

    /// @dev 8. New terms leave open games as they are, to the byte.
    function actAnnounce(bytes32 specHash) external {
        bytes32 before = keccak256(abi.encode(_statesOfOthers(0)));
        Terms memory terms = epochs.termsAt(epochs.currentEpoch());
        (terms.fromEpoch, terms.specHash) = (epochs.currentEpoch() + 5, specHash);
        vm.prank(governor);
        epochs.announceTerms(terms);
        must(keccak256(abi.encode(_statesOfOthers(0))) == before, "new terms changed an open game");
    }

    /// @dev 9. A finished game takes no move, and pays nothing any more.
    function actPoke(uint8 which, uint8 how) external {
        bytes32 game = _pickGame(which);
        if (game == 0 || !_isOver(game)) return;
        Position memory p = positionOf(game);
        (uint256 bonds, uint256 free) = (disputes.bondsHeld(), disputes.freeBond(hunter));
        bool moved;
        if (how % 4 == 0) (moved,) = address(disputes).call(abi.encodeCall(disputes.decide, (game, p, "")));
        if (how % 4 == 1) (moved,) = address(disputes).call(abi.encodeCall(disputes.resolveTimeout, (game, p)));
        if (how % 4 == 2) (moved,) = address(disputes).call(abi.encodeCall(disputes.enterKnown, (game, p)));
        if (how % 4 == 3) {
            (moved,) = address(disputes).call(abi.encodeCall(disputes.postList, (game, p, new bytes32[](0))));
        }
        must(!moved, "a finished game took a move");
        must(disputes.bondsHeld() == bonds && disputes.freeBond(hunter) == free, "a finished game paid");
    }

    // ---------------------------------------------------------------- invariants

    function invariant_games() public view {
        assertEq(violation, "", "an action saw what must not happen");
        assertBalanced();
        uint256 running = 0;
        for (uint256 i = 0; i < opened.length; ++i) {
            bytes32 game = opened[i];
            IDisputes.Clock memory clock = disputes.clockOf(game);
            if (finished[game] != 0) {
                // 9. A finished game may give its place to another, and never changes.
                bool gone = clock.turn == IDisputes.Turn.None;
                assertTrue(gone || keccak256(abi.encode(clock)) == finished[game], "a finished game changed");
            } else {
                ++running;
                assertTrue(clock.turn != IDisputes.Turn.Over && clock.turn != IDisputes.Turn.None, "ended by nobody");
                // 7. Its time is up by the bound at the latest, and then anyone may end it (`actTimeout`).
                uint64 bound_ = openedAt[game] + disputes.longestGameBlocks();
                assertLe(disputes.lastBlockOf(game), bound_, "past the bound");
            }
        }
        assertEq(vault.locksOf(miner.account), running, "a lock for each game that runs");
        if (honestDefends()) {
            assertEq(vault.activeOf(miner.account), STAKE, "an honest defendant lost stake");
            assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.None, "an honest defendant is convicted");
        }
    }

    // ---------------------------------------------------------------- what the actions need

    function _pickGame(uint8 which) private view returns (bytes32) {
        return opened.length == 0 ? bytes32(0) : opened[which % opened.length];
    }

    function _isOver(bytes32 game) internal view returns (bool) {
        return finished[game] != 0 || turnOf(game) == IDisputes.Turn.Over;
    }

    function _isHonestTurn(bytes32 game) private view returns (bool) {
        IDisputes.Turn turn = turnOf(game);
        if (turn == IDisputes.Turn.Over) return false;
        bool defends = turn == IDisputes.Turn.DefendantPosts || turn == IDisputes.Turn.DefendantEnters;
        return defends == honestDefends();
    }

    /// @dev Blocks until the last one that the honest side has in some game.
    function _spare(uint64 most) private view returns (uint64) {
        uint64 limit = epochs.blockNumber() + most;
        for (uint256 i = 0; i < opened.length; ++i) {
            uint64 last = disputes.lastBlockOf(opened[i]);
            if (last != 0 && _isHonestTurn(opened[i]) && last < limit) limit = last;
        }
        return limit - epochs.blockNumber();
    }

    function _finish(bytes32 game) private {
        must(finished[game] == 0, "a game ended twice");
        // 6.
        IDisputes.Outcome deserved = honestDefends() ? IDisputes.Outcome.DefendantWon : IDisputes.Outcome.ChallengerWon;
        must(outcomeOf(game) == deserved, "the honest side lost");
        finished[game] = keccak256(abi.encode(disputes.clockOf(game)));
    }

    function _statesOfOthers(bytes32 game) private view returns (bytes32[] memory states) {
        states = new bytes32[](opened.length);
        for (uint256 i = 0; i < opened.length; ++i) {
            if (opened[i] == game) continue;
            states[i] = keccak256(abi.encode(disputes.clockOf(opened[i]), disputes.stateOf(opened[i])));
        }
    }
}

/// @notice Whatever a challenger does, an honest defendant never loses.
contract HonestDefendantInvariants is GamesInvariants {
    function worldOfMiner() internal pure override returns (World memory w) {
        return honest();
    }

    function honestDefends() internal pure override returns (bool) {
        return true;
    }

    /// @dev Picks, or proves, at random and badly.
    function moveAgainst(bytes32 game, uint256 seed) internal override {
        Position memory p = positionOf(game);
        if (turnOf(game) == IDisputes.Turn.ChallengerProves) {
            bytes memory proof = p.level == 1 ? abi.encode(accused) : evidence(world, p);
            if (seed % 2 == 0) proof[seed / 2 % proof.length] ^= 0x01;
            try disputes.decide(game, p, proof) {} catch {}
            return;
        }
        bytes32[] memory list = listed[p.node][1 << listDepth(p)];
        uint256 child = seed % list.length;
        bytes32 node = list[child];
        bytes32[] memory siblings = proofOf(list, child);
        if (seed >> 8 & 7 == 0) node = bytes32(seed);
        if (seed >> 8 & 7 == 1) child += list.length;
        if (seed >> 8 & 7 == 2) ++p.index;
        vm.prank(hunter);
        try disputes.pick(game, p, uint64(child), node, siblings, "") {
            sync();
        } catch {}
    }
}

/// @notice Whatever a liar answers, an honest challenger always wins.
contract HonestChallengerInvariants is GamesInvariants {
    function worldOfMiner() internal pure override returns (World memory w) {
        (w.lie, w.step, w.op, w.element) = (Lie.Word, 2, 4, 1);
    }

    function honestDefends() internal pure override returns (bool) {
        return false;
    }

    /// @dev Answers out of its own world, with forged lists, with the honest world's, or not at all.
    function moveAgainst(bytes32 game, uint256 seed) internal override {
        Position memory p = positionOf(game);
        if (seed % 4 == 0) return;
        if (seed % 4 == 1 && turnOf(game) == IDisputes.Turn.DefendantPosts) {
            bytes32[] memory list = new bytes32[](1 << listDepth(p));
            list[seed / 4 % list.length] = bytes32(seed);
            try disputes.postList(game, p, list) {
                must(false, "a forged list was taken");
            } catch {}
            return;
        }
        if (seed % 4 == 2) {
            try this.answerAs(game, true) {} catch {}
            return;
        }
        try this.answerAs(game, false) {} catch {}
    }

    function answerAs(bytes32 game, bool honestly) external {
        require(msg.sender == address(this));
        answer(game, honestly ? honest() : world);
    }
}
