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
    address verdicts;
    address requests;
    address disputes;
    address committee;
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
    /// From the request to the earliest withdrawal; at least (fraudWindowEpochs + 1) epochs and the longest game.
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
    /// The emission halves every so many epochs; 0: never.
    uint32 emissionHalvingEpochs;
    /// A change of terms is public for so many epochs before it applies; more than fraudWindowEpochs.
    uint32 noticeEpochs;
    /// After so long anyone can end a pause.
    uint32 pauseMostS;
    /// From the start of a pause to the earliest start of the next one.
    uint32 pauseEveryS;
    /// Seconds that a block takes at most: turns a game's clocks into the time that stake must outlast.
    uint32 blockS;
    /// A proven wrong computation, as the arithmetic judge found it.
    uint16 computationSlashBps;
    /// The same as a committee found it.
    uint16 nativeSlashBps;
    /// A fixed sum: a committee's verdict must not be worth buying.
    uint128 nativeBounty;
    /// Of the least stake of a validator: what each loses that does not serve what it vouched for.
    uint16 withheldSlashBps;
    /// Requests of one account about one submission that may be open at a time.
    uint16 requestsPerSubmission;
    uint128 requestBond;
    /// What an answer costs the requester, besides `answerTariffPerKiB` for each begun KiB of the leaf.
    uint128 answerTariff;
    uint128 answerTariffPerKiB;
    /// Blocks that each validator in turn has for an answer of its own.
    uint32 answerTurnBlocks;
    /// Blocks that remain for an answer of anyone's, after all turns.
    uint32 answerBlocks;
    /// A state root enters a submission's trace after every so many inner steps.
    uint32 traceEvery;
    /// Values in a full chunk of a payload, and bits of a value's code: 1, 2, 4 or 8.
    uint16 codecChunk;
    uint8 codecBits;
    uint128 gameBond;
    /// Paid to the defendant by the challenger's bond for every list that it makes it post.
    uint128 moveTariff;
    /// Blocks that each side of a game has for all its moves together, and at least for each.
    uint32 clockBlocks;
    uint32 turnBlocks;
    uint32 voteCommitBlocks;
    uint32 voteRevealBlocks;
    /// What a validator loses that votes against the verdict of its committee, or not at all.
    uint128 votePenalty;
}

/// @notice What a submission is judged by, from an epoch on. Old rounds keep their old terms.
struct Terms {
    // One word, so that a verdict reads few.
    uint64 fromEpoch;
    uint64 trainSamples;
    uint32 samplesPerRound;
    uint32 steps;
    uint32 traceEvery;
    uint8 datasetDepth;
    uint16 codecChunk;
    uint8 codecBits;
    bytes32 specHash;
    /// Decides games about a computation: the committee, or an arithmetic judge.
    address judge;
    bytes32 datasetRoot;
}

/// @notice The one constructor argument of every contract of a run but the token and the beacon.
struct Genesis {
    Addresses addresses;
    Params params;
    /// keccak256 of the canonical bytes of the run's spec, which mirrors `params`.
    bytes32 specHash;
    /// Tells apart several runs of one registry address on one chain id.
    uint256 nonce;
    /// May announce terms and pause, within bounds, and nothing else; 0: nobody may.
    address governor;
    /// The judge of the first terms; 0: the committee.
    address judge;
}
