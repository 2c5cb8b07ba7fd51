"""The participants of a measured run, and what all of them do in a round and in an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ledger.abi import AbiValue
from ledger.contracts.registry import Role
from ledger.contracts.token import UNLIMITED
from ledger.keys import LocalSigner
from protocol.beacon import Purpose
from protocol.hashing import keccak256
from protocol.ids import ZERO32, ZERO_ADDRESS, Address, Epoch, Hash32, Round, Slot, Units
from protocol.merkle import MerkleTree
from protocol.settlement import (
    SettlementTree,
    SumNode,
    weights_commitment,
)
from protocol.spec import DataSpec, RunSpec
from protocol.submission import SignedSubmission, Submission, operator_consent_digest
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle
from scripts.bench.stage import Move, Stage, account_named, hash_named, key_named
from syntience.devnet.presets import Crowd, build_spec, preset_named

TOKEN = 10**18
MINER_STAKE = Units(200 * TOKEN)
VALIDATOR_STAKE = Units(2_000 * TOKEN)
ENDPOINT = "http://node.example:7700"
MOST_MINERS = 4096
SALT = hash_named("salt")
SPENDERS = ("StakeVault", "RewardsDistributor", "ObjectiveFaults", "DataRequests", "Disputes")
_AT_ONCE = 500
_COMMITTERS = 64
_ATTEMPT = 1
_FIRST = Epoch(1)
DATASET = MerkleTree([hash_named(f"sample {number}") for number in range(4096)])
"""Twelve levels, as the goals say."""


def measured_spec(genesis_time: int) -> RunSpec:
    """Windows so long that no transaction is late, however slow the machine."""
    data = DataSpec(
        name="bench",
        tokenizer_digest=hash_named("tokenizer"),
        dataset_root=DATASET.root,
        sources_root=hash_named("sources"),
        documents_root=hash_named("documents"),
        documents=30,
        end_token=0,
        train_samples=4000,
        total_samples=4096,
        sample_tokens=65,
        token_bytes=2,
    )
    spec = build_spec(
        preset_named("tiny"),
        Crowd(miners=1, processes=1, cores=1),
        data=data,
        genesis_root=hash_named("genesis"),
        genesis_time=genesis_time,
        rounds_per_epoch=2,
    )
    # A trace of 33 leaves, so that a move shows a full list, and steps within an interval to bisect further.
    inner = replace(spec.inner, steps=124, batch=1, trace_every=4)
    chain = replace(
        spec.chain,
        samples_per_round=124,
        steps=124,
        trace_every=4,
        # An epoch's weights and settlement are through before the next one's first commits.
        train_s=40_000,
        put_s=4_000,
        publish_s=4_000,
        attest_s=4_000,
        apply_s=4_000,
        weight_commit_s=4_000,
        weight_reveal_s=4_000,
        settlement_turn_s=4_000,
        settlement_window_s=8_000,
        settlement_void_s=20_000,
        unbonding_s=700_000,
        max_miners=MOST_MINERS,
        emission_per_epoch=Units(10_000 * TOKEN),
        chore_cap_per_epoch=Units(100 * TOKEN),
        pause_most_s=400_000,
        pause_every_s=40_000_000,
    )
    compute = replace(spec.compute, micro_batch=1)
    return replace(spec, chain=chain, inner=inner, compute=compute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A participant in a slot. Its owner acts by impersonation, its operator has a key that signs.

    Attributes:
        since: the first epoch in which its slot counts.
    """

    role: Role
    slot: Slot
    since: Epoch
    owner: Address
    key: LocalSigner
    stake: Units

    @property
    def operator(self) -> Address:
        """The operator's address."""
        return self.key.address


Script = Callable[[Round, Hash32], Mapping[Slot, Hash32]]
"""From a round and its beacon to the digests of some slots."""


@dataclass(slots=True, kw_only=True)
class Subnet:
    """Who takes part, and how far the run has come.

    Attributes:
        met: how many ever took part, to name them.
        epoch: the epoch to play next.
        beacons: assignment beacons drawn so far; a round's is drawn at the end of the round before.
        bitmaps: what was attested.
        last_epochs: of miners that gave up their slots.
        trees: the settlements so far.
        script: what miners commit in a round, for those that don't commit just something.
    """

    stage: Stage
    miners: list[Person] = field(default_factory=list)
    validators: list[Person] = field(default_factory=list)
    met: int = 0
    epoch: Epoch = _FIRST
    beacons: dict[Round, Hash32] = field(default_factory=dict)
    bitmaps: dict[Round, bytes] = field(default_factory=dict)
    last_epochs: dict[Slot, Epoch] = field(default_factory=dict)
    script: Script | None = None
    earlier: dict[Address, EarlierLeaf] = field(default_factory=dict)
    trees: dict[Epoch, SettlementTree] = field(default_factory=dict)

    # -- joining

    async def add(self, role: Role, count: int) -> None:
        """More participants, by real registrations; their slots count from the next epoch on."""
        there = self.miners if role is Role.MINER else self.validators
        since = Epoch(self.stage.clock.epoch_at(await self.stage.time()) + 1)
        people = [self._person(role, Slot(len(there) + n), since) for n in range(count)]
        for first in range(0, count, _AT_ONCE):
            await self._join(people[first : first + _AT_ONCE])
        there.extend(people)

    def _person(self, role: Role, slot: Slot, since: Epoch) -> Person:
        self.met += 1
        name = f"participant {self.met}"
        stake = MINER_STAKE if role is Role.MINER else VALIDATOR_STAKE
        return Person(
            role=role,
            slot=slot,
            since=since,
            owner=account_named(name),
            key=key_named(name),
            stake=stake,
        )

    async def _join(self, people: Sequence[Person]) -> None:
        stage = self.stage
        await stage.enrich([account for p in people for account in (p.owner, p.operator)])
        await self.fund([person.owner for person in people], Units(2 * people[0].stake))
        await stage.send_all([Move(p.owner, "StakeVault.deposit", (p.stake,)) for p in people])
        moves = [Move(p.owner, "Registry.register", self.registration(p)) for p in people]
        await stage.send_all(moves)

    async def fund(
        self, accounts: Sequence[Address], amount: Units, spenders: Sequence[str] = SPENDERS[:1]
    ) -> None:
        """Tokens, and allowances for contracts that take some."""
        stage = self.stage
        given = [Move(stage.deployer, "SynToken.transfer", (who, amount)) for who in accounts]
        await stage.send_all(given)
        for spender in spenders:
            arguments = (stage.address(spender), UNLIMITED)
            await stage.send_all([Move(who, "SynToken.approve", arguments) for who in accounts])

    def registration(self, person: Person) -> tuple[AbiValue, ...]:
        """Arguments of a first `register`."""
        run_file = self.stage.run_file
        digest = operator_consent_digest(
            domain=run_file.domain, run=run_file.run, account=person.owner, nonce=0
        )
        consent = person.key.sign_digest(digest)
        return (int(person.role), person.operator, consent, ZERO_ADDRESS, ENDPOINT)

    # -- a round

    @property
    def seated(self) -> Sequence[Person]:
        """The miners whose slots count in the epoch that is played."""
        return [
            miner
            for miner in self.miners
            if miner.since <= self.epoch <= self.last_epochs.get(miner.slot, self.epoch)
        ]

    def leaves(self, miner: Person) -> None:
        """Notes that a miner's slot is given up with the epoch under way, which is the one to play next."""
        self.last_epochs[miner.slot] = self.epoch

    async def draw(self, round_: Round, purpose: Purpose) -> Hash32:
        """Fixes and records a beacon."""
        stage = self.stage
        await stage.to(stage.clock.beacon_opens_after(round_, purpose) + 1)
        await stage.send(stage.deployer, "EpochManager.fixBeacon", round_, int(purpose))
        await stage.mine(3)
        await stage.send(stage.deployer, "EpochManager.recordBeacon", round_, int(purpose))
        return (await stage.read("EpochManager.beacon", round_, int(purpose))).hash(0)

    async def open_round(self, round_: Round) -> Hash32:
        """The round's assignment beacon, drawn if need be."""
        if round_ not in self.beacons:
            self.beacons[round_] = await self.draw(round_, Purpose.ASSIGNMENT)
        return self.beacons[round_]

    async def play_round(self, round_: Round) -> None:
        """One round of everybody; of a large subnet's miners only some commit, the same ones in every round."""
        stage, root = self.stage, self.root_at(round_)
        beacon = await self.open_round(round_)
        await stage.to(stage.clock.put_opens(round_))
        given = self.script(round_, beacon) if self.script else {}
        step = max(1, len(self.seated) // _COMMITTERS)
        commits = [
            Move(
                miner.operator,
                "EpochManager.commit",
                (round_, given.get(miner.slot, hash_named(f"digest {round_} {miner.slot}"))),
            )
            for miner in self.seated
            if miner.slot % step == 0 or miner.slot in given
        ]
        await stage.send_all(commits)
        await self.draw(round_, Purpose.EVALUATION)
        bitmap = self.bitmaps[round_] = self.bitmap()
        attests = [
            Move(v.operator, "EpochManager.attest", (round_, root, bitmap)) for v in self.validators
        ]
        await stage.send_all(attests)
        await stage.to(stage.clock.attest_deadline(round_) + 1)
        mask = (1 << len(self.validators)) - 1
        hashes = (keccak256(bitmap),) * len(self.validators)
        await stage.send(stage.deployer, "EpochManager.finaliseRoot", round_, root, hashes, mask)
        await self.open_round(Round(round_ + 1))

    def root_at(self, round_: Round) -> Hash32:
        """The state root that everybody attests."""
        genesis = self.stage.run_file.spec.chain.genesis_root
        return genesis if round_ == 1 else hash_named(f"root {round_}")

    def bitmap(self) -> bytes:
        """Every seated miner's bit set."""
        bits = sum(1 << miner.slot for miner in self.seated)
        return bits.to_bytes((bits.bit_length() + 7) // 8, "little")

    def ballots(self, round_: Round) -> tuple[AbiValue, ...]:
        """All attestations of a round, opened."""
        root, bitmap = self.root_at(round_), self.bitmaps[round_]
        return tuple((v.slot, root, bitmap) for v in self.validators)

    def submission(
        self, miner: Person, round_: Round, beacon: Hash32, **changes: object
    ) -> SignedSubmission:
        """A signed submission that fits the spec, its roots made up."""
        run_file = self.stage.run_file
        made_up = hash_named("made up")
        submission = Submission(
            run=run_file.run,
            spec_hash=run_file.spec.hash(),
            round=round_,
            beacon=beacon,
            miner=miner.owner,
            initial_root=self.root_at(round_),
            local_from_round=Round(0),
            local_in=ZERO32,
            local_out=made_up,
            data_root=made_up,
            payload_root=made_up,
            payload_bytes=1_000,
            trace_root=made_up,
            steps=run_file.spec.chain.steps,
        )
        submission = replace(submission, **changes)  # type: ignore[arg-type]  # fields of any type, by name
        digest = submission.digest(run_file.domain)
        return SignedSubmission(submission=submission, signature=miner.key.sign_digest(digest))

    # -- an epoch

    async def play_epoch(self) -> SettlementTree:
        """Rounds, weights, settlement; then `epoch` is the next one."""
        clock, epoch = self.stage.clock, self.epoch
        await self.stage.to(clock.epoch_end(Epoch(epoch - 1)))
        for round_ in range(clock.first_round(epoch), clock.last_round(epoch) + 1):
            await self.play_round(Round(round_))
        await self.give_weights(epoch)
        return await self.settle(epoch)

    def weights(self, validator: Person) -> tuple[int, ...]:
        """What a validator gives: every miner something, no two validators the same."""
        slots = range(self.seated[-1].slot + 1)
        return tuple(1_000 + 7 * slot + validator.slot for slot in slots)

    async def give_weights(self, epoch: Epoch) -> None:
        """Everybody commits and reveals."""
        stage = self.stage
        await stage.to(stage.clock.epoch_end(epoch) + 1)
        vectors = {v.slot: encode_weights(self.weights(v)) for v in self.validators}
        commits = [
            Move(
                v.operator,
                "ScoreRegistry.commitWeights",
                (
                    epoch,
                    weights_commitment(
                        run=stage.run_file.run,
                        validator=v.owner,
                        epoch=epoch,
                        weights=vectors[v.slot],
                        salt=SALT,
                    ),
                ),
            )
            for v in self.validators
        ]
        await stage.send_all(commits)
        await stage.to(stage.clock.weight_commit_deadline(epoch) + 1)
        for validator in self.validators:
            await self.reveal(epoch, validator, vectors[validator.slot])

    async def reveal(self, epoch: Epoch, validator: Person, vector: bytes) -> None:
        """Reveals what was committed."""
        arguments = (epoch, validator.slot, validator.owner, vector, SALT)
        await self.stage.send(validator.operator, "ScoreRegistry.revealWeights", *arguments)

    async def facts(self, epoch: Epoch) -> EpochFacts:
        """What the epoch's settlement follows from."""
        pot = (await self.stage.read("RewardsDistributor.potOf", epoch)).integer(0)
        return EpochFacts(
            epoch=epoch,
            miners={miner.slot: miner.owner for miner in self.seated},
            validators={
                v.slot: ValidatorSeat(account=v.owner, stake=v.stake) for v in self.validators
            },
            reveals={v.slot: self.weights(v) for v in self.validators},
            pot=Units(pot),
            miners_bps=self.stage.run_file.spec.chain.miners_bps,
            earlier=self.earlier,
        )

    async def settle(self, epoch: Epoch) -> SettlementTree:
        """Posts the settlement and makes it final."""
        stage = self.stage
        await stage.to(stage.clock.weight_reveal_deadline(epoch) + 1)
        tree = settle(await self.facts(epoch))
        assert tree is not None
        nodes = (sum_node(tree.miners), sum_node(tree.validators))
        await stage.send(stage.deployer, "RewardsDistributor.postSettlement", epoch, *nodes)
        post = (await stage.read("RewardsDistributor.postOf", epoch, _ATTEMPT)).record(0)
        await stage.to(post.integer(4) + 1)
        await stage.send(stage.deployer, "RewardsDistributor.finaliseSettlement", epoch, _ATTEMPT)
        self.trees[epoch] = tree
        for leaf in tree.leaves.values():
            self.earlier[leaf.account] = EarlierLeaf(epoch=epoch, cumulative=leaf.cumulative)
        self.epoch = Epoch(epoch + 1)
        return tree

    def claim(self, epoch: Epoch, index: int) -> Move:
        """A claim of a leaf of a final settlement, by its account."""
        tree = self.trees[epoch]
        leaf = tree.leaves[index]
        row = (
            leaf.index,
            leaf.account,
            leaf.w,
            leaf.amount,
            leaf.cumulative,
            leaf.prev_epoch,
            leaf.cells,
        )
        siblings = tuple((node.hash, node.w << 128 | node.amount) for node in tree.proof(index))
        return Move(leaf.account, "RewardsDistributor.claim", (epoch, row, siblings))


def encode_weights(weights: Iterable[int]) -> bytes:
    """Big-endian uint16 by slot."""
    return b"".join(weight.to_bytes(2, "big") for weight in weights)


def sum_node(node: SumNode) -> tuple[AbiValue, ...]:
    """The contract's struct."""
    return (node.hash, node.w, node.amount)
