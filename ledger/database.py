"""A node's own SQLite files: how they are opened, and what is said when they can't be.

Write-ahead logging, so that readers never block the writer. ``durable`` files survive a power cut with every committed
row (fsync at each commit); the others may lose the last commits then, never their consistency.

Transactions are short and run on the event loop on purpose: nothing else of the process can run in the middle of one.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Engine, MetaData, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import ConnectionPoolEntry

from ledger.errors import StoreDamaged


def open_database(path: Path, tables: MetaData, *, durable: bool) -> Engine:
    """Opens or creates a database with the given tables.

    Raises:
        StoreDamaged: the file is no database, or can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(f"sqlite:///{path}")
        _set_pragmas(engine, durable)
        tables.create_all(engine)
    except (DatabaseError, OSError) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreDamaged(
            f"cannot use the database {path} ({cause})",
            "check disk space and permissions, or restore the file",
        ) from error
    return engine


def _set_pragmas(engine: Engine, durable: bool) -> None:
    def on_connect(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        cursor.execute("PRAGMA busy_timeout = 10000")
        cursor.close()

    event.listen(engine, "connect", on_connect)
