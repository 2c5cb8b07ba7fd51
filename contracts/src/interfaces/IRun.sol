// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice What an account does in the run. `None` is an account without a slot.
enum Role {
    None,
    Miner,
    Validator
}

/// @notice The contracts of one run. They know each other by addresses computed from the deployer's nonces beforehand.
struct Addresses {
    address token;
    address registry;
    address vault;
    address epochs;
    address beacon;
    address scores;
    address rewards;
    address faults;
}

/// @notice What the contracts know of the run's spec. Suffix `S`: seconds. Amounts: base units. `Bps`: 1/10,000.
struct Params {
    /// Unix time at which round 1 starts.
    uint64 genesisTime;
    uint32 roundsPerEpoch;
    /// The windows of a round, in this order; together one round.
    uint32 trainS;
    uint32 putS;
    uint32 publishS;
    uint32 attestS;
    uint32 applyS;
    /// After the end of an epoch: weights are committed, then revealed.
    uint32 weightCommitS;
    uint32 weightRevealS;
    /// Time to open a challenged leaf.
    uint32 settlementTurnS;
    /// Time to challenge a posted settlement.
    uint32 settlementWindowS;
    /// So long after the reveal deadline an epoch that nobody settled can be declared void.
    uint32 settlementVoidS;
    /// A fault of round r can be proven until the end of epoch epochOf(r) + fraudWindowEpochs.
    uint32 fraudWindowEpochs;
    /// From the request to the earliest withdrawal; at least (fraudWindowEpochs + 1) epochs.
    uint32 unbondingS;
    /// A beacon's target block lies so many blocks after the transaction that fixes it.
    uint32 beaconDelayBlocks;
    uint128 minMinerStake;
    uint128 minValidatorStake;
    /// At most 4096.
    uint32 maxMiners;
    /// Samples that a miner trains on in a round.
    uint32 samplesPerRound;
    /// Samples [0, trainSamples) of the data set are assigned to miners; the rest is held out.
    uint64 trainSamples;
    uint8 datasetDepth;
    bytes32 datasetRoot;
    /// State root of the model at the start of round 1.
    bytes32 genesisRoot;
    /// Inner steps of a round.
    uint32 steps;
    uint128 challengeBond;
    uint16 equivocationSlashBps;
    /// A fixed small sum: a stolen hot key must not be worth selling.
    uint128 equivocationBounty;
    uint16 wrongDataSlashBps;
    /// A hunter's (or challenger's) share of what a verdict takes, at most 4000.
    uint16 bountyBps;
    /// A committed challenge must be revealed within so many blocks.
    uint32 challengeRevealBlocks;
    uint32 suspensionEpochs;
    uint128 missingRevealPenalty;
    uint128 emissionPerEpoch;
    /// The miners' share of a pot; validators get the rest.
    uint16 minersBps;
    uint128 settlementBond;
    /// Paid for each chore that everybody needs, up to choreCapPerEpoch in an epoch.
    uint128 choreTariff;
    uint128 choreCapPerEpoch;
}

/// @notice The one constructor argument of every contract of a run but the token and the beacon.
struct Genesis {
    Addresses addresses;
    Params params;
    /// keccak256 of the canonical bytes of the run's spec, which mirrors `params`.
    bytes32 specHash;
    /// Tells apart several runs of one registry address on one chain id.
    uint256 nonce;
}
