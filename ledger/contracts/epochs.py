"""The epoch manager: the clock, beacons, commits, attestations and finalised roots."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ledger.connection import BlockId
from ledger.contracts.base import Contract, Values
from ledger.transactions import Call
from protocol.beacon import Purpose
from protocol.ids import ZERO32, Address, Epoch, Hash32, Round, Slot
from protocol.spec import ChainParams


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainNow:
    """Where the run stands: the chain's time (less pauses), its block, the round and epoch under way (0: none yet)."""

    time: int
    block: int
    round: Round
    epoch: Epoch


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
class StoredAttestation:
    """What the contract keeps of an attestation: the root, and the keccak of the bitmap."""

    round: Round
    account: Address
    root: Hash32
    bitmap_hash: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """From `from_epoch` on the spec with this hash applies."""

    from_epoch: Epoch
    spec_hash: Hash32


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
        )

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
        self, round_: Round, *, account: Address, slot: Slot, digest: Hash32
    ) -> bool:
        """Whether a miner committed to this submission (asked within the fraud window)."""
        return (await self._read("isCommitted", round_, account, slot, digest)).truth(0)

    async def attestation(self, round_: Round, slot: Slot) -> StoredAttestation | None:
        """What a validator's slot attested."""
        record = (await self._read("attestation", round_, slot)).record(0)
        account = record.address_or_none(1)
        if account is None:
            return None
        return StoredAttestation(
            round=Round(record.integer(0)),
            account=account,
            root=record.hash(2),
            bitmap_hash=record.hash(3),
        )

    async def finalised_root(self, round_: Round, *, block: BlockId = "latest") -> Hash32 | None:
        """The state root at the start of a round, once a majority attested it."""
        return _known((await self._read("finalisedRoot", round_, block=block)).hash(0))

    async def spec_hash_at(self, epoch: Epoch) -> Hash32:
        return (await self._read("specHashAt", epoch)).hash(0)

    async def schedule(self) -> list[ScheduleEntry]:
        """Which spec applies from which epoch on."""
        return [
            ScheduleEntry(from_epoch=Epoch(item.integer(0)), spec_hash=item.hash(1))
            for item in (await self._read("schedule")).records(0)
        ]

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

    def finalise_root_call(self, round_: Round, root: Hash32) -> Call:
        return self._call("finaliseRoot", round_, root)


def params_to_abi(params: ChainParams) -> tuple[int | bytes, ...]:
    """Parameters as the contracts take them: the fields of `ChainParams` are in the order of the struct `Params`."""
    return tuple(getattr(params, item.name) for item in fields(params))


def params_from_abi(record: Values) -> ChainParams:
    """Inverse of `params_to_abi`."""
    values: dict[str, int | Hash32] = {}
    for position, item in enumerate(fields(ChainParams)):
        is_hash = item.name in ("dataset_root", "genesis_root")
        values[item.name] = record.hash(position) if is_hash else record.integer(position)
    return ChainParams(**values)  # type: ignore[arg-type]  # each value was read by its field's kind


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
