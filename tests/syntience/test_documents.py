"""The user's own text in its forms, and what is said when it can't be used."""

from __future__ import annotations

import builtins
import importlib
import json
from pathlib import Path

import pytest

from syntience.documents import load_documents
from syntience.errors import DataMissing


def test_load__text_file__is_split_at_the_divider(tmp_path: Path) -> None:
    file = tmp_path / "stories"
    file.write_text("\ufeffone\n<|endoftext|>\ntwo<|endoftext|>  \n<|endoftext|>", encoding="utf-8")
    assert load_documents(file) == ["one\n", "\ntwo"]


def test_load__json_lines__takes_the_text_field(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        "\n".join(json.dumps({"text": t, "n": 1}) for t in ("one", "", "zwei ü")) + "\n\n"
    )
    assert load_documents(file) == ["one", "zwei ü"]


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


def test_load__only_white_space__says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" \n<|endoftext|>\n")
    with pytest.raises(DataMissing, match="holds no text"):
        load_documents(tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2 is not JSON"),
        pytest.param("[" * 100_000, "line 2 is not JSON", id="deep"),
        ('{"body": "x"}', "line 2 has no string `text`"),
        ('{"text": 3}', "line 2 has no string `text`"),
        ("[]", "line 2 has no string `text`"),
    ],
)
def test_load__broken_json_line__is_named(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(DataMissing, match=complaint):
        load_documents(tmp_path / "a.jsonl")


def test_load__other_encoding__says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("grün".encode("latin-1"))
    with pytest.raises(DataMissing, match=r"not UTF-8 text \(byte 2\)"):
        load_documents(tmp_path / "a.txt")


def test_load__unreadable_file__says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> object:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "a.jsonl"
    file.write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(DataMissing, match=r"can't read .* \(Permission denied\)"):
        load_documents(file)
