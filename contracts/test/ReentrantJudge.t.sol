// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Disputes} from "../src/Disputes.sol";
import {IDisputes} from "../src/interfaces/IDisputes.sol";
import {LevelKind, Position, Ruling} from "../src/interfaces/IJudge.sol";
import {GamesTest} from "./base/GamesTest.sol";

/// @notice A judge that a governor announced, and that would empty the bonds: asked to decide, it has itself asked again.
contract ReentrantJudge {
    Disputes internal disputes;
    uint256 internal again;

    function aim(Disputes disputes_, uint256 again_) external {
        (disputes, again) = (disputes_, again_);
    }

    function levelOf(Position calldata) external pure returns (LevelKind, uint64) {
        return (LevelKind.Done, 0);
    }

    function decide(bytes32 game, Position calldata position, bytes calldata) external returns (Ruling) {
        if (again == 0) return Ruling.Guilty;
        --again;
        disputes.decide(game, position, "");
        return Ruling.Guilty;
    }

    function longestDecision() external pure returns (uint64) {
        return 0;
    }

    function isComputed() external pure returns (bool) {
        return true;
    }
}

contract ReentrantJudgeTest is GamesTest {
    ReentrantJudge internal judge;

    function setUp() public override {
        judge = new ReentrantJudge();
        super.setUp();
    }

    function judgeOfRun() internal view override returns (address) {
        return address(judge);
    }

    function test_decide_revertsIfTheJudgeHasItDecidedTwice() public {
        bytes32 game = openAgainst(honest());
        Position memory p = positionOf(game);
        judge.aim(disputes, 1);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.NotTurn.selector, game, IDisputes.Turn.Over));
        disputes.decide(game, p, "");
        judge.aim(disputes, 0);
        disputes.decide(game, p, "");
        assertEq(disputes.freeBond(hunter), disputes.challengeBond());
        assertBalanced();
    }
}
