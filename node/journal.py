"""The node's durable memory: what it signed, and the few facts that it may not forget.

Written before the message that depends on it is sent. A role never signs anything that contradicts
what it signed before: `sign_once` refuses, also after any number of restarts.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, LargeBinary, MetaData, String, Table, delete, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine import Engine

from ledger.database import open_database
from node.errors import Contradiction
from protocol.ids import Hash32

_METADATA = MetaData()
_SIGNED = Table(
    "signed",
    _METADATA,
    Column("kind", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
_NOTES = Table(
    "notes",
    _METADATA,
    Column("name", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)


class Journal:
    """One SQLite file, every write durable before the call returns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Opens or creates the journal at ``path``."""
        return cls(open_database(path, _METADATA, durable=True))

    def sign_once(self, kind: str, key: str, digest: Hash32, body: bytes) -> None:
        """Notes that ``digest`` is about to be signed for (kind, key).

        Signing the same digest again is fine.

        Raises:
            Contradiction: another digest was signed for (kind, key) before.
        """
        row = {"kind": kind, "key": key, "digest": digest, "body": body}
        with self._engine.begin() as connection:
            connection.execute(insert(_SIGNED).values(row).on_conflict_do_nothing())
            stored = connection.execute(
                select(_SIGNED.c.digest).where(_SIGNED.c.kind == kind, _SIGNED.c.key == key)
            ).scalar_one()
        if stored != digest:
            raise Contradiction(kind, key)

    def signed(self, kind: str, key: str) -> bytes | None:
        """The body that was signed for (kind, key), if any."""
        query = select(_SIGNED.c.body).where(_SIGNED.c.kind == kind, _SIGNED.c.key == key)
        with self._engine.connect() as connection:
            body: bytes | None = connection.execute(query).scalar_one_or_none()
        return body

    def note(self, name: str, value: bytes) -> None:
        """Stores a fact under a name, replacing the one before."""
        statement = insert(_NOTES).values(name=name, value=value)
        statement = statement.on_conflict_do_update(
            index_elements=["name"], set_={"value": statement.excluded.value}
        )
        with self._engine.begin() as connection:
            connection.execute(statement)

    def noted(self, name: str) -> bytes | None:
        """The fact stored under a name, if any."""
        query = select(_NOTES.c.value).where(_NOTES.c.name == name)
        with self._engine.connect() as connection:
            value: bytes | None = connection.execute(query).scalar_one_or_none()
        return value

    def forget(self, name: str) -> None:
        """Drops the fact stored under a name."""
        with self._engine.begin() as connection:
            connection.execute(delete(_NOTES).where(_NOTES.c.name == name))

    def close(self) -> None:
        """Releases the file."""
        self._engine.dispose()
