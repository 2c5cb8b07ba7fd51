"""Reading what a store and a board keep while another process works on them: nothing is made, moved or dropped.

What is gone or damaged at the moment of reading counts as absent.
"""

from __future__ import annotations

from pathlib import Path

from protocol.hashing import sha256
from protocol.ids import Hash32
from transport.board import RECORD_FILE, TOPICS
from transport.store import blob_path


def peek_topics(board: Path, family: str) -> list[str]:
    """What follows the family's name in the topics of a board, sorted."""
    folder = board / TOPICS / family
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def peek_records(board: Path, topic: str) -> list[bytes]:
    """The records of a topic, newest first."""
    folder = board / TOPICS / topic
    names = (
        sorted((path.name for path in folder.iterdir()), reverse=True) if folder.is_dir() else []
    )
    found = []
    for name in names:
        match = RECORD_FILE.fullmatch(name)
        record = _read(folder / name) if match else None
        if match and record is not None and sha256(record) == bytes.fromhex(match[3]):
            found.append(record)
    return found


def peek_blob(store: Path, digest: Hash32) -> bytes | None:
    """A blob with this digest."""
    data = _read(blob_path(store, digest))
    return data if data is not None and sha256(data) == digest else None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
