"""What an outbox remembers: one row per transaction, one per signed attempt at it, all in one durable SQLite file.

States of a transaction: *pending* (signed, not known to be in a block) -> *mined* (in a block, may still be reorganised
away) -> *final* (deep enough to be forgotten). A nonce belongs to at most one transaction that is not final.
One process holds the file at a time (a lock that dies with the process).
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    delete,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.engine import Connection as DatabaseConnection

from ledger.abi import AbiValue
from ledger.database import open_database
from ledger.errors import PAUSED, Reverted, StoreBusy, StoreForeign
from ledger.json_rpc import Json
from ledger.reverts import named_revert, revert_error
from ledger.transactions import Call, Fees, Receipt
from protocol.errors import Bug
from protocol.ids import Address, Hash32, to_address

_METADATA = MetaData()
_OWNER = Table(
    "owner",
    _METADATA,
    Column("only", Integer, primary_key=True),
    Column("chain_id", Integer, nullable=False),
    Column("genesis", LargeBinary, nullable=False),
    Column("address", String, nullable=False),
)
_TRANSACTIONS = Table(
    "transactions",
    _METADATA,
    Column("key", String, primary_key=True),
    Column("nonce", Integer, nullable=False),
    Column("to", String),
    Column("data", LargeBinary, nullable=False),
    Column("value", String, nullable=False),
    Column("gas", Integer, nullable=False),
    Column("label", String, nullable=False),
    Column("not_after", Integer),
    Column("status", String, nullable=False),
    Column("receipt", String),
    Column("revert", LargeBinary),
    Column("out_of_gas", Boolean, nullable=False),
    Column("given_up", String),
    Column("created_at", Float, nullable=False),
    Index(
        "one_open_transaction_per_nonce",
        "nonce",
        unique=True,
        sqlite_where=text("status != 'final'"),
    ),
)
_ATTEMPTS = Table(
    "attempts",
    _METADATA,
    Column("hash", LargeBinary, primary_key=True),
    Column("key", String, nullable=False, index=True),
    Column("nonce", Integer, nullable=False),
    Column("raw", LargeBinary, nullable=False),
    Column("given_up", String),
    Column("maximum", String, nullable=False),
    Column("priority", String),
    Column("block", Integer, nullable=False),
    Column("order", Integer, nullable=False),
)


EXPIRED = "Expired"
"""Reason to give a call up: its window closed."""
_PASSING = (EXPIRED, PAUSED, "NotTurn", "WrongPosition", "NoSuchVote")
"""Refusals of a moment. A pause of the run moves windows: a call that came too late may be in time again. And when a
reorganisation takes a game's moves back, they come again in any order: one that came before its turn has it later."""


class Status(StrEnum):
    """How far a transaction has come."""

    PENDING = "pending"
    MINED = "mined"
    FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One signed form of a transaction. `block` was the head when it was signed;
    One with `given_up` only uses up the nonce; it says why the call itself was given up.
    """

    raw: bytes
    hash: Hash32
    nonce: int
    fees: Fees
    block: int
    given_up: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A transaction of the outbox with its attempts, oldest first (none once it is final)."""

    key: str
    nonce: int
    call: Call
    gas: int
    status: Status
    receipt: Receipt | None
    revert: bytes | None
    out_of_gas: bool
    given_up: str | None
    attempts: tuple[Attempt, ...]

    def error(self) -> Reverted | None:
        """The typed error of a transaction that was reverted on chain."""
        if self.receipt is None:
            return None
        if self.given_up == EXPIRED:
            arguments: dict[str, AbiValue] = {"not_after": self.call.not_after or 0}
            return named_revert(EXPIRED, arguments, label=self.call.label)
        if self.given_up is not None:
            return named_revert("NotAccepted", {"node": self.given_up}, label=self.call.label)
        if self.receipt.succeeded:
            return None
        if self.out_of_gas:
            return named_revert(
                "OutOfGas", {"limit": self.gas}, label=self.call.label, tx_hash=self.receipt.tx_hash
            )
        return revert_error(self.revert or b"", label=self.call.label, tx_hash=self.receipt.tx_hash)

    @property
    def may_be_tried_again(self) -> bool:
        """Whether it came to nothing for a reason that passes."""
        error = self.error()
        return error is not None and error.name in _PASSING


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a transaction that is in a block ended: all defaults if it did what it should.

    Attributes:
        revert: data of the revert, if it could be found out.
        out_of_gas: the gas limit was too low.
        given_up: why an empty transaction took its nonce instead.
    """

    revert: bytes | None = None
    out_of_gas: bool = False
    given_up: str | None = None


class OutboxStore:
    """The rows. Every method is one database transaction."""

    def __init__(self, path: Path) -> None:
        self._lock = _hold(path)
        try:
            self._engine = open_database(path, _METADATA, durable=True)
        except BaseException:
            os.close(self._lock)
            raise
        self._path = path

    def close(self) -> None:
        """Lets go of the file."""
        self._engine.dispose()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def claim(self, *, chain_id: int, genesis: Hash32, address: Address) -> None:
        """Ties the file to one chain and key at first use; later a different one is refused."""
        with self._engine.begin() as database:
            row = database.execute(select(_OWNER)).first()
            if row is None:
                database.execute(
                    insert(_OWNER).values(
                        only=1, chain_id=chain_id, genesis=genesis, address=address
                    )
                )
                return
        if row.address != address:
            raise StoreForeign(
                f"the outbox {self._path} belongs to {row.address}, not to {address}",
                "give each key a data folder of its own",
            )
        if row.chain_id != chain_id or row.genesis != genesis:
            raise StoreForeign(
                f"the outbox {self._path} belongs to another chain (id {row.chain_id}, genesis 0x{row.genesis.hex()})",
                "use another data folder for this chain, or delete the old one",
            )

    def find(self, key: str) -> Entry | None:
        """The transaction under a key."""
        with self._engine.begin() as database:
            row = database.execute(select(_TRANSACTIONS).where(_TRANSACTIONS.c.key == key)).first()
            return None if row is None else _entry(row, _attempts(database, key))

    def unsettled(self) -> list[Entry]:
        """Every transaction that is not final, by nonce."""
        query = (
            select(_TRANSACTIONS)
            .where(_TRANSACTIONS.c.status != Status.FINAL)
            .order_by(_TRANSACTIONS.c.nonce)
        )
        with self._engine.begin() as database:
            attempts: dict[str, list[Attempt]] = {}
            for row in database.execute(select(_ATTEMPTS).order_by(_ATTEMPTS.c.order)):
                attempts.setdefault(row.key, []).append(_attempt(row))
            return [
                _entry(row, tuple(attempts.get(row.key, ()))) for row in database.execute(query)
            ]

    def worst_cost(self) -> int:
        """The most that the pending transactions may still cost, in wei."""
        query = (
            select(
                _TRANSACTIONS.c.key, _TRANSACTIONS.c.value, _TRANSACTIONS.c.gas, _ATTEMPTS.c.maximum
            )
            .join(_ATTEMPTS, _ATTEMPTS.c.key == _TRANSACTIONS.c.key)
            .where(_TRANSACTIONS.c.status == Status.PENDING)
        )
        worst: dict[str, int] = {}
        with self._engine.begin() as database:
            for row in database.execute(query):
                worst[row.key] = max(
                    worst.get(row.key, 0), int(row.value) + row.gas * int(row.maximum)
                )
        return sum(worst.values())

    def next_nonce(self, at_least: int) -> int:
        """The first nonce that neither the chain (`at_least`) nor an unsettled transaction uses."""
        query = select(func.max(_TRANSACTIONS.c.nonce)).where(
            _TRANSACTIONS.c.status != Status.FINAL
        )
        with self._engine.begin() as database:
            highest = database.execute(query).scalar()
        return at_least if highest is None else max(at_least, highest + 1)

    def add(self, key: str, call: Call, *, gas: int, attempt: Attempt, now: float) -> None:
        """A new transaction with its first attempt; one before it under this key gets another name."""
        with self._engine.begin() as database:
            _set_aside(database, key)
            database.execute(
                insert(_TRANSACTIONS).values(
                    key=key,
                    nonce=attempt.nonce,
                    to=call.to,
                    data=call.data,
                    value=str(call.value),
                    gas=gas,
                    label=call.label,
                    not_after=call.not_after,
                    status=Status.PENDING,
                    out_of_gas=False,
                    given_up=None,
                    created_at=now,
                )
            )
            _add_attempt(database, key, attempt)

    def add_attempt(self, key: str, attempt: Attempt) -> None:
        """Another attempt, with higher fees or with another nonce (which becomes the transaction's)."""
        with self._engine.begin() as database:
            _set(database, key, nonce=attempt.nonce)
            _add_attempt(database, key, attempt)

    def mark_mined(self, key: str, receipt: Json, outcome: Outcome) -> None:
        """It is in a block."""
        with self._engine.begin() as database:
            _set(
                database,
                key,
                status=Status.MINED,
                receipt=json.dumps(receipt),
                revert=outcome.revert,
                out_of_gas=outcome.out_of_gas,
                given_up=outcome.given_up,
            )

    def mark_pending(self, key: str) -> None:
        """A reorganisation took it out of its block."""
        with self._engine.begin() as database:
            _set(
                database,
                key,
                status=Status.PENDING,
                receipt=None,
                revert=None,
                out_of_gas=False,
                given_up=None,
            )

    def mark_final(self, key: str) -> None:
        """It is deep enough; its attempts are dropped."""
        with self._engine.begin() as database:
            _set(database, key, status=Status.FINAL)
            database.execute(delete(_ATTEMPTS).where(_ATTEMPTS.c.key == key))

    def gas_used(self) -> list[tuple[str, int]]:
        """(label, gas used) of every transaction that is in a block, oldest first."""
        query = (
            select(_TRANSACTIONS.c.label, _TRANSACTIONS.c.receipt)
            .where(_TRANSACTIONS.c.receipt.is_not(None), _TRANSACTIONS.c.given_up.is_(None))
            .order_by(_TRANSACTIONS.c.created_at)
        )
        with self._engine.begin() as database:
            rows = database.execute(query).all()
        return [(row.label, Receipt.from_rpc(json.loads(row.receipt)).gas_used) for row in rows]


def _hold(path: Path) -> int:
    """Takes the file's lock; the kernel lets go of it when the process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(
        path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise StoreBusy(
            f"another process uses the outbox {path}",
            "stop it first: a key sends from one process at a time",
        ) from error
    return descriptor


def _set(database: DatabaseConnection, key: str, **values: object) -> None:
    changed = database.execute(
        update(_TRANSACTIONS).where(_TRANSACTIONS.c.key == key).values(values)
    )
    if changed.rowcount != 1:
        raise Bug(f"no transaction {key!r} in the outbox")


def _set_aside(database: DatabaseConnection, key: str) -> None:
    """Frees a key. What stood under it is still watched until it is final: its nonce must not come free."""
    nonce = database.execute(
        select(_TRANSACTIONS.c.nonce).where(_TRANSACTIONS.c.key == key)
    ).scalar()
    if nonce is not None:
        for table in (_TRANSACTIONS, _ATTEMPTS):
            database.execute(
                update(table).where(table.c.key == key).values(key=f"{key} (nonce {nonce})")
            )


def _add_attempt(database: DatabaseConnection, key: str, attempt: Attempt) -> None:
    order = (
        select(func.count()).select_from(_ATTEMPTS).where(_ATTEMPTS.c.key == key).scalar_subquery()
    )
    database.execute(
        insert(_ATTEMPTS).values(
            hash=attempt.hash,
            key=key,
            nonce=attempt.nonce,
            raw=attempt.raw,
            given_up=attempt.given_up,
            maximum=str(attempt.fees.maximum),
            priority=None if attempt.fees.priority is None else str(attempt.fees.priority),
            block=attempt.block,
            order=order,
        )
    )


def _attempts(database: DatabaseConnection, key: str) -> tuple[Attempt, ...]:
    rows = database.execute(
        select(_ATTEMPTS).where(_ATTEMPTS.c.key == key).order_by(_ATTEMPTS.c.order)
    ).all()
    return tuple(_attempt(row) for row in rows)


def _attempt(row: Row[tuple[object, ...]]) -> Attempt:
    return Attempt(
        raw=row.raw,
        hash=Hash32(row.hash),
        nonce=row.nonce,
        fees=Fees(
            maximum=int(row.maximum), priority=None if row.priority is None else int(row.priority)
        ),
        block=row.block,
        given_up=row.given_up,
    )


def _entry(row: Row[tuple[object, ...]], attempts: tuple[Attempt, ...]) -> Entry:
    return Entry(
        key=row.key,
        nonce=row.nonce,
        call=Call(
            to=None if row.to is None else to_address(row.to),
            data=row.data,
            label=row.label,
            value=int(row.value),
            not_after=row.not_after,
        ),
        gas=row.gas,
        status=Status(row.status),
        receipt=None if row.receipt is None else Receipt.from_rpc(json.loads(row.receipt)),
        revert=row.revert,
        out_of_gas=row.out_of_gas,
        given_up=row.given_up,
        attempts=attempts,
    )
