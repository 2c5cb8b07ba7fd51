// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IDataRequests} from "../../src/interfaces/IDataRequests.sol";
import {IEpochManager} from "../../src/interfaces/IEpochManager.sol";
import {Role} from "../../src/interfaces/IRun.sol";
import {Submission} from "../../src/interfaces/ISubmission.sol";
import {IVerdicts} from "../../src/interfaces/IVerdicts.sol";
import {MerkleSha256} from "../../src/libraries/MerkleSha256.sol";
import {Libraries} from "./Libraries.sol";
import {RunTest} from "./RunTest.sol";

/// @notice A miner's committed submission of round 1, of which four validators attested and the first three set its bit.
abstract contract RequestsTest is RunTest {
    uint64 internal constant ROUND = 1;
    uint32 internal constant SETTERS = 7;
    uint256 internal constant BOND = 2 ether;
    uint256 internal constant FINE = 2.5 ether;
    uint256 internal constant BOUNTY = 1 ether;
    uint64 internal constant TURN = 3;
    uint64 internal constant TURNS = 9;
    uint64 internal constant OPEN = 10;

    Actor[4] internal validators;
    Actor internal miner;
    address internal requester = makeAddr("requester");
    Submission internal claim;
    bytes32 internal digest;
    Libraries private _libraries;

    function setUp() public virtual override {
        super.setUp();
        _libraries = new Libraries();
        validators[0] = join("a", Role.Validator, 100 ether);
        validators[1] = join("b", Role.Validator, 60 ether);
        validators[2] = join("c", Role.Validator, 60 ether);
        validators[3] = join("d", Role.Validator, 60 ether);
        miner = join("miner", Role.Miner, STAKE);
        fund(requester, 1000 ether);
        drawBeacon(ROUND, ASSIGNMENT);
        claim = submission();
        digest = digestOf(claim);
        goTo(epochs.putOpens(ROUND));
        vm.prank(miner.operator);
        epochs.commit(ROUND, digest);
        goTo(epochs.attestDeadline(ROUND));
        for (uint32 i = 0; i < 4; ++i) {
            attest(validators[i], ballots()[i]);
        }
        goTo(epochs.attestDeadline(ROUND) + 1);
        vm.mockCall(address(verdicts), abi.encodeWithSelector(IVerdicts.fine.selector), abi.encode(FINE));
    }

    function attest(Actor memory who, IEpochManager.Ballot memory ballot) internal {
        vm.prank(who.operator);
        epochs.attest(ROUND, ballot.root, ballot.bitmap);
    }

    /// @dev The third one follows another root: its bit binds it all the same.
    function ballots() internal pure returns (IEpochManager.Ballot[] memory opened) {
        opened = new IEpochManager.Ballot[](4);
        for (uint32 i = 0; i < 4; ++i) {
            opened[i] = IEpochManager.Ballot({
                slot: i,
                root: i == 2 ? keccak256("another root") : GENESIS_ROOT,
                bitmap: i == 3 ? bytes(hex"00") : bytes(hex"01")
            });
        }
    }

    // ---------------------------------------------------------------- what was submitted

    function submission() internal view returns (Submission memory s) {
        s.run = epochs.run();
        s.specHash = SPEC_HASH;
        s.round = ROUND;
        s.beacon = epochs.beacon(ROUND, ASSIGNMENT);
        s.miner = miner.account;
        s.initialRoot = GENESIS_ROOT;
        s.localOut = root(tensorHashes());
        s.dataRoot = root(dataHashes());
        s.payloadRoot = root(hashes(chunks()));
        s.payloadBytes = 5555;
        s.traceRoot = root(hashes(trace()));
        s.steps = 5;
    }

    function digestOf(Submission memory s) internal view returns (bytes32) {
        return _libraries.digest(s, registry.domainSeparator());
    }

    function dataHashes() internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](5);
        for (uint256 i = 0; i < 5; ++i) {
            leaves[i] = keccak256(abi.encode("sample", i));
        }
    }

    /// @dev The start, three intervals of two steps or less, the encode.
    function trace() internal pure returns (bytes[] memory leaves) {
        leaves = new bytes[](5);
        for (uint256 i = 0; i < 5; ++i) {
            leaves[i] = abi.encode("trace", i);
        }
    }

    /// @dev Chunk i has 1,111 (i + 1) bytes.
    function chunks() internal pure returns (bytes[] memory leaves) {
        leaves = new bytes[](5);
        for (uint256 i = 0; i < 5; ++i) {
            leaves[i] = new bytes(1111 * (i + 1));
            leaves[i][0] = bytes1(uint8(i + 1));
        }
    }

    /// @dev Tensor t has t + 1 leaves.
    function tensorLeaves(uint256 t) internal pure returns (bytes[] memory leaves) {
        leaves = new bytes[](t + 1);
        for (uint256 i = 0; i <= t; ++i) {
            leaves[i] = new bytes(1024);
            leaves[i][0] = bytes1(uint8(10 * t + i));
        }
    }

    function tensor(uint256 t) internal pure returns (bytes memory) {
        return abi.encodePacked("name and shape", uint8(t), root(hashes(tensorLeaves(t))));
    }

    function tensorHashes() internal pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](3);
        for (uint256 t = 0; t < 3; ++t) {
            leaves[t] = MerkleSha256.leafHash(tensor(t));
        }
    }

    // ---------------------------------------------------------------- items and openings

    function item(IDataRequests.Kind kind, uint64 index) internal view returns (IDataRequests.Item memory) {
        return IDataRequests.Item({round: ROUND, minerSlot: 0, digest: digest, kind: kind, index: index});
    }

    function local(uint64 tensorIndex, uint64 leaf) internal view returns (IDataRequests.Item memory) {
        return item(IDataRequests.Kind.Local, tensorIndex << 32 | leaf);
    }

    /// @dev The honest opening of an item, or of the last leaf before it.
    function open(IDataRequests.Item memory wanted) internal view returns (IDataRequests.Opening memory o) {
        if (wanted.kind == IDataRequests.Kind.Submission) {
            o.content = sign(miner.operatorKey, digest);
        } else if (wanted.kind == IDataRequests.Kind.Data) {
            o.position = wanted.index;
            o.content = abi.encode(dataHashes()[wanted.index]);
            o.proof = proof(dataHashes(), wanted.index);
        } else if (wanted.kind == IDataRequests.Kind.Local) {
            openLocal(o, wanted.index);
        } else {
            _show(o, wanted.kind == IDataRequests.Kind.Trace ? trace() : chunks(), wanted.index);
        }
    }

    function openLocal(IDataRequests.Opening memory o, uint64 index) internal pure {
        uint64 wanted = index >> 32;
        o.tensorPosition = wanted < 2 ? wanted : 2;
        o.tensor = tensor(o.tensorPosition);
        o.tensorProof = proof(tensorHashes(), o.tensorPosition);
        if (o.tensorPosition == wanted) _show(o, tensorLeaves(wanted), index & type(uint32).max);
    }

    function _show(IDataRequests.Opening memory o, bytes[] memory leaves, uint64 index) private pure {
        o.position = index < leaves.length ? index : uint64(leaves.length - 1);
        o.content = leaves[o.position];
        o.proof = proof(hashes(leaves), o.position);
    }

    // ---------------------------------------------------------------- trees

    function hashes(bytes[] memory leaves) internal pure returns (bytes32[] memory hashed) {
        hashed = new bytes32[](leaves.length);
        for (uint256 i = 0; i < leaves.length; ++i) {
            hashed[i] = MerkleSha256.leafHash(leaves[i]);
        }
    }

    function root(bytes32[] memory leaves) internal pure returns (bytes32) {
        leaves = _padded(leaves);
        while (leaves.length > 1) {
            leaves = _up(leaves);
        }
        return leaves[0];
    }

    function proof(bytes32[] memory leaves, uint256 index) internal pure returns (bytes32[] memory siblings) {
        leaves = _padded(leaves);
        siblings = new bytes32[](MerkleSha256.depthOf(leaves.length));
        for (uint256 i = 0; i < siblings.length; ++i) {
            siblings[i] = leaves[index ^ 1];
            index >>= 1;
            leaves = _up(leaves);
        }
    }

    function _padded(bytes32[] memory leaves) private pure returns (bytes32[] memory padded) {
        padded = new bytes32[](uint256(1) << MerkleSha256.depthOf(leaves.length));
        for (uint256 i = 0; i < leaves.length; ++i) {
            padded[i] = leaves[i];
        }
    }

    function _up(bytes32[] memory leaves) private pure returns (bytes32[] memory above) {
        above = new bytes32[](leaves.length / 2);
        for (uint256 i = 0; i < above.length; ++i) {
            above[i] = MerkleSha256.nodeHash(leaves[2 * i], leaves[2 * i + 1]);
        }
    }

    // ---------------------------------------------------------------- moves

    function ask(IDataRequests.Item memory wanted) internal returns (bytes32) {
        return askAs(requester, wanted);
    }

    function askAs(address who, IDataRequests.Item memory wanted) internal returns (bytes32) {
        vm.prank(who);
        return requests.request(wanted, ballots());
    }

    function answerAs(address who, IDataRequests.Item memory wanted) internal {
        answerWith(who, wanted, open(wanted));
    }

    function answerWith(address who, IDataRequests.Item memory wanted, IDataRequests.Opening memory opening) internal {
        vm.prank(who);
        requests.answer(wanted, claim, opening);
    }

    /// @dev The validator whose turn is the k-th.
    function inTurn(IDataRequests.Item memory wanted, uint32 k) internal view returns (Actor memory) {
        return validators[(requests.requestOf(wanted).firstSlot + k) % 3];
    }

    function rollTo(uint256 blockNumber) internal {
        require(blockNumber >= block.number, "blocks go forward");
        vm.roll(blockNumber);
    }

    function fundAll(address[] memory accounts, uint256 amount) internal {
        for (uint256 i = 0; i < accounts.length; ++i) {
            fund(accounts[i], amount);
        }
    }
}
