// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Disputes} from "../src/Disputes.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {IJudge, LevelKind, Position, Ruling} from "../src/interfaces/IJudge.sol";
import {Genesis} from "../src/interfaces/IRun.sol";
import {Fault} from "../src/interfaces/IVerdicts.sol";
import {MerkleSha256} from "../src/libraries/MerkleSha256.sol";
import {GamesTest} from "./base/GamesTest.sol";

/// @notice Takes any claim for one that its defendant is committed to.
contract AnyDisputes is Disputes {
    constructor(Genesis memory g) Disputes(g) {}

    function openClaim(bytes32 salt, Position memory p) external returns (bytes32 game) {
        uint64 blockNumber = epochs.runningBlock();
        (, uint64 committedBlock) = _reveal(keccak256(abi.encode(p)), salt, blockNumber);
        return _open(keccak256(abi.encode(msg.sender, salt, committedBlock)), p, committedBlock, blockNumber);
    }
}

/// @notice The claim is the hash of a root, and the defendant first has to say of what: four leaves, of which the last is
/// that hash. Leaf i must be the hash of i.
contract FreshStartJudge is IJudge {
    uint64 public immutable leaves;

    constructor(uint64 leaves_) {
        leaves = leaves_;
    }

    function levelOf(Position calldata p) external view returns (LevelKind kind, uint64 count) {
        return p.level == 0 ? (LevelKind.Fresh, leaves) : (LevelKind.Done, 0);
    }

    function enter(Position calldata, bytes calldata) external pure returns (bytes32) {
        return 0;
    }

    function decide(bytes32, Position calldata p, bytes calldata) external pure returns (Ruling) {
        bytes32 leaf = MerkleSha256.leafHash(abi.encode(p.picks[0]));
        return p.leaves[0] == leaf ? Ruling.NotGuilty : Ruling.Guilty;
    }

    function longestDecision() external view returns (uint64) {
        return leaves == 7 ? 21 : 20;
    }

    function isComputed() external pure returns (bool) {
        return true;
    }
}

/// @notice Games about what is no submission: the port carries them as it is.
contract GamesOfOtherClaimsTest is GamesTest {
    AnyDisputes internal any;
    FreshStartJudge internal judge;

    function setUp() public override {
        super.setUp();
        Genesis memory g = genesis();
        g.addresses.token = address(token);
        g.addresses.registry = address(registry);
        g.addresses.vault = address(vault);
        g.addresses.epochs = address(epochs);
        g.addresses.verdicts = address(verdicts);
        // Under the address that the vault and the verdicts know.
        deployCodeTo("GamesOfOtherClaims.t.sol:AnyDisputes", abi.encode(g), address(disputes));
        any = AnyDisputes(address(disputes));
        judge = new FreshStartJudge(4);
    }

    function table(bool right) private view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](4);
        for (uint256 i = 0; i < 4; ++i) {
            leaves[i] = hashWord(bytes32(i));
        }
        if (!right) leaves[1] = keccak256("wrong");
    }

    function openClaim() private returns (bytes32 game) {
        Position memory p = claim();
        vm.prank(hunter);
        any.commitChallenge(keccak256(abi.encode(hunter, keccak256(abi.encode(p)), SALT)));
        nextBlock();
        vm.prank(hunter);
        game = any.openClaim(SALT, p);
        sync();
    }

    function claim() private view returns (Position memory p) {
        p.judge = address(judge);
        p.defendant = miner.account;
        p.fault = Fault.StateRoot;
        p.round = ROUND;
        p.claim = keccak256("a state root");
        p.node = hashWord(bytes32(uint256(3)));
    }

    function test_openClaim_succeedsWithAFreshFirstLevel() public {
        bytes32 game = openClaim();
        Position memory p = positionOf(game);
        assertTrue(turnOf(game) == IDisputes.Turn.DefendantEnters);
        assertTrue(p.kind == LevelKind.Fresh);
        enterFresh(game, p, table(false));
        disputes.postList(game, positionOf(game), table(false));
        sync();
        pickChild(game, 1);
        disputes.decide(game, positionOf(game), "");
        assertTrue(outcomeOf(game) == IDisputes.Outcome.ChallengerWon);
        assertTrue(verdicts.verdictOf(miner.account, ROUND).kind == Fault.StateRoot);
        assertBalanced();
    }

    function test_openClaim_succeedsForAnHonestDefendant() public {
        bytes32 game = openClaim();
        enterFresh(game, positionOf(game), table(true));
        disputes.postList(game, positionOf(game), table(true));
        sync();
        pickChild(game, 2);
        disputes.decide(game, positionOf(game), "");
        assertTrue(outcomeOf(game) == IDisputes.Outcome.DefendantWon);
        assertEq(vault.activeOf(miner.account), STAKE);
    }

    function test_openClaim_revertsIfALevelHasNoLeaf() public {
        judge = new FreshStartJudge(0);
        openAndExpect(abi.encodeWithSelector(IDisputes.InvalidLevel.selector, 0, 0));
    }

    function test_openClaim_revertsIfTheJudgeIsTooSlow() public {
        judge = new FreshStartJudge(7);
        openAndExpect(abi.encodeWithSelector(IDisputes.SlowJudge.selector, address(judge), 21, 20));
    }

    function openAndExpect(bytes memory reason) private {
        Position memory p = claim();
        vm.prank(hunter);
        any.commitChallenge(keccak256(abi.encode(hunter, keccak256(abi.encode(p)), SALT)));
        nextBlock();
        vm.expectRevert(reason);
        vm.prank(hunter);
        any.openClaim(SALT, p);
    }
}
