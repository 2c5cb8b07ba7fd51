// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Params, Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {Fault} from "../../src/interfaces/IVerdicts.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {RunTest} from "./RunTest.sol";

/// @notice A miner in round 1, with a data set of eight samples of which six train.
abstract contract FaultsTest is RunTest {
    uint64 internal constant ROUND = 1;
    bytes32 internal constant SALT = keccak256("salt");
    Actor internal miner;
    address internal hunter = makeAddr("hunter");
    bytes32 internal beaconValue;

    function params() internal view virtual override returns (Params memory p) {
        p = super.params();
        p.datasetRoot = root(dataset());
    }

    function setUp() public virtual override {
        super.setUp();
        miner = join("miner", Role.Miner, STAKE);
        joinOthers();
        fund(hunter, 100 ether);
        beaconValue = drawBeacon(ROUND, ASSIGNMENT);
        goTo(epochs.putOpens(ROUND));
    }

    /// @dev Who else is there in epoch 1.
    function joinOthers() internal virtual {}

    // ---------------------------------------------------------------- data

    function dataset() internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](8);
        for (uint256 i = 0; i < 8; ++i) {
            leaves[i] = MerkleSha256.leafHash(abi.encode("sample", i));
        }
    }

    /// @dev What the miner must train on; padded to a power of two with absent leaves.
    function assigned() internal view returns (bytes32[] memory leaves) {
        leaves = new bytes32[](8);
        for (uint32 i = 0; i < 5; ++i) {
            leaves[i] = dataset()[faults.assignedSample(ROUND, beaconValue, miner.account, i)];
        }
    }

    function root(bytes32[] memory leaves) internal pure returns (bytes32) {
        while (leaves.length > 1) {
            leaves = _up(leaves);
        }
        return leaves[0];
    }

    function proof(bytes32[] memory leaves, uint256 index) internal pure returns (bytes32[] memory siblings) {
        siblings = new bytes32[](MerkleSha256.depthOf(leaves.length));
        for (uint256 i = 0; i < siblings.length; ++i) {
            siblings[i] = leaves[index ^ 1];
            index >>= 1;
            leaves = _up(leaves);
        }
    }

    function _up(bytes32[] memory leaves) private pure returns (bytes32[] memory above) {
        above = new bytes32[](leaves.length / 2);
        for (uint256 i = 0; i < above.length; ++i) {
            above[i] = MerkleSha256.nodeHash(leaves[2 * i], leaves[2 * i + 1]);
        }
    }

    // ---------------------------------------------------------------- submissions

    function submission() internal view returns (Submission memory s) {
        s.run = epochs.run();
        s.specHash = SPEC_HASH;
        s.round = ROUND;
        s.beacon = beaconValue;
        s.miner = miner.account;
        s.initialRoot = GENESIS_ROOT;
        s.dataRoot = root(assigned());
        s.payloadRoot = keccak256("payload");
        s.payloadBytes = 1000;
        s.traceRoot = keccak256("trace");
        s.steps = 5;
    }

    function signed(Submission memory s) internal view returns (bytes memory) {
        return sign(miner.operatorKey, faults.submissionDigest(s));
    }

    /// @dev Hands in for the round of the submission, in its put window.
    function handIn(Submission memory s) internal {
        bytes32 digest = faults.submissionDigest(s);
        vm.prank(miner.operator);
        epochs.commit(s.round, digest);
    }

    function commitChallenge(bytes32 evidenceHash) internal {
        commitChallengeOf(hunter, evidenceHash);
        nextBlock();
    }

    function commitChallengeOf(address account, bytes32 evidenceHash) internal {
        vm.prank(account);
        faults.commitChallenge(keccak256(abi.encode(account, evidenceHash, SALT)));
    }

    function kindOf(uint64 round) internal view returns (Fault) {
        return verdicts.verdictOf(miner.account, round).kind;
    }

    function assertKind(Fault found, Fault expected) internal pure {
        assertEq(uint8(found), uint8(expected));
    }
}
