// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Genesis, Params} from "../src/interfaces/IRun.sol";
import {RunTest} from "./base/RunTest.sol";

contract ClockTest is RunTest {
    function test_clock_succeedsAtEachBoundary() public {
        assertEq(epochs.currentRound(), 0);
        assertEq(epochs.currentEpoch(), 0);
        goTo(GENESIS_TIME - 1);
        assertEq(epochs.currentRound(), 0);
        goTo(GENESIS_TIME);
        assertEq(epochs.currentRound(), 1);
        assertEq(epochs.currentEpoch(), 1);
        goTo(GENESIS_TIME + ROUND_S - 1);
        assertEq(epochs.currentRound(), 1);
        goTo(GENESIS_TIME + ROUND_S);
        assertEq(epochs.currentRound(), 2);
        assertEq(epochs.currentEpoch(), 1);
        goTo(GENESIS_TIME + EPOCH_S - 1);
        assertEq(epochs.currentEpoch(), 1);
        goTo(GENESIS_TIME + EPOCH_S);
        assertEq(epochs.currentEpoch(), 2);
        IEpochManager.Now memory view_ = epochs.nowView();
        assertEq(view_.time, GENESIS_TIME + EPOCH_S);
        assertEq(view_.round, 3);
        assertEq(view_.epoch, 2);
        assertEq(view_.blockNumber, block.number);
        assertFalse(view_.paused);
    }

    function test_deadlines_succeedAsSumsOfWindows() public view {
        uint64 start = GENESIS_TIME + 4 * ROUND_S;
        assertEq(epochs.roundStart(5), start);
        assertEq(epochs.putOpens(5), start + 40);
        assertEq(epochs.putDeadline(5), start + 50);
        assertEq(epochs.publishDeadline(5), start + 70);
        assertEq(epochs.attestDeadline(5), start + 90);
        assertEq(epochs.roundStart(6), start + 100);
        assertEq(epochs.attestDeadline(0), GENESIS_TIME - 10);
        assertEq(epochs.beaconOpensAfter(5, ASSIGNMENT), epochs.attestDeadline(4));
        assertEq(epochs.beaconCutOff(5, ASSIGNMENT), epochs.putOpens(5));
        assertEq(epochs.beaconOpensAfter(5, EVALUATION), epochs.publishDeadline(5));
        assertEq(epochs.beaconCutOff(5, EVALUATION), start + 95);
        assertEq(epochs.epochEnd(2), GENESIS_TIME + 2 * EPOCH_S);
        assertEq(epochs.weightCommitDeadline(2), epochs.epochEnd(2) + 20);
        assertEq(epochs.weightRevealDeadline(2), epochs.epochEnd(2) + 40);
        assertEq(epochs.settlementVoidAt(2), epochs.epochEnd(2) + 180);
        assertEq(epochs.epochOf(0), 0);
        assertEq(epochs.epochOf(2), 1);
        assertEq(epochs.epochOf(3), 2);
        assertEq(epochs.firstRound(2), 3);
        assertEq(epochs.lastRound(2), 4);
        assertEq(epochs.ringSize(), 10);
    }

    function testFuzz_currentRound_agreesWithRoundStart(uint64 time) public {
        time = uint64(bound(time, GENESIS_TIME, type(uint40).max));
        vm.warp(time);
        uint64 round = epochs.currentRound();
        assertLe(epochs.roundStart(round), time);
        assertGt(epochs.roundStart(round + 1), time);
        uint64 epoch = epochs.currentEpoch();
        assertGt(epochs.epochEnd(epoch), time);
        assertLe(epochs.epochEnd(epoch - 1), time);
        assertEq(epochs.epochOf(epochs.firstRound(epoch)), epoch);
        assertEq(epochs.epochOf(epochs.lastRound(epoch)), epoch);
    }

    function test_params_succeedsAsDeployed() public view {
        assertEq(abi.encode(epochs.params()), abi.encode(params()));
        assertEq(epochs.specHashAt(1), SPEC_HASH);
        assertEq(epochs.specHashAt(0), 0);
        assertEq(epochs.schedule().length, 1);
        assertEq(epochs.run(), keccak256(abi.encode(block.chainid, address(registry), uint256(7))));
    }

    function _expectRefusal(Params memory p, string memory what) private {
        Genesis memory g = genesis();
        g.params = p;
        vm.expectRevert(abi.encodeWithSelector(IEpochManager.InvalidParams.selector, what));
        // A refused constructor: the artifact's code is deployed by hand, because deployCode hides the reason.
        bytes memory code = abi.encodePacked(vm.getCode("EpochManager.sol:EpochManager"), abi.encode(g));
        assembly {
            pop(create(0, add(code, 0x20), mload(code)))
        }
    }

    function test_constructor_revertsIfParametersContradict() public {
        Params memory p = params();
        p.genesisTime = uint64(block.timestamp) - 1;
        _expectRefusal(p, "genesisTime");
        p = params();
        p.roundsPerEpoch = 0;
        _expectRefusal(p, "roundsPerEpoch");
        p = params();
        p.applyS = 0;
        _expectRefusal(p, "round windows");
        p = params();
        p.maxMiners = 4097;
        _expectRefusal(p, "maxMiners");
        p = params();
        p.bountyBps = 4001;
        _expectRefusal(p, "bountyBps");
        p = params();
        p.trainSamples = 9;
        _expectRefusal(p, "datasetDepth");
        p = params();
        p.minersBps = 10_001;
        _expectRefusal(p, "basis points");
        p = params();
        p.withheldSlashBps = 10_001;
        _expectRefusal(p, "basis points");
        p = params();
        p.steps = 0;
        _expectRefusal(p, "steps");
        p = params();
        p.traceEvery = 0;
        _expectRefusal(p, "traceEvery");
        p = params();
        p.noticeEpochs = p.fraudWindowEpochs;
        _expectRefusal(p, "noticeEpochs");
        p = params();
        p.pauseMostS = 0;
        _expectRefusal(p, "pause");
        p = params();
        p.pauseEveryS = p.pauseMostS;
        _expectRefusal(p, "pause");
        p = params();
        p.choreCapPerEpoch = p.emissionPerEpoch + 1;
        _expectRefusal(p, "choreCapPerEpoch");
    }
}
