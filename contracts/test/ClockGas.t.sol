// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IEpochManager} from "../src/interfaces/IEpochManager.sol";
import {Params, Role} from "../src/interfaces/IRun.sol";
import {StdStorage, stdStorage} from "forge-std/StdStorage.sol";
import {RunTest} from "./base/RunTest.sol";

/// @notice What transactions of the clock and the scores cost, intrinsic gas and calldata included, where every place is
/// used again.
contract ClockGasTest is RunTest {
    using stdStorage for StdStorage;

    bytes32 internal constant ROOT = keccak256("root");
    bytes32 internal constant SALT = keccak256("salt");
    uint32 internal constant VALIDATORS = 4;
    Actor[VALIDATORS] internal validators;
    Actor internal miner;

    function params() internal view override returns (Params memory p) {
        p = super.params();
        p.maxMiners = 4096;
    }

    function setUp() public override {
        super.setUp();
        for (uint32 v = 0; v < VALIDATORS; ++v) {
            validators[v] = join(string.concat("validator", vm.toString(v)), Role.Validator, STAKE);
        }
        miner = join("miner", Role.Miner, STAKE);
    }

    function _used(string memory what, uint256 most) private view {
        assertLe(vm.lastCallGas().gasTotalUsed, most, what);
    }

    function _random(uint256 length) private pure returns (bytes memory data) {
        data = new bytes(length);
        for (uint256 i = 0; i < length; ++i) {
            data[i] = bytes1(uint8(uint256(keccak256(abi.encode(i))) % 255 + 1));
        }
    }

    /// forge-config: default.isolate = true
    function test_commit_costsLittle() public {
        for (uint64 lap = 0; lap < 3; ++lap) {
            uint64 round = 1 + lap * epochs.ringSize();
            goTo(epochs.putOpens(round));
            vm.prank(miner.operator);
            epochs.commit(round, keccak256(abi.encode(round)));
        }
        _used("commit", 32_000);
    }

    /// forge-config: default.isolate = true
    function test_attest_costsLittle() public {
        uint64 lap = 0;
        for (uint256 miners = 16; miners <= 4096; miners *= 16) {
            stdstore.enable_packed_slots().target(address(registry)).sig("slotCount(uint8)")
                .with_key(uint256(Role.Miner)).checked_write(miners);
            for (uint256 i = 0; i < 2; ++i) {
                uint64 round = 1 + lap++ * epochs.ringSize();
                goTo(epochs.attestDeadline(round));
                vm.prank(validators[0].operator);
                epochs.attest(round, keccak256(abi.encode(round)), _random(miners / 8));
            }
            _used(string.concat("attest, miners ", vm.toString(miners)), 60_000);
        }
    }

    /// forge-config: default.isolate = true
    function test_revealWeights_costsLittle() public {
        uint64 epoch = 0;
        for (uint256 miners = 16; miners <= 4096; miners *= 16) {
            for (uint256 i = 0; i < 24; ++i) {
                bytes memory weights = _random(2 * miners);
                goTo(epochs.epochEnd(++epoch) + 1);
                bytes32 root = scores.weightsRootOf(weights);
                for (uint256 v = 0; v < 2; ++v) {
                    bytes32 c = keccak256(abi.encode(epochs.run(), validators[v].account, epoch, root, SALT));
                    vm.prank(validators[v].operator);
                    scores.commitWeights(epoch, c);
                }
                if (i == 23) _used("commit of weights", 60_000);
                goTo(epochs.weightCommitDeadline(epoch) + 1);
                for (uint32 v = 0; v < 2; ++v) {
                    scores.revealWeights(epoch, v, validators[v].account, weights, SALT);
                }
            }
            _used(string.concat("reveal, miners ", vm.toString(miners)), 45_000 + 100 * miners);
        }
    }

    /// forge-config: default.isolate = true
    function test_tally_costsLittle() public {
        TallyCaller caller = new TallyCaller(epochs);
        goTo(epochs.attestDeadline(1));
        IEpochManager.Ballot[] memory ballots = new IEpochManager.Ballot[](VALIDATORS);
        bytes32[] memory hashes = new bytes32[](VALIDATORS);
        for (uint64 round = 1; round <= 2; ++round) {
            goTo(epochs.attestDeadline(round));
            for (uint32 v = 0; v < VALIDATORS; ++v) {
                ballots[v] = IEpochManager.Ballot(v, ROOT, hex"01");
                hashes[v] = keccak256(hex"01");
                vm.prank(validators[v].operator);
                epochs.attest(round, ROOT, hex"01");
            }
        }
        goTo(epochs.attestDeadline(2) + 1);
        // Without and with the stakes noted: the calls, the ballots' calldata and their passing on included.
        caller.tally(2, ballots);
        _used("tally, first of the epoch", 21_000 + 2 * VALIDATORS * 14_000);
        epochs.finaliseRoot(1, ROOT, hashes, 15);
        caller.tally(2, ballots);
        _used("tally", 21_000 + 2 * VALIDATORS * 8000);
    }
}

contract TallyCaller {
    event Asked();

    IEpochManager private immutable _epochs;

    constructor(IEpochManager epochs) {
        _epochs = epochs;
    }

    function tally(uint64 rounds, IEpochManager.Ballot[] calldata ballots) external {
        emit Asked();
        for (uint64 round = 1; round <= rounds; ++round) {
            _epochs.tally(round, 0, keccak256("root"), ballots);
        }
    }
}
