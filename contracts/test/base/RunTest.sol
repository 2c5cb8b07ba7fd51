// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {BlockhashBeacon} from "../../src/BlockhashBeacon.sol";
import {Committee} from "../../src/Committee.sol";
import {DataRequests} from "../../src/DataRequests.sol";
import {Disputes} from "../../src/Disputes.sol";
import {EpochManager} from "../../src/EpochManager.sol";
import {ObjectiveFaults} from "../../src/ObjectiveFaults.sol";
import {Registry} from "../../src/Registry.sol";
import {RewardsDistributor} from "../../src/RewardsDistributor.sol";
import {ScoreRegistry} from "../../src/ScoreRegistry.sol";
import {StakeVault} from "../../src/StakeVault.sol";
import {SynToken} from "../../src/SynToken.sol";
import {Verdicts} from "../../src/Verdicts.sol";
import {Addresses, Genesis, Params, Role} from "../../src/interfaces/IRun.sol";

/// @notice A run on a fresh chain, before genesis, and what its participants do.
abstract contract RunTest is Test {
    /// An owner account and its operator key.
    struct Actor {
        address account;
        address operator;
        uint256 operatorKey;
    }

    uint8 internal constant ASSIGNMENT = 1;
    uint8 internal constant EVALUATION = 2;
    uint256 internal constant CAP = 1_000_000 ether;
    uint256 internal constant GENESIS_ALLOCATION = 400_000 ether;
    uint64 internal constant GENESIS_TIME = 1_000_000;
    uint64 internal constant ROUND_S = 100;
    uint64 internal constant EPOCH_S = 200;
    uint256 internal constant STAKE = 100 ether;
    bytes32 internal constant SPEC_HASH = keccak256("spec");
    bytes32 internal constant GENESIS_ROOT = keccak256("genesis root");

    SynToken internal token;
    Registry internal registry;
    StakeVault internal vault;
    EpochManager internal epochs;
    BlockhashBeacon internal beaconSource;
    ScoreRegistry internal scores;
    RewardsDistributor internal rewards;
    ObjectiveFaults internal faults;
    Verdicts internal verdicts;
    DataRequests internal requests;
    Disputes internal disputes;
    Committee internal committee;
    address internal governor = makeAddr("governor");

    function setUp() public virtual {
        vm.warp(GENESIS_TIME - 500);
        vm.roll(1000);
        deployRun(genesis());
    }

    // ---------------------------------------------------------------- deployment

    function params() internal view virtual returns (Params memory p) {
        p.genesisTime = GENESIS_TIME;
        p.roundsPerEpoch = 2;
        p.trainS = 40;
        p.putS = 10;
        p.publishS = 20;
        p.attestS = 20;
        p.applyS = 10;
        p.weightCommitS = 20;
        p.weightRevealS = 20;
        p.settlementTurnS = 15;
        p.settlementWindowS = 60;
        p.settlementVoidS = 140;
        p.fraudWindowEpochs = 3;
        p.unbondingS = 1640;
        p.beaconDelayBlocks = 2;
        p.minMinerStake = 10 ether;
        p.minValidatorStake = 50 ether;
        p.maxMiners = 256;
        p.samplesPerRound = 5;
        p.trainSamples = 6;
        p.datasetDepth = 3;
        p.datasetRoot = keccak256("dataset");
        p.genesisRoot = GENESIS_ROOT;
        p.steps = 5;
        p.challengeBond = 2 ether;
        p.equivocationSlashBps = 2000;
        p.equivocationBounty = 1 ether;
        p.wrongDataSlashBps = 5000;
        p.bountyBps = 4000;
        p.challengeRevealBlocks = 20;
        p.suspensionEpochs = 4;
        p.missingRevealPenalty = 3 ether;
        p.emissionPerEpoch = 1000 ether;
        p.minersBps = 7000;
        p.settlementBond = 20 ether;
        p.choreTariff = 0.5 ether;
        p.choreCapPerEpoch = 5 ether;
        p.noticeEpochs = 4;
        p.pauseMostS = 300;
        p.pauseEveryS = 3000;
        p.blockS = 2;
        p.computationSlashBps = 10_000;
        p.nativeSlashBps = 2000;
        p.nativeBounty = 1 ether;
        p.withheldSlashBps = 500;
        p.requestsPerSubmission = 2;
        p.requestBond = 2 ether;
        p.answerTariff = 0.1 ether;
        p.answerTariffPerKiB = 0.05 ether;
        p.answerTurnBlocks = 3;
        p.answerBlocks = 10;
        p.traceEvery = 2;
        p.codecChunk = 64;
        p.codecBits = 2;
        p.gameBond = 10 ether;
        p.moveTariff = 0.5 ether;
        p.clockBlocks = 40;
        p.turnBlocks = 5;
        p.voteCommitBlocks = 10;
        p.voteRevealBlocks = 10;
        p.votePenalty = 3 ether;
    }

    /// @dev The order of deployment, so that each address is known beforehand.
    function genesis() internal view returns (Genesis memory g) {
        uint64 nonce = vm.getNonce(address(this));
        address[12] memory ahead;
        for (uint64 i = 0; i < 12; ++i) {
            ahead[i] = vm.computeCreateAddress(address(this), nonce + i);
        }
        g.addresses = Addresses({
            token: ahead[0],
            registry: ahead[1],
            vault: ahead[2],
            epochs: ahead[3],
            beacon: ahead[4],
            scores: ahead[5],
            rewards: ahead[6],
            faults: ahead[7],
            verdicts: ahead[8],
            requests: ahead[9],
            disputes: ahead[10],
            committee: ahead[11]
        });
        g.params = params();
        g.specHash = SPEC_HASH;
        g.nonce = 7;
        g.governor = governor;
    }

    /// @dev By artifact, not by `new`: else each test contract would carry all the bytecode and compile slowly.
    function deployRun(Genesis memory g) internal {
        bytes memory args = abi.encode(g);
        token = SynToken(deployCode("SynToken.sol:SynToken", abi.encode(g.addresses.rewards, CAP, GENESIS_ALLOCATION)));
        registry = Registry(deployCode("Registry.sol:Registry", args));
        vault = StakeVault(deployCode("StakeVault.sol:StakeVault", args));
        epochs = EpochManager(deployCode("EpochManager.sol:EpochManager", args));
        beaconSource = BlockhashBeacon(deployCode("BlockhashBeacon.sol:BlockhashBeacon"));
        scores = ScoreRegistry(deployCode("ScoreRegistry.sol:ScoreRegistry", args));
        rewards = RewardsDistributor(deployCode("RewardsDistributor.sol:RewardsDistributor", args));
        faults = ObjectiveFaults(deployCode("ObjectiveFaults.sol:ObjectiveFaults", args));
        verdicts = Verdicts(deployCode("Verdicts.sol:Verdicts", args));
        requests = DataRequests(deployCode("DataRequests.sol:DataRequests", args));
        disputes = Disputes(deployCode("Disputes.sol:Disputes", args));
        committee = Committee(deployCode("Committee.sol:Committee", args));
        assertEq(address(committee), g.addresses.committee);
    }

    // ---------------------------------------------------------------- participants

    function actor(string memory name) internal returns (Actor memory a) {
        a.account = makeAddr(name);
        (a.operator, a.operatorKey) = makeAddrAndKey(string.concat(name, " operator"));
    }

    /// @dev Tokens of the genesis allocation, and allowances for every contract that takes some.
    function fund(address account, uint256 amount) internal {
        require(token.transfer(account, amount));
        vm.startPrank(account);
        token.approve(address(vault), type(uint256).max);
        token.approve(address(rewards), type(uint256).max);
        token.approve(address(faults), type(uint256).max);
        token.approve(address(requests), type(uint256).max);
        token.approve(address(disputes), type(uint256).max);
        vm.stopPrank();
    }

    function stake(address account, uint256 amount) internal {
        fund(account, amount);
        vm.prank(account);
        vault.deposit(amount);
    }

    function consent(Actor memory a) internal view returns (bytes memory) {
        return sign(a.operatorKey, registry.consentDigest(a.account, registry.operatorCount(a.account)));
    }

    function sign(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    function register(Actor memory a, Role role) internal returns (uint32 slot) {
        bytes memory sig = consent(a);
        vm.prank(a.account);
        return registry.register(role, a.operator, sig, address(0), "http://node.example:8080");
    }

    function join(string memory name, Role role, uint256 amount) internal returns (Actor memory a) {
        a = actor(name);
        stake(a.account, amount);
        register(a, role);
    }

    // ---------------------------------------------------------------- time

    /// @dev One block every two seconds.
    function goTo(uint64 time) internal virtual {
        require(time >= block.timestamp, "time goes forward");
        vm.roll(block.number + (time - block.timestamp) / 2);
        vm.warp(time);
    }

    function nextBlock() internal {
        vm.roll(block.number + 1);
    }

    function goToEpoch(uint64 epoch) internal {
        goTo(epochs.epochEnd(epoch - 1));
    }

    function drawBeacon(uint64 round, uint8 purpose) internal returns (bytes32) {
        uint64 opens = epochs.beaconOpensAfter(round, purpose) + 1;
        if (opens > epochs.time()) goTo(opens);
        epochs.fixBeacon(round, purpose);
        vm.roll(block.number + 3);
        return epochs.recordBeacon(round, purpose);
    }
}
