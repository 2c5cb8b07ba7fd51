"""The record board: nothing replaces anything, and pages are stable."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import Rejected
from transport.board import RecordBoard
from transport.errors import BadName, RecordRefused, StorageFull
from transport.limits import BoardLimits

MINER = "0x52908400098527886E0F7030069857D2E4169EE7"
TOPIC = "submissions/7"


def board_of(root: Path, **limits: int) -> RecordBoard:
    return RecordBoard(root, BoardLimits(**limits))


def test_put__two_records_under_one_key__both_kept_newest_first(board: RecordBoard) -> None:
    assert board.put(TOPIC, MINER, b"one")
    assert board.put(TOPIC, MINER, b"two")
    assert not board.put(TOPIC, MINER, b"one")
    assert board.put(TOPIC, "other", b"one")
    assert board.get(TOPIC, MINER) == [b"two", b"one"]
    assert board.records(TOPIC) == [b"one", b"two", b"one"]
    assert board.keys(TOPIC) == [MINER, "other"]
    assert board.used_bytes == 9


def test_restart__everything__as_before(board: RecordBoard) -> None:
    for number in range(5):
        board.put(TOPIC, f"key{number % 2}", f"record {number}".encode())
    board.put("checkpoints", "7", b"checkpoint")
    board.put("submissions", "7", b"a topic may be the parent of another")
    again = RecordBoard(board.root)
    for topic in ("submissions/7", "checkpoints", "submissions", "nothing"):
        assert again.records(topic) == board.records(topic)
        assert again.keys(topic) == board.keys(topic)
    assert again.topics() == ["checkpoints", "submissions", "submissions/7"]
    assert again.used_bytes == board.used_bytes
    again.put(TOPIC, "key0", b"newest")
    assert again.records(TOPIC)[0] == b"newest"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "..",
        "a/..",
        "a/../b",
        ".hidden",
        "a.b",
        "A",
        "a b",
        "ä",
        "a\n",
        "a/b/c/d/e",
        "x" * 65,
        "a\0b",
        "%2e%2e",
        "a\\b",
        "~",
    ],
)
def test_put__topic_outside_the_grammar__refused(topic: str, board: RecordBoard) -> None:
    with pytest.raises(BadName) as caught:
        board.put(topic, MINER, b"record")
    assert isinstance(caught.value, Rejected)
    with pytest.raises(BadName):
        board.drop(topic)
    assert [path for path in board.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "a.b", "k" * 129, "ä", "a b", "a\0", "-"])
def test_put__key_outside_the_grammar__refused(key: str, board: RecordBoard) -> None:
    with pytest.raises(BadName):
        board.put(TOPIC, key, b"record")


def test_put__beyond_the_limits__refused(tmp_path: Path) -> None:
    board = board_of(
        tmp_path, record_bytes=10, records_per_key=2, records_per_topic=3, quota_bytes=20
    )
    for record in (b"", b"12345678901"):
        with pytest.raises(RecordRefused):
            board.put(TOPIC, MINER, record)
    board.put(TOPIC, MINER, b"1")
    board.put(TOPIC, MINER, b"2")
    with pytest.raises(RecordRefused, match="under the key"):
        board.put(TOPIC, MINER, b"3")
    board.put(TOPIC, "other", b"1")
    with pytest.raises(RecordRefused, match="topic is full"):
        board.put(TOPIC, "third", b"1")
    board.put("elsewhere", "third", b"1234567890")
    with pytest.raises(StorageFull, match="drop topics"):
        board.put("elsewhere", "third", b"12345678")
    assert board.used_bytes == 13
    assert board.drop("elsewhere") == 1
    board.put("elsewhere", "third", b"12345678")


def test_drop__topic__gone_for_good_and_others_stay(board: RecordBoard) -> None:
    board.put(TOPIC, MINER, b"old")
    board.put("submissions/8", MINER, b"new")
    board.put("submissions", MINER, b"parent")
    assert board.drop(TOPIC) == 1
    assert board.drop(TOPIC) == 0
    assert board.drop("submissions") == 1
    for each in (board, RecordBoard(board.root)):
        assert each.topics() == ["submissions/8"]
        assert each.records(TOPIC) == []
        assert each.get(TOPIC, MINER) == []
    assert not (board.root / "topics" / TOPIC).exists()
    assert board.put(TOPIC, MINER, b"old")


def test_records__damaged_or_removed_on_disk__left_out(board: RecordBoard) -> None:
    for record in (b"one", b"two", b"three"):
        board.put(TOPIC, MINER, record)
    first, second, _ = sorted(path for path in board.root.rglob("0*") if path.is_file())
    first.write_bytes(b"rot")
    second.unlink()
    (first.parent / "stray").touch()
    (board.root / "topics" / ".hidden").mkdir()
    (board.root / "topics" / ".hidden" / first.name).touch()
    assert board.records(TOPIC) == [b"three"]
    assert RecordBoard(board.root).records(TOPIC) == [b"three"]


def test_listing__records_arrive_between_pages__each_old_one_once(board: RecordBoard) -> None:
    for number in range(7):
        board.put(TOPIC, MINER + str(number), b"%d" % number)
    seen: list[bytes] = []
    before = None
    while True:
        page, before = board.listing(TOPIC, before=before, max_bytes=100, max_records=2)
        seen += page
        board.put(TOPIC, f"late{len(seen)}", b"late%d" % len(seen))
        if before is None:
            break
    assert seen == [b"%d" % number for number in reversed(range(7))]


def test_listing__record_larger_than_the_page__still_served(board: RecordBoard) -> None:
    board.put(TOPIC, MINER, b"small")
    board.put(TOPIC, MINER, b"x" * 1000)
    page, before = board.listing(TOPIC, max_bytes=10, max_records=10)
    assert page == [b"x" * 1000]
    assert board.listing(TOPIC, before=before, max_bytes=10, max_records=10) == ([b"small"], None)


@settings(max_examples=30, deadline=None)
@given(
    records=st.lists(st.tuples(st.integers(0, 4), st.binary(min_size=1, max_size=30)), max_size=25),
    max_bytes=st.integers(1, 100),
    max_records=st.integers(1, 10),
)
def test_listing__any_pages__together_the_whole(
    records: list[tuple[int, bytes]],
    max_bytes: int,
    max_records: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    board = board_of(tmp_path_factory.mktemp("board"), records_per_key=100)
    expected = list(dict.fromkeys(records))
    for key, record in records:
        board.put(TOPIC, f"key{key}", record)
    seen: list[bytes] = []
    before = None
    while True:
        page, before = board.listing(
            TOPIC, before=before, max_bytes=max_bytes, max_records=max_records
        )
        assert len(page) <= max_records
        assert sum(map(len, page)) <= max_bytes or len(page) == 1
        seen += page
        if before is None:
            break
    assert seen == [record for _, record in reversed(expected)] == board.records(TOPIC)
