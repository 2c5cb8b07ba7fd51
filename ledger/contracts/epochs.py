"""The epoch manager: the clock and its pauses, terms, beacons, commits, attestations and finalised roots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ledger.abi import component_types, contract_abi
from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.transactions import Call
from protocol.beacon import Purpose
from protocol.errors import OperatorError
from protocol.hashing import keccak256
from protocol.ids import ZERO32, Address, Epoch, Hash32, Round, Slot, Units
from protocol.spec import ChainParams
from protocol.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainNow:
    """Where the run stands.

    Attributes:
        time: block time less pauses; it stands still in one.
        block: the chain's own number.
        round, epoch: under way; 0: none yet.
    """

    time: int
    block: int
    round: Round
    epoch: Epoch
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundState:
    """Deadlines (unix seconds, inclusive) and outcomes of a round; None for what does not exist yet.

    Attributes:
        assignment_target: block whose hash makes the assignment beacon, once fixed.
        root: the finalised state root at the start of the round.
    """

    round: Round
    epoch: Epoch
    start: int
    put_opens: int
    put_deadline: int
    publish_deadline: int
    attest_deadline: int
    end: int
    assignment_target: int | None
    evaluation_target: int | None
    assignment: Hash32 | None
    evaluation: Hash32 | None
    root: Hash32 | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseState:
    """What shifts the run's clocks against the chain's.

    Attributes:
        last_start: block time at which the last pause started; None if there was none.
        since_block: block in which the pause under way started; None while the run goes on.
        total_s, total_blocks: length of all pauses that are over.
    """

    last_start: int | None
    since_block: int | None
    total_s: int
    total_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """A validator's attestation, opened."""

    slot: Slot
    root: Hash32
    bitmap: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeTally:
    """The stakes behind a root and a miner's bit, as far as the ballots that were shown tell.

    Attributes:
        total: of all validators in the snapshot.
        unopened: attested, but not among the ballots.
        setters: slots of the ballots with the miner's bit set.
    """

    total: Units
    for_root: Units
    bit_set: Units
    unopened: Units
    setters: frozenset[Slot]


class EpochManager(Contract):
    """The clock of the run."""

    ABI = "EpochManager"

    async def now(self, *, block: BlockId = "latest") -> ChainNow:
        """As of a block; its time is that block's."""
        record = (await self._read("nowView", block=block)).record(0)
        return ChainNow(
            time=record.integer(0),
            block=record.integer(1),
            round=Round(record.integer(2)),
            epoch=Epoch(record.integer(3)),
            paused=record.truth(4),
        )

    async def pause_state(self, *, block: BlockId = "latest") -> PauseState:
        """How the clocks are shifted."""
        record = (await self._read("pauseState", block=block)).record(0)
        return PauseState(
            last_start=record.integer(0) or None,
            since_block=record.integer(1) or None,
            total_s=record.integer(2),
            total_blocks=record.integer(3),
        )

    async def run_block(self, *, block: BlockId = "latest") -> int:
        """Block number less blocks of pauses, which games and challenges are timed by."""
        return (await self._read("blockNumber", block=block)).integer(0)

    async def governor(self) -> Address | None:
        """Who may pause and announce terms; None: nobody."""
        return (await self._read("governor")).address_or_none(0)

    async def round_state(self, round_: Round, *, block: BlockId = "latest") -> RoundState:
        """Everything about a round in one call."""
        return _round_state((await self._read("roundView", round_, block=block)).record(0))

    async def beacon(
        self, round_: Round, purpose: Purpose, *, block: BlockId = "latest"
    ) -> Hash32 | None:
        """A recorded beacon."""
        return _known((await self._read("beacon", round_, int(purpose), block=block)).hash(0))

    async def beacon_target(
        self, round_: Round, purpose: Purpose, *, block: BlockId = "latest"
    ) -> int | None:
        """The block whose hash makes the beacon; None while nobody fixed it."""
        return (await self._read("beaconTarget", round_, int(purpose), block=block)).integer(
            0
        ) or None

    async def is_committed(
        self, round_: Round, *, operator: Address, digest: Hash32, block: BlockId = "latest"
    ) -> bool:
        """Whether an operator key committed to this submission (asked within the fraud window)."""
        return (await self._read("isCommitted", round_, operator, digest, block=block)).truth(0)

    async def has_attested(
        self, round_: Round, slot: Slot, *, root: Hash32, bitmap: bytes, block: BlockId = "latest"
    ) -> bool:
        """Whether a validator attested a round with this root and bitmap."""
        arguments = (round_, slot, root, keccak256(bitmap))
        return (await self._read("attested", *arguments, block=block)).truth(0)

    async def tally(
        self, round_: Round, *, miner: Slot, root: Hash32, ballots: list[Ballot]
    ) -> StakeTally:
        """Counts opened attestations, by ascending slot; after the attest deadline."""
        opened = tuple((each.slot, each.root, each.bitmap) for each in ballots)
        record = (await self._read("tally", round_, miner, root, opened)).record(0)
        mask = record.integer(4)
        return StakeTally(
            total=Units(record.integer(0)),
            for_root=Units(record.integer(1)),
            bit_set=Units(record.integer(2)),
            unopened=Units(record.integer(3)),
            setters=frozenset(Slot(i) for i in range(mask.bit_length()) if mask >> i & 1),
        )

    async def finalised_root(self, round_: Round, *, block: BlockId = "latest") -> Hash32 | None:
        """The state root at the start of a round, once a majority attested it."""
        return _known((await self._read("finalisedRoot", round_, block=block)).hash(0))

    async def spec_hash_at(self, epoch: Epoch) -> Hash32:
        return (await self._read("specHashAt", epoch)).hash(0)

    async def terms_at(self, epoch: Epoch) -> Terms:
        """What submissions of an epoch are judged by."""
        return terms_from_abi((await self._read("termsAt", epoch)).record(0))

    async def schedule(self) -> list[Terms]:
        """All terms, announced ones included, by ascending first epoch."""
        return [terms_from_abi(item) for item in (await self._read("schedule")).records(0)]

    async def run(self) -> Hash32:
        """The run's id."""
        return (await self._read("run")).hash(0)

    async def params(self) -> ChainParams:
        """The parameters that the contracts were deployed with."""
        return params_from_abi((await self._read("params")).record(0))

    def fix_beacon_call(self, round_: Round, purpose: Purpose) -> Call:
        return self._call("fixBeacon", round_, int(purpose))

    def record_beacon_call(self, round_: Round, purpose: Purpose) -> Call:
        return self._call("recordBeacon", round_, int(purpose))

    def commit_call(self, round_: Round, digest: Hash32) -> Call:
        return self._call("commit", round_, digest)

    def attest_call(self, round_: Round, root: Hash32, bitmap: bytes) -> Call:
        """`bitmap`: bit i (byte i // 8, least significant first) is the miner in slot i."""
        return self._call("attest", round_, root, bitmap)

    def finalise_root_call(
        self, round_: Round, root: Hash32, bitmaps: Mapping[Slot, bytes]
    ) -> Call:
        """`bitmaps`: what each validator that attested this root attested along with it, by slot."""
        hashes = tuple(keccak256(bitmaps[slot]) for slot in sorted(bitmaps))
        mask = sum(1 << slot for slot in bitmaps)
        return self._call("finaliseRoot", round_, root, hashes, mask)

    def pause_call(self) -> Call:
        """Only the governor's."""
        return self._call("pause")

    def resume_call(self) -> Call:
        """The governor's at any time; anyone's once the pause lasted as long as it may."""
        return self._call("resume")

    def announce_terms_call(self, terms: Terms) -> Call:
        """Only the governor's."""
        return self._call("announceTerms", tuple(getattr(terms, f.name) for f in fields(terms)))

    def withdraw_terms_call(self) -> Call:
        """Only the governor's: takes back the terms that were announced last."""
        return self._call("withdrawTerms")


def params_to_abi(params: ChainParams) -> tuple[int | bytes, ...]:
    """Parameters as the contracts take them: the fields of `ChainParams` are in the order of the struct `Params`.

    Raises:
        OperatorError: a number does not fit its type.
    """
    (struct,) = contract_abi("EpochManager").functions["params"].outputs
    values: list[int | bytes] = []
    for item, kind in zip(fields(params), component_types(struct.type), strict=True):
        value = getattr(params, item.name)
        if kind.startswith("uint") and not 0 <= value < 1 << int(kind.removeprefix("uint")):
            raise OperatorError(
                f"chain.{item.name} is {value}, which is no {kind}", "give the spec another number"
            )
        values.append(value)
    return tuple(values)


def params_from_abi(record: Values) -> ChainParams:
    """Inverse of `params_to_abi`."""
    values: dict[str, int | Hash32] = {}
    for position, item in enumerate(fields(ChainParams)):
        is_hash = item.name in ("dataset_root", "genesis_root")
        values[item.name] = record.hash(position) if is_hash else record.integer(position)
    return ChainParams(**values)  # type: ignore[arg-type]  # each value was read by its field's kind


def terms_from_abi(record: Values) -> Terms:
    """The struct ``Terms``."""
    return Terms(
        from_epoch=Epoch(record.integer(0)),
        train_samples=record.integer(1),
        samples_per_round=record.integer(2),
        steps=record.integer(3),
        trace_every=record.integer(4),
        dataset_depth=record.integer(5),
        codec_chunk=record.integer(6),
        codec_bits=record.integer(7),
        spec_hash=record.hash(8),
        judge=record.address(9),
        dataset_root=record.hash(10),
    )


def _round_state(record: Values) -> RoundState:
    return RoundState(
        round=Round(record.integer(0)),
        epoch=Epoch(record.integer(1)),
        start=record.integer(2),
        put_opens=record.integer(3),
        put_deadline=record.integer(4),
        publish_deadline=record.integer(5),
        attest_deadline=record.integer(6),
        end=record.integer(7),
        assignment_target=record.integer(8) or None,
        evaluation_target=record.integer(9) or None,
        assignment=_known(record.hash(10)),
        evaluation=_known(record.hash(11)),
        root=_known(record.hash(12)),
    )


def _known(value: Hash32) -> Hash32 | None:
    return None if value == ZERO32 else value
