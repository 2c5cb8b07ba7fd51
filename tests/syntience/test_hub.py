"""Data sets of Hugging Face: saved folders, and names that `load_dataset` takes (here of folders, so that no network is needed)."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from syntience.documents import open_documents
from syntience.errors import DataMissing

TEXTS = ["one", None, "zwei ü", *(f"more {number}" for number in range(3_000))]
KEPT = [text for text in TEXTS if text is not None]


@pytest.fixture(scope="module")
def datasets() -> Any:
    return pytest.importorskip("datasets", reason="the extra `datasets` is not installed")


@pytest.fixture(scope="module")
def saved(datasets: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "tales"
    rows = {"text": TEXTS, "n": list(range(len(TEXTS)))}
    datasets.Dataset.from_dict(rows).save_to_disk(str(folder))
    return folder


def test_open__saved_folder__gives_its_column(saved: Path, tmp_path: Path) -> None:
    documents = open_documents(saved, cache_dir=tmp_path)
    assert list(documents) == KEPT
    assert list(documents) == KEPT
    assert (documents.name, documents.size, documents.position) == (
        "tales",
        len(TEXTS),
        len(TEXTS),
    )


@pytest.mark.parametrize(
    ("field", "complaint"),
    [("body", r"no column `body`, only n, text: .*--field"), ("n", r"holds int64, not text")],
)
def test_open__wrong_column__says_so(
    saved: Path, tmp_path: Path, field: str, complaint: str
) -> None:
    with pytest.raises(DataMissing, match=complaint):
        open_documents(saved, field=field, cache_dir=tmp_path)


def test_open__saved_splits__asks_for_one(datasets: Any, saved: Path, tmp_path: Path) -> None:
    splits = datasets.DatasetDict({"train": datasets.load_from_disk(str(saved))})
    splits.save_to_disk(str(tmp_path / "splits"))
    with pytest.raises(DataMissing, match=r"several splits: .*--data .*/splits/train"):
        open_documents(tmp_path / "splits", cache_dir=tmp_path)
    assert list(open_documents(tmp_path / "splits" / "train", cache_dir=tmp_path)) == KEPT


def test_open__damaged_folder__says_so(saved: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    folder.mkdir()
    for path in saved.iterdir():
        data = path.read_bytes()
        (folder / path.name).write_bytes(data if path.suffix == ".json" else data[:100])
    with pytest.raises(DataMissing, match="can't read the data set in"):
        list(open_documents(folder, cache_dir=tmp_path))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the hub would serve: a folder of data files."""
    folder = tmp_path_factory.mktemp("named") / "stories"
    folder.mkdir()
    for split, texts in (("train", KEPT), ("test", KEPT[:3])):
        lines = (json.dumps({"text": text}) + "\n" for text in texts)
        (folder / f"{split}.jsonl").write_text("".join(lines))
    return folder


def test_open__name_and_split__is_loaded(datasets: Any, named: Path, tmp_path: Path) -> None:
    documents = open_documents(f"hf:{named}:train", cache_dir=tmp_path)
    assert list(documents) == KEPT
    assert documents.name == "stories"
    first = open_documents(Path(f"hf:{named}:default:test[:2]"), cache_dir=tmp_path)
    assert list(first) == KEPT[:2]


@pytest.mark.parametrize(
    ("rest", "complaint"),
    [
        ("", "names no split: write hf:NAME:SPLIT"),
        (":a:b:c", "names no split"),
        (":valid", "can't load .*: check the name, the split"),
        (":other:train", "can't load"),
    ],
)
def test_open__no_such_split__says_so(
    datasets: Any, named: Path, tmp_path: Path, rest: str, complaint: str
) -> None:
    with pytest.raises(DataMissing, match=complaint):
        open_documents(f"hf:{named}{rest}", cache_dir=tmp_path)


def test_open__no_such_folder__says_so(datasets: Any, tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="can't load"):
        open_documents(f"hf:{tmp_path}/none:train", cache_dir=tmp_path)


def test_open__library_is_missing__names_the_extra(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    for place in (str(saved), "hf:some/name:train"):
        with pytest.raises(
            DataMissing, match=r"needs the library datasets: .*pip install 'syntience\[datasets\]'"
        ):
            open_documents(place, cache_dir=tmp_path)
