"""The user's own text in its forms, and what is said when it can't be used."""

from __future__ import annotations

import builtins
import gzip
import importlib
import json
import random
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from syntience import readers
from syntience.documents import ListedDocuments, open_documents
from syntience.errors import DataMissing


def load_documents(place: Path, field: str = "text") -> list[str]:
    """All of them, with the progress that is told on the way checked."""
    documents = open_documents(place, field=field, cache_dir=place)
    texts, seen = [], []
    for text in documents:
        texts.append(text)
        seen.append(documents.position)
    assert seen == sorted(seen)
    assert documents.position == documents.size > 0
    assert list(documents) == texts, "they can be read again"
    return texts


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data[:7]) + gzip.compress(data[7:])
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return compressor.compress(data[:7]) + compressor.compress(data[7:])


def test_load__text_file__is_split_at_the_divider(tmp_path: Path) -> None:
    file = tmp_path / "stories"
    file.write_text("\ufeffone\n<|endoftext|>\ntwo<|endoftext|>  \n<|endoftext|>", encoding="utf-8")
    assert load_documents(file) == ["one\n", "\ntwo", "  \n", ""]


def test_load__line_ends__stay_as_they_are(tmp_path: Path) -> None:
    """So that a document's digest is that of the bytes that its author has."""
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\rthree")
    assert load_documents(tmp_path / "a.txt") == ["one\r\ntwo\rthree"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_load__text_in_small_pieces__is_split_as_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    piece = st.sampled_from(
        ["a", "ü", "\n", "<", "<|", "|endoftext|>", readers.DIVIDER, "<|endoftext|"]
    )
    text = "".join(data.draw(st.lists(piece, max_size=30)))
    (tmp_path / "a.txt").write_text(text)
    monkeypatch.setattr(readers, "_READ_BYTES", data.draw(st.integers(1, 40)))
    found = list(open_documents(tmp_path / "a.txt", cache_dir=tmp_path))
    assert found == text.split(readers.DIVIDER)


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".GZ"])
@pytest.mark.parametrize("kind", [".txt", ".md", ".jsonl", ".ndjson"])
def test_load__compressed__is_what_is_inside(tmp_path: Path, suffix: str, kind: str) -> None:
    texts = [f"{number} ü " * 5_000 for number in range(20)]
    if kind in (".txt", ".md"):
        data = readers.DIVIDER.join(texts).encode()
    else:
        data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / f"some.tales{kind}{suffix}").write_bytes(packed(data, suffix.lower()))
    assert load_documents(tmp_path / "x") == texts
    file = tmp_path / "x" / f"some.tales{kind}{suffix}"
    assert load_documents(file) == texts
    assert open_documents(file, cache_dir=tmp_path).name == "some.tales"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "other", "flipped"])
def test_load__damaged_compression__says_so(tmp_path: Path, suffix: str, damage: str) -> None:
    random_ = random.Random(1)
    text = "".join(random_.choice("abcdefgh \n") for _ in range(50_000))
    data = bytearray(packed(text.encode(), suffix))
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "other":
        data[:] = text.encode()
    else:
        data[60:80] = bytes(20)
    (tmp_path / f"a.txt{suffix}").write_bytes(data)
    with pytest.raises(DataMissing, match=r"a\.txt\.(gz|zst) is no whole .* file"):
        load_documents(tmp_path / f"a.txt{suffix}")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_load__empty_compressed_file__is_one_empty_text(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.txt{suffix}").write_bytes(packed(b"", suffix))
    assert load_documents(tmp_path / f"a.txt{suffix}") == [""]


def test_load__too_large_a_document__says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST_BYTES", 1000)
    monkeypatch.setattr(readers, "_READ_BYTES", 100)
    (tmp_path / "a.txt").write_text("x" * 900 + readers.DIVIDER + "y" * 2000)
    with pytest.raises(DataMissing, match=r"a document of more than .*: divide its documents"):
        load_documents(tmp_path / "a.txt")
    (tmp_path / "a.jsonl").write_text('{"text": "fine"}\n{"text": "' + "y" * 2000 + '"}\n')
    with pytest.raises(DataMissing, match="line 2 is longer than"):
        load_documents(tmp_path / "a.jsonl")


def test_listed__texts__tell_how_far_they_are() -> None:
    documents = ListedDocuments("mine", ["a", "b"])
    assert [(text, documents.position) for text in documents] == [("a", 1), ("b", 2)]
    assert documents.size == 2


def test_load__json_lines__takes_the_text_field(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        "\n".join(json.dumps({"text": t, "n": 1}) for t in ("one", "", "zwei ü")) + "\n\n"
    )
    assert load_documents(file) == ["one", "", "zwei ü"]


def test_load__another_field__is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        b"\xef\xbb\xbf"
        + b'{"body": "one", "text": "no"}\r\n{"body": "two", "deep": '
        + b"[" * 60
        + b"]" * 60
        + b"}"
    )
    assert load_documents(tmp_path / "a.jsonl", "body") == ["one", "two"]


def test_load__parquet__takes_the_text_column(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(
        arrow.table({"text": ["one", None, "two"], "n": [1, 2, 3]}), tmp_path / "a.parquet"
    )
    assert load_documents(tmp_path / "a.parquet") == ["one", "two"]
    parquet.write_table(arrow.table({"body": ["one"]}), tmp_path / "b.parquet")
    with pytest.raises(DataMissing, match="no column `text`"):
        load_documents(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_text("not parquet at all")
    with pytest.raises(DataMissing, match="not a Parquet file"):
        load_documents(tmp_path / "c.parquet")
    assert load_documents(tmp_path / "b.parquet", "body") == ["one"]
    with pytest.raises(DataMissing, match=r"the column `n` of .* holds int64, not text"):
        load_documents(tmp_path / "a.parquet", "n")


def test_load__parquet_of_many_groups__is_read_piece_by_piece(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = importlib.import_module("pyarrow.parquet")
    texts = [f"text {number}" for number in range(5_000)]
    table = arrow.table({"text": arrow.array(texts, arrow.large_string())})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    assert load_documents(tmp_path / "a.parquet") == texts


def test_load__parquet_without_pyarrow__names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> object:
        raise ImportError(name)

    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(
        DataMissing, match=r"needs pyarrow: install it: pip install 'syntience\[parquet\]'"
    ):
        load_documents(tmp_path / "a.parquet")


def test_load__folder__is_read_in_the_order_of_names_at_all_levels(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "c.txt").write_text("three")
    (tmp_path / "b" / "z.md").write_text("two")
    (tmp_path / "a.TXT").write_text("one")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / ".git" / "hidden.txt").write_text("hidden")
    assert load_documents(tmp_path) == ["one", "two", "three"]


def test_load__missing_path__says_so(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match=r"there is no file or folder .*none: give the path"):
        load_documents(tmp_path / "none")


def test_load__folder_without_texts__says_so(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_text("x")
    with pytest.raises(DataMissing, match="holds no text files"):
        load_documents(tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2 is not JSON"),
        pytest.param("[" * 100_000, "line 2 is not JSON", id="deep"),
        ('{"body": "x"}', "line 2 has no string `text`"),
        ('{"text": 3}', "line 2 has no string `text`"),
        ("[]", "line 2 has no string `text`"),
        (r'{"text": "half \ud83d"}', r"line 2 holds half of a character"),
        ('{"text": 1' + "0" * 5000 + "}", "line 2 is not JSON"),
    ],
)
def test_load__broken_json_line__is_named(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(DataMissing, match=complaint):
        load_documents(tmp_path / "a.jsonl")


def test_load__other_encoding__says_where(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\n<|endoftext|>\n\nsehr grün".encode("latin-1"))
    with pytest.raises(DataMissing, match=r"a\.txt, line 4 is not UTF-8 text \(byte 7\)"):
        load_documents(tmp_path / "a.txt")
    (tmp_path / "a.jsonl").write_bytes('{"text": "one"}\n{"text": "grün"}'.encode("latin-1"))
    with pytest.raises(DataMissing, match=r"a\.jsonl, line 2 is not UTF-8 text \(byte 12\)"):
        load_documents(tmp_path / "a.jsonl")


def test_load__unreadable_file__says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> object:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "a.jsonl"
    file.write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(DataMissing, match=r"can't read .* \(Permission denied\)"):
        load_documents(file)
