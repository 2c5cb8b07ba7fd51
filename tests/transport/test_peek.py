"""Looking into what another process keeps: what it says is there, and nothing in its folders changes."""

from __future__ import annotations

from pathlib import Path

from protocol.hashing import sha256
from protocol.ids import Hash32
from transport.board import RecordBoard
from transport.limits import MIB
from transport.peek import peek_blob, peek_records, peek_topics
from transport.store import FolderStore, blob_path


def contents(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_peek__open_store_and_board__sees_what_they_hold_and_touches_nothing(
    tmp_path: Path,
) -> None:
    store, board = FolderStore(tmp_path / "blobs", MIB), RecordBoard(tmp_path / "board")
    ref = store.put(b"weights")
    for record in (b"old", b"new"):
        board.put("checkpoints/7", "state", record)
    board.put("checkpoints/12", "state", b"other")
    (tmp_path / "blobs" / "scratch" / "being written").write_bytes(b"half")
    before = contents(tmp_path)
    assert peek_topics(tmp_path / "board", "checkpoints") == ["12", "7"]
    assert peek_records(tmp_path / "board", "checkpoints/7") == [b"new", b"old"]
    assert peek_blob(tmp_path / "blobs", ref.digest) == b"weights"
    assert contents(tmp_path) == before


def test_peek__absent_or_damaged__is_nothing(tmp_path: Path) -> None:
    store, board = FolderStore(tmp_path / "blobs", MIB), RecordBoard(tmp_path / "board")
    ref = store.put(b"weights")
    blob_path(tmp_path / "blobs", ref.digest).write_bytes(b"weightz")
    board.put("checkpoints/7", "state", b"record")
    topic = tmp_path / "board" / "topics" / "checkpoints" / "7"
    next(topic.iterdir()).write_bytes(b"changed")
    (topic / "stray").write_bytes(b"stray")
    assert peek_blob(tmp_path / "blobs", ref.digest) is None
    assert blob_path(tmp_path / "blobs", ref.digest).exists()
    assert peek_blob(tmp_path / "blobs", Hash32(sha256(b"never seen"))) is None
    assert peek_records(tmp_path / "board", "checkpoints/7") == []
    assert peek_records(tmp_path / "board", "checkpoints/8") == []
    assert peek_topics(tmp_path / "nowhere", "checkpoints") == []
