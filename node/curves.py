"""How a node's rounds went, for whoever draws them: one row a round, in a SQLite file of its own in the node's state.

A round that is done again, after a kill or a reorganisation, replaces its row, so there is never a second one. A kill takes
at most the row that was being written. Only the newest rounds are kept. Nothing of the protocol depends on any of it.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    NullPool,
    Row,
    Select,
    String,
    Table,
    create_engine,
    delete,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.exc import DatabaseError

from ledger.database import open_database
from ledger.errors import StoreDamaged
from protocol.ids import Address, Hash32, Round

FILE = "curves.db"
"""Its name in a node's state folder."""
ROUNDS_KEPT = 50_000
"""With 30 inner steps a round, about 15 MB."""

_METADATA = MetaData()
_ABOUT = Table(
    "about",
    _METADATA,
    Column("run", LargeBinary, primary_key=True),
    Column("spec_hash", LargeBinary, nullable=False),
    Column("account", String, nullable=False),
    Column("model", String, nullable=False),
)
_TRAINING = Table(
    "training",
    _METADATA,
    Column("round", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("mean_loss", Float, nullable=False),
    Column("losses", LargeBinary, nullable=False),
    Column("learning_rate", Float, nullable=False),
    Column("compression_error", Float, nullable=False),
    Column("payload_bytes", Integer, nullable=False),
    Column("dense_bytes", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("train_s", Float, nullable=False),
    Column("encode_s", Float, nullable=False),
    Column("accepted", Boolean),
)
_EVALUATION = Table(
    "evaluation",
    _METADATA,
    Column("round", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("heldout_loss", Float, nullable=False),
    Column("alpha", Float, nullable=False),
    Column("accepted", Integer, nullable=False),
    Column("selected", Integer, nullable=False),
    Column("fetched_bytes", Integer, nullable=False),
    Column("void", String, nullable=False),
)
_LOSS = np.dtype("<f4")
_FIRST = Round(1)
_Row = TypeVar("_Row", "TrainingRow", "EvaluationRow")


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Whose rows they are; `model` says in words what is trained."""

    run: Hash32
    spec_hash: Hash32
    account: Address
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRow:
    """A round of a miner.

    Attributes:
        at: when it was trained, unix time of the miner's own clock.
        mean_loss: over all inner steps, nats per token.
        losses: of each inner step, kept as fp32.
        learning_rate: of the last inner step.
        compression_error: norm of what stays in the error feedback over that of what was to be sent.
        payload_bytes, dense_bytes: of the update on the wire, and of as many parameters in fp32.
        tokens: that it trained on.
        train_s, encode_s: as in `training.figures.RoundFigures`.
        accepted: None as long as the miner does not know.
    """

    round: Round
    at: float = field(default_factory=time.time)
    mean_loss: float
    losses: tuple[float, ...]
    learning_rate: float
    compression_error: float
    payload_bytes: int
    dense_bytes: int
    tokens: int
    train_s: float
    encode_s: float
    accepted: bool | None = None

    @property
    def ratio(self) -> float:
        """How many times smaller the update is on the wire than dense in fp32."""
        return self.dense_bytes / self.payload_bytes

    @property
    def tokens_per_s(self) -> float:
        """Speed of the inner steps."""
        return self.tokens / self.train_s


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """A round of a validator.

    Attributes:
        at: when it was scored, unix time of the validator's own clock.
        heldout_loss: of the agreed model after the round, nats per token.
        alpha: the outer step of the round.
        accepted, selected: submissions.
        fetched_bytes: of all blobs behind the submissions that the validator holds, local states among them.
        void: why the model stayed as it was; "" if it moved.
    """

    round: Round
    at: float = field(default_factory=time.time)
    heldout_loss: float
    alpha: float
    accepted: int
    selected: int
    fetched_bytes: int
    void: str


_TABLES = {TrainingRow: _TRAINING, EvaluationRow: _EVALUATION}


class Curves:
    """The rows of one node."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self._engine = engine
        self._path = path

    @classmethod
    def open(cls, path: Path, about: About) -> Curves:
        """Opens or creates the file, for the node that `about` tells of.

        Raises:
            StoreDamaged: it is no such file, or can't be written.
        """
        curves = cls(open_database(path, _METADATA, durable=False), path)
        with curves._engine.begin() as connection:
            connection.execute(delete(_ABOUT))
            connection.execute(insert(_ABOUT).values(_columns(about)))
        return curves

    @classmethod
    def open_to_read(cls, path: Path) -> Curves:
        """Opens an existing file, also while its node writes to it; changes nothing, where the node has closed it."""
        uri = f"{path.absolute().as_uri()}?mode=ro"
        if not path.with_name(path.name + "-wal").exists():
            uri += (
                "&immutable=1"  # else SQLite makes the files of the log, or fails where it may not
            )
        engine = create_engine(
            "sqlite://", creator=lambda: sqlite3.connect(uri, uri=True), poolclass=NullPool
        )
        return cls(engine, path)

    def add(self, row: TrainingRow | EvaluationRow) -> None:
        """Enters a round; one that is there is replaced."""
        table = _TABLES[type(row)]
        statement = insert(table).values(_columns(row))
        statement = statement.on_conflict_do_update(
            index_elements=["round"], set_=dict(statement.excluded)
        )
        with self._engine.begin() as connection:
            connection.execute(statement)
            connection.execute(delete(table).where(table.c.round <= row.round - ROUNDS_KEPT))

    def judge(self, round_: Round, *, accepted: bool) -> None:
        """Enters what became of a miner's round, if it has a row."""
        chosen = update(_TRAINING).where(_TRAINING.c.round == round_)
        with self._engine.begin() as connection:
            connection.execute(chosen.values(accepted=accepted))

    def about(self) -> About:
        """Whose rows they are. Raises `StoreDamaged`."""
        (row,) = self._read(select(_ABOUT))
        return About(
            run=Hash32(row.run),
            spec_hash=Hash32(row.spec_hash),
            account=Address(row.account),
            model=row.model,
        )

    def training(self, since: Round = _FIRST) -> tuple[TrainingRow, ...]:
        """A miner's rounds from one on, oldest first. Raises `StoreDamaged`."""
        return self._rows(TrainingRow, since)

    def evaluation(self, since: Round = _FIRST) -> tuple[EvaluationRow, ...]:
        """A validator's rounds from one on, oldest first. Raises `StoreDamaged`."""
        return self._rows(EvaluationRow, since)

    def close(self) -> None:
        """Releases the file."""
        self._engine.dispose()

    def _rows(self, kind: type[_Row], since: Round) -> tuple[_Row, ...]:
        table = _TABLES[kind]
        query = select(table).where(table.c.round >= since).order_by(table.c.round)
        return tuple(_row(kind, found) for found in self._read(query))

    def _read(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        try:
            with self._engine.connect() as connection:
                return connection.execute(query).all()
        except DatabaseError as error:
            raise StoreDamaged(
                f"cannot read the curves in {self._path} ({error.orig})",
                "check permissions, or leave that folder out",
            ) from error


def _columns(record: About | TrainingRow | EvaluationRow) -> dict[str, object]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    if isinstance(record, TrainingRow):
        values["losses"] = np.array(record.losses, _LOSS).tobytes()
    return values


def _row(kind: type[_Row], found: Row[*tuple[Any, ...]]) -> _Row:
    values = dict(found._mapping)
    if kind is TrainingRow:
        values["losses"] = tuple(np.frombuffer(values["losses"], _LOSS).tolist())
    return kind(**values)
