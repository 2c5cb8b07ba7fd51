"""The events of a run in a node's own SQLite file, with the block up to which they are complete.

Events and that block are written in one transaction, so a crash loses neither and doubles none. The hashes of the blocks
at which reading paused are kept, so that a reorganisation is found out and undone as far as it reaches.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Select,
    String,
    Table,
    delete,
    insert,
    select,
)
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.engine import Connection as DatabaseConnection

from ledger.database import open_database
from ledger.errors import StoreForeign, Undecodable
from ledger.event_decoding import decode_event
from ledger.event_types import Event, EventT
from ledger.transactions import LogRecord
from protocol.ids import Address, Epoch, Hash32, Round

_METADATA = MetaData()
_OWNER = Table(
    "owner",
    _METADATA,
    Column("only", Integer, primary_key=True),
    Column("chain_id", Integer, nullable=False),
    Column("genesis", LargeBinary, nullable=False),
    Column("registry", String, nullable=False),
)
_EVENTS = Table(
    "events",
    _METADATA,
    Column("block", Integer, primary_key=True),
    Column("log_index", Integer, primary_key=True),
    Column("contract", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("round", Integer),
    Column("epoch", Integer),
    Column("account", String),
    Column("address", String, nullable=False),
    Column("block_hash", LargeBinary, nullable=False),
    Column("tx_hash", LargeBinary, nullable=False),
    Column("topics", String, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("events_by_round", "kind", "round"),
    Index("events_by_epoch", "kind", "epoch"),
)
_BLOCKS = Table(
    "blocks",
    _METADATA,
    Column("number", Integer, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
)
_KEPT_BLOCKS = 512
"""Pauses to remember; with a pause at each block, reorganisations up to this depth are undone exactly."""
_PRUNE_EVERY = 64
_ANSWERS_KEPT = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMark:
    """A block up to which all events are stored."""

    number: int
    hash: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """A log with the event that it stands for and the contract that emitted it."""

    contract: str
    log: LogRecord
    event: Event


class EventStore:
    """The rows. Every method is one database transaction."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine = open_database(path, _METADATA, durable=False)
        # Roles ask the same questions at each look; decoding the answers anew took half of a node's time.
        self._answers: dict[tuple[object, ...], list[Event]] = {}

    def close(self) -> None:
        """Lets go of the file."""
        self._engine.dispose()

    def claim(self, *, chain_id: int, genesis: Hash32, registry: Address) -> None:
        """Ties the file to one run at first use; later a different one is refused."""
        with self._engine.begin() as database:
            row = database.execute(select(_OWNER)).first()
            if row is None:
                database.execute(
                    insert(_OWNER).values(
                        only=1, chain_id=chain_id, genesis=genesis, registry=registry
                    )
                )
            elif (row.chain_id, row.genesis, row.registry) != (chain_id, genesis, registry):
                raise StoreForeign(
                    f"the events in {self._path} belong to another run or chain",
                    "use another data folder for this run, or delete the old one",
                )

    def newest(self) -> BlockMark | None:
        """The block up to which events are complete."""
        marks = self.marks(1)
        return marks[0] if marks else None

    def marks(self, count: int = _KEPT_BLOCKS) -> list[BlockMark]:
        """Remembered blocks, newest first."""
        query = select(_BLOCKS).order_by(_BLOCKS.c.number.desc()).limit(count)
        with self._engine.begin() as database:
            return [
                BlockMark(number=row.number, hash=Hash32(row.hash))
                for row in database.execute(query)
            ]

    def append(self, events: Iterable[StoredEvent], upto: BlockMark) -> None:
        """More events, and the block up to which they are complete now."""
        rows = [_row(stored) for stored in events]
        with self._engine.begin() as database:
            if rows:
                database.execute(insert(_EVENTS), rows)
            values = {"number": upto.number, "hash": upto.hash}
            database.execute(
                upsert(_BLOCKS)
                .values(values)
                .on_conflict_do_update(index_elements=["number"], set_={"hash": upto.hash})
            )
            if upto.number % _PRUNE_EVERY == 0:
                _prune(database)
        self._forget({row["kind"] for row in rows})

    def roll_back(self, to: int) -> list[Event]:
        """Forgets everything after a block; returns the events that are gone, oldest first."""
        with self._engine.begin() as database:
            query = select(_EVENTS).where(_EVENTS.c.block > to)
            gone = _decoded(database, query)
            database.execute(delete(_EVENTS).where(_EVENTS.c.block > to))
            database.execute(delete(_BLOCKS).where(_BLOCKS.c.number > to))
        self._forget({type(event).__name__ for event in gone})
        return gone

    def find(
        self,
        kind: type[EventT],
        *,
        round_: Round | None = None,
        epoch: Epoch | None = None,
        account: Address | None = None,
    ) -> list[EventT]:
        """Events of a kind in the order of the chain."""
        asked = (kind.__name__, kind.CONTRACT, round_, epoch, account)
        known = self._answers.get(asked)
        if known is None:
            known = self._find(kind, round_=round_, epoch=epoch, account=account)
            if len(self._answers) >= _ANSWERS_KEPT:
                self._answers.clear()
            self._answers[asked] = known
        return [event for event in known if isinstance(event, kind)]

    def _forget(self, kinds: Collection[object]) -> None:
        """Drops the answers that new or removed events of these kinds made wrong."""
        for asked in [asked for asked in self._answers if asked[0] in kinds]:
            del self._answers[asked]

    def _find(
        self,
        kind: type[Event],
        *,
        round_: Round | None,
        epoch: Epoch | None,
        account: Address | None,
    ) -> list[Event]:
        query = select(_EVENTS).where(
            _EVENTS.c.kind == kind.__name__, _EVENTS.c.contract == kind.CONTRACT
        )
        for column, value in (
            (_EVENTS.c.round, round_),
            (_EVENTS.c.epoch, epoch),
            (_EVENTS.c.account, account),
        ):
            if value is not None:
                query = query.where(column == value)
        with self._engine.begin() as database:
            return _decoded(database, query)

    def all(self, *, after: int = -1, upto: int | None = None) -> list[StoredEvent]:
        """Every event after one block and up to another, in the order of the chain."""
        query = select(_EVENTS).where(_EVENTS.c.block > after)
        if upto is not None:
            query = query.where(_EVENTS.c.block <= upto)
        query = query.order_by(_EVENTS.c.block, _EVENTS.c.log_index)
        with self._engine.begin() as database:
            return [_stored(row) for row in database.execute(query)]


def _prune(database: DatabaseConnection) -> None:
    kept = select(_BLOCKS.c.number).order_by(_BLOCKS.c.number.desc()).limit(_KEPT_BLOCKS)
    database.execute(delete(_BLOCKS).where(_BLOCKS.c.number.not_in(kept)))


def _decoded(database: DatabaseConnection, query: Select[tuple[object, ...]]) -> list[Event]:
    ordered = query.order_by(_EVENTS.c.block, _EVENTS.c.log_index)
    return [_stored(row).event for row in database.execute(ordered)]


def _row(stored: StoredEvent) -> dict[str, object]:
    event, log = stored.event, stored.log
    return {
        "block": log.block,
        "log_index": log.index,
        "contract": stored.contract,
        "kind": type(event).__name__,
        "round": getattr(event, "round", None),
        "epoch": getattr(event, "epoch", None),
        "account": getattr(event, "account", None),
        "address": log.address,
        "block_hash": log.block_hash,
        "tx_hash": log.tx_hash,
        "topics": json.dumps([topic.hex() for topic in log.topics]),
        "data": log.data,
    }


def _stored(row: Row[tuple[object, ...]]) -> StoredEvent:
    log = LogRecord(
        address=Address(row.address),
        topics=tuple(bytes.fromhex(topic) for topic in json.loads(row.topics)),
        data=row.data,
        block=row.block,
        block_hash=Hash32(row.block_hash),
        tx_hash=Hash32(row.tx_hash),
        index=row.log_index,
    )
    event = decode_event(row.contract, log)
    if event is None:
        raise Undecodable(f"the stored event {row.kind} of block {row.block} is unknown now")
    return StoredEvent(contract=row.contract, log=log, event=event)
