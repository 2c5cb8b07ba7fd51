// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IChallengeBook} from "../../src/interfaces/IChallengeBook.sol";
import {IDisputes} from "../../src/interfaces/IDisputes.sol";
import {Position} from "../../src/interfaces/IJudge.sol";
import {Params, Role} from "../../src/interfaces/IRun.sol";
import {IStakeVault} from "../../src/interfaces/IStakeVault.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Vm} from "forge-std/Vm.sol";
import {GamesTest} from "./GamesTest.sol";
import {InvariantTest} from "./InvariantTest.sol";
import {OpponentsTest} from "./OpponentsTest.sol";
import {RunTest} from "./RunTest.sol";

/// @notice Games of all kinds at once, about an honest miner's claim and about a liar's. Whose honest turn it is moves in
/// time, at the latest in its last block; everybody else does whatever they like, or nothing.
abstract contract GamesHandler is OpponentsTest, InvariantTest {
    enum Honest {
        Nobody,
        Defendant,
        Challenger
    }

    uint256 internal constant MOST_OPEN = 5;

    Actor internal honestMiner;
    Actor internal liar;
    address internal troll = makeAddr("troll");
    address internal accomplice = makeAddr("accomplice");
    World internal lies;
    bool internal begun;
    /// Those that are open, and the others.
    bytes32[] internal games;
    bytes32[] internal over;
    mapping(bytes32 game => Honest) internal honestOf;
    mapping(bytes32 game => uint64) internal openedBlock;
    mapping(bytes32 game => bytes32) internal endState;
    uint256 private _salt;

    /// @dev The first action settles what the liar lies about.
    modifier started(uint256 seed) {
        if (!begun) _begin(seed);
        useSeed(seed);
        _;
    }

    function setUp() public virtual override(GamesTest, RunTest) {
        (shape.ops, shape.elements) = (6, 3);
        GamesTest.setUp();
        honestMiner = miner;
        stakers.push(miner.account);
        stakers.push(liar.account);
        fund(troll, 20_000 ether);
        fund(accomplice, 20_000 ether);
        openBooks();
    }

    function params() internal view virtual override(GamesTest, RunTest) returns (Params memory) {
        return GamesTest.params();
    }

    function joinMore() internal virtual override {
        liar = join("liar", Role.Miner, STAKE);
    }

    function goTo(uint64 time) internal override(RunTest, InvariantTest) {
        InvariantTest.goTo(time);
    }

    function readLogs() internal override {
        sync();
    }

    function noted(Vm.Log memory log) internal virtual override(GamesTest, InvariantTest) {
        InvariantTest.noted(log);
        if (log.emitter != address(disputes) || log.topics[0] != IDisputes.GameOver.selector) return;
        bytes32 game = log.topics[1];
        (IDisputes.Outcome outcome,,) = abi.decode(log.data, (IDisputes.Outcome, uint256, uint256));
        if (honestOf[game] == Honest.Defendant) {
            expect(6, outcome == IDisputes.Outcome.DefendantWon, "an honest defendant lost");
            reach("honest defence");
        } else if (honestOf[game] == Honest.Challenger) {
            expect(6, outcome == IDisputes.Outcome.ChallengerWon, "an honest challenger lost");
            reach("honest challenge");
        }
        over.push(game);
        for (uint256 i = 0; i < games.length; ++i) {
            if (games[i] != game) continue;
            games[i] = games[games.length - 1];
            games.pop();
        }
        endState[game] = keccak256(abi.encode(disputes.stateOf(game), disputes.clockOf(game)));
    }

    function flawed(string memory what) internal override {
        expect(6, false, what);
    }

    function fingerprint() internal view virtual override returns (bytes32 all) {
        all = keccak256(abi.encode(super.fingerprint(), disputes.bondsHeld(), vault.locksOf(liar.account)));
        for (uint256 i = 0; i < games.length; ++i) {
            bytes32 game = games[i];
            all = keccak256(abi.encode(all, disputes.stateOf(game), disputes.clockOf(game), disputes.lastBlockOf(game)));
        }
    }

    function otherJudge() internal view override returns (address) {
        return address(model);
    }

    function _begin(uint256 seed) private {
        useSeed(seed);
        if (epochs.paused()) endPause();
        begun = true;
        // Every lie but those past the leaves of a full tree.
        lies.lie = Lie([1, 2, 5, 6][roll(4)]);
        lies.step = uint32(1 + roll(shape.steps));
        lies.op = uint32(roll(shape.ops));
        lies.element = uint32(roll(shape.elements));
        commitSubmission(submission(honest()));
        miner = liar;
        commitSubmission(submission(lies));
    }

    // ---------------------------------------------------------------- actions

    function actOpen(uint256 seed) external logged started(seed) {
        if (games.length >= MOST_OPEN) revert("enough");
        // Opening takes a block.
        if (honestUntil() <= epochs.blockNumber()) revert("no time to waste");
        uint256 kind = roll(4);
        miner = kind == 0 ? honestMiner : liar;
        address who = kind == 0 ? troll : kind == 1 ? accomplice : hunter;
        Submission memory s = submission(kind == 0 ? honest() : lies);
        bytes32 game = open(who, s, bytes32(++_salt));
        games.push(game);
        honestOf[game] = kind == 0 ? Honest.Defendant : kind == 1 ? Honest.Nobody : Honest.Challenger;
        openedBlock[game] = epochs.blockNumber();
        reach("game");
    }

    function actPlay(uint256 seed) external logged started(seed) {
        for (uint256 i = 0; i < 3; ++i) {
            (bytes32 game, bool any) = someGame();
            if (!any) revert("no game");
            play(game);
        }
    }

    /// @dev One game, move by move.
    function actPlayOn(uint256 seed) external logged started(seed) {
        (bytes32 game, bool any) = someGame();
        if (!any) revert("no game");
        for (uint256 i = 0; i < 4 && turnOf(game) != IDisputes.Turn.Over; ++i) {
            play(game);
        }
    }

    /// @dev Some blocks, up to the very last one that an honest side has in any game.
    function actPass(uint256 seed) external logged started(seed) {
        uint64 now_ = epochs.blockNumber();
        uint64 limit = honestUntil();
        if (limit <= now_) revert("no time to waste");
        rollTo(roll(3) == 0 ? limit : now_ + uint64(roll(limit - now_ + 1)), uint64(roll(4) == 0 ? 2 : 0));
    }

    /// @dev Nothing can be done to a game that is over.
    function actAgain(uint256 seed) external logged started(seed) {
        bytes32 game = over[roll(over.length)];
        // Another game took its place.
        if (turnOf(game) != IDisputes.Turn.Over) revert("gone");
        Position memory p = positionOf(game);
        bytes32 state = endState[game];
        expect(9, !tryAs(liar.account, address(disputes), abi.encodeCall(IDisputes.resolveTimeout, (game, p))), "9a");
        expect(9, !tryAs(troll, address(disputes), abi.encodeCall(IDisputes.decide, (game, p, ""))), "9b");
        bytes memory entry = abi.encodeCall(IDisputes.enterCommitted, (game, p, ""));
        expect(9, !tryAs(p.challenger, address(disputes), entry), "9c");
        bytes32[] memory list = new bytes32[](1 << listDepth(p));
        expect(9, !tryAs(troll, address(disputes), abi.encodeCall(IDisputes.postList, (game, p, list))), "9d");
        expect(9, keccak256(abi.encode(disputes.stateOf(game), disputes.clockOf(game))) == state, "an end changed");
        reach("again");
    }

    /// @dev The liar tries to leave.
    function actFlee(uint256 seed) external logged started(seed) {
        uint256 active = vault.activeOf(liar.account);
        if (active != 0) {
            vm.prank(liar.account);
            vault.requestUnbond(1 + roll(active));
        } else {
            (, uint64 unlock) = vault.unbondingOf(liar.account);
            if (roll(4) == 0 && games.length == 0 && unlock > epochs.time()) goTo(unlock + 1);
            while (rewards.nextEpoch() <= exitEpoch[liar.account]) {
                rewards.voidEpoch(rewards.nextEpoch());
            }
            vm.prank(liar.account);
            vault.withdraw();
        }
    }

    function actWithdrawBond(uint256 seed) external logged started(seed) {
        address who = [hunter, troll, accomplice, honestMiner.account, liar.account][roll(5)];
        uint256 free = disputes.freeBond(who);
        bool ok = tryAs(who, address(disputes), abi.encodeCall(IChallengeBook.withdrawBond, (free)));
        expect(9, ok, "a bond does not come back");
    }

    function actBounty(uint256 seed) external logged started(seed) {
        verdicts.payBounty(liar.account, ROUND);
    }

    // ---------------------------------------------------------------- play

    function someGame() internal returns (bytes32 game, bool any) {
        if (games.length == 0) return (0, false);
        return (games[roll(games.length)], true);
    }

    function isOpen(bytes32 game) internal view returns (bool) {
        IDisputes.Turn turn = turnOf(game);
        return turn != IDisputes.Turn.Over && turn != IDisputes.Turn.None;
    }

    /// @dev The first block in which an honest side has to move at last.
    function honestUntil() internal view returns (uint64 limit) {
        limit = epochs.blockNumber() + 60;
        for (uint256 i = 0; i < games.length; ++i) {
            if (!isHonestTurn(games[i])) continue;
            uint64 last = disputes.lastBlockOf(games[i]);
            if (last != 0 && last < limit) limit = last;
        }
    }

    function isHonestTurn(bytes32 game) internal view returns (bool) {
        IDisputes.Turn turn = turnOf(game);
        bool defends = turn == IDisputes.Turn.DefendantPosts || turn == IDisputes.Turn.DefendantEnters;
        return honestOf[game] == (defends ? Honest.Defendant : Honest.Challenger);
    }

    function play(bytes32 game) internal {
        bool honestClaim = honestOf[game] == Honest.Defendant;
        miner = honestClaim ? honestMiner : liar;
        World memory w = honestClaim ? honest() : lies;
        if (isHonestTurn(game)) {
            try this.moveHonestly(game, w) {}
            catch {
                vm.getRecordedLogs();
                expect(6, epochs.paused(), "an honest move was refused");
            }
        } else if (epochs.blockNumber() > disputes.lastBlockOf(game)) {
            bytes memory data = abi.encodeCall(IDisputes.resolveTimeout, (game, positionOf(game)));
            expect(7, tryAs(address(0xa11), address(disputes), data) || epochs.paused(), "a timeout can't be called");
            sync();
        } else {
            IDisputes.Turn turn = turnOf(game);
            bool asChallenger = turn == IDisputes.Turn.ChallengerPicks || turn == IDisputes.Turn.ChallengerProves;
            moveAgainst(game, w, asChallenger);
            sync();
        }
    }

    function moveHonestly(bytes32 game, World memory w) external {
        IDisputes.Turn turn = turnOf(game);
        if (turn == IDisputes.Turn.ChallengerPicks) {
            pickFirstWrong(game);
        } else if (turn == IDisputes.Turn.ChallengerProves) {
            Position memory p = positionOf(game);
            disputes.decide(game, p, evidence(w, p));
        } else {
            require(answer(game, w), "no answer");
        }
        sync();
    }

    /// @dev For `afterInvariant`: whoever lost interest, anyone ends every game at its bound.
    function endAll() internal {
        sync();
        uint64 last = epochs.blockNumber();
        for (uint256 i = 0; i < games.length; ++i) {
            uint64 bound_ = openedBlock[games[i]] + disputes.longestGameBlocks();
            if (bound_ > last) last = bound_;
            // The honest stay away here: who wins then is of no interest.
            honestOf[games[i]] = Honest.Nobody;
        }
        rollTo(last + 1, 2);
        if (epochs.paused()) endPause();
        while (games.length != 0) {
            bytes32 game = games[0];
            bytes memory data = abi.encodeCall(IDisputes.resolveTimeout, (game, positionOf(game)));
            assertTrue(tryAs(address(0xa11), address(disputes), data), "a game without an end");
            sync();
            assertTrue(games.length == 0 || games[0] != game, "a game goes on");
        }
        assertEq(vault.locksOf(honestMiner.account), 0);
        assertEq(vault.locksOf(liar.account), 0);
    }

    function assertBound() internal view {
        assertFlawless(7);
        for (uint256 i = 0; i < games.length; ++i) {
            assertLe(disputes.lastBlockOf(games[i]), openedBlock[games[i]] + disputes.longestGameBlocks());
        }
    }
}
