"""`syntience data` end to end: prepare from any text, verify, and prove a sample's source to who has only the document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from protocol.spec import DataSpec
from syntience.cli.app import run
from tests.syntience.town import small_spec
from training.dataset import TokenDataset, read_manifest
from training.sources import passages

Say = Callable[..., str]
TALES = [
    f"Tale {n}: once upon a time there was a cat that counted {n} boats. " * (1 + n % 4)
    for n in range(60)
]


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Say:
    """What `syntience data …` prints; an error's line if it fails."""

    def call(*words: object) -> str:
        capsys.readouterr()
        status = run(["data", *map(str, words)])
        out, err = capsys.readouterr()
        assert (status == 0) == (err == ""), err
        return out or err

    return call


@pytest.fixture
def dataset(tmp_path: Path, says: Say) -> Path:
    lines = (json.dumps({"body": tale}) + "\n" for tale in TALES)
    (tmp_path / "tales.jsonl").write_text("".join(lines))
    out = tmp_path / "set"
    says(
        "prepare", out, "--data", tmp_path / "tales.jsonl", "--field", "body",
        "--vocab", 300, "--context", 16, "--workers", 2,
    )  # fmt: skip
    return out


def test_prepare__given_tokenizer__gives_the_same_set(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    other = tmp_path / "other"
    shown = says(
        "prepare", other, "--data", tmp_path / "tales.jsonl", "--field", "body",
        "--tokenizer", dataset / "tokenizer.json", "--end-token", "<|endoftext|>",
        "--context", 16, "--workers", 1,
    )  # fmt: skip
    assert "documents     60" in shown
    assert read_manifest(other) == read_manifest(dataset)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--tokenizer", "x", "--vocab", "300"], "--vocab is for a tokenizer to train"),
        (["--end-token", "x"], "--end-token is for a tokenizer that is given"),
        (["--tokenizer", "none.json"], "can't read none.json"),
        (["--data", "hf:name"], "hf:name names no split"),
    ],
)
def test_prepare__flags_that_don_t_fit__are_one_line(
    tmp_path: Path, says: Say, flags: list[str], complaint: str
) -> None:
    (tmp_path / "a.txt").write_text("text")
    line = says("prepare", tmp_path / "set", "--data", tmp_path / "a.txt", *flags)
    assert line.startswith(f"error: {complaint}")
    assert not (tmp_path / "set").exists()


def test_verify__intact__says_so_for_manifest_root_and_run(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    root = read_manifest(dataset).dataset_root.hex()
    assert "intact        as its manifest says" in says("verify", dataset)
    assert f"as 0x{root} says" in says("verify", dataset, "--root", f"0x{root}")
    spec = small_spec(tmp_path / "town")
    (tmp_path / "spec.json").write_bytes(spec.to_bytes())
    shown = says("verify", tmp_path / "town", "--run", tmp_path / "spec.json")
    assert re.search(r"hashed        \d+\.\d MB of tokens in \d+\.\d s", shown)
    assert "the run wants" in says("verify", dataset, "--run", tmp_path / "spec.json")


def test_verify__other_root_or_damage__says_so(dataset: Path, says: Say) -> None:
    assert "the run wants" in says("verify", dataset, "--root", "00" * 32)
    assert "--root is no root" in says("verify", dataset, "--root", "0xzz")
    path = dataset / "tokens-00000.bin"
    data = bytearray(path.read_bytes())
    data[34 * 5] ^= 1
    path.write_bytes(data)
    assert "sample 5 in" in says("verify", dataset)


def text_file(folder: Path, number: int) -> Path:
    path = folder / f"document-{number}"
    path.write_bytes(TALES[number].encode())
    return path


def index_across(dataset: Path, documents: int) -> int:
    opened = TokenDataset.open(dataset)
    return next(i for i in range(opened.total_samples) if len(passages(opened, i)) == documents)


def test_source__a_sample__names_its_documents(dataset: Path, says: Say) -> None:
    index = index_across(dataset, 2)
    lines = says("source", dataset, index).splitlines()
    assert lines[0] == f"sample {index} of tales, 17 tokens:"
    found = re.fullmatch(
        r"  tokens 0-(\d+): document (\d+) from its token \d+ on, sha256 (\w+)", lines[1]
    )
    assert found is not None
    assert found[3] == sha256(TALES[int(found[2])].encode()).hexdigest()
    assert lines[2].startswith(f"  tokens {int(found[1]) + 1}-16: document {int(found[2]) + 1} ")


def test_check_source__document_alone__proves_the_whole_sample(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    index = index_across(dataset, 1)
    proof = tmp_path / "proof.json"
    proof.write_text(says("source", dataset, index, "--json"))
    number = json.loads(proof.read_text())["first_document"]
    shown = says(
        "check-source", proof, "--document", text_file(tmp_path, number),
        "--tokenizer", dataset / "tokenizer.json", "--manifest", dataset / "manifest.json",
    )  # fmt: skip
    assert "proven" in shown
    assert shown.endswith("the whole sample comes from the given documents\n")


def test_check_source__one_of_two_documents__proves_its_part(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    proof = tmp_path / "proof.json"
    proof.write_text(says("source", dataset, index_across(dataset, 2), "--json"))
    number = json.loads(proof.read_text())["first_document"]
    against = ("--tokenizer", dataset / "tokenizer.json", "--manifest", dataset / "manifest.json")
    second = says("check-source", proof, "--document", text_file(tmp_path, number + 1), *against)
    first_line, second_line, summary = second.splitlines()[1:]
    assert first_line.endswith("its document was not given")
    assert second_line.endswith("proven")
    found = re.search(r"tokens (\d+)-16", second_line)
    assert found is not None
    assert summary.startswith(f"{17 - int(found[1])} of its tokens are proven")
    both = says(
        "check-source", proof, "--document", text_file(tmp_path, number),
        "--document", text_file(tmp_path, number + 1), *against,
    )  # fmt: skip
    assert "the whole sample" in both


def test_check_source__what_does_not_hold__is_one_line(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    proof = tmp_path / "proof.json"
    proof.write_text(says("source", dataset, index_across(dataset, 1), "--json"))
    number = json.loads(proof.read_text())["first_document"]
    document, words = text_file(tmp_path, number), dataset / "tokenizer.json"
    spec = tmp_path / "spec.json"
    spec.write_bytes(small_spec(tmp_path / "town").to_bytes())

    def check(**changes: object) -> str:
        flags = {
            "document": document,
            "tokenizer": words,
            "manifest": dataset / "manifest.json",
            **changes,
        }
        given = [f"--{name}={value}" for name, value in flags.items() if value is not None]
        return says("check-source", changes.get("proof", proof), *given)

    wrong = text_file(tmp_path, (number + 1) % 60)
    assert "is none of those" in check(document=wrong)
    document_with_more = tmp_path / "more"
    document_with_more.write_bytes(document.read_bytes() + b"\n")
    assert "is none of those" in check(document=document_with_more)
    assert "is not the data set's tokenizer" in check(tokenizer=document)
    assert "give either --run FILE or --manifest FILE" in check(manifest=None)
    assert "not the data set's tokenizer" in check(manifest=None, run=spec)
    assert "can't read" in check(document=tmp_path / "none")
    (tmp_path / "latin").write_bytes("grün".encode("latin-1"))
    assert "is not UTF-8 text (byte 2)" in check(document=tmp_path / "latin")


def test_check_source__no_proof__says_how_to_get_one(
    dataset: Path, tmp_path: Path, says: Say
) -> None:
    line = says(
        "check-source", dataset / "tokenizer.json", "--document", dataset / "tokenizer.json",
        "--tokenizer", dataset / "tokenizer.json", "--manifest", dataset / "manifest.json",
    )  # fmt: skip
    assert "is no proof of a sample's source" in line
    assert "syntience data source DATASET INDEX --json" in line


@pytest.mark.parametrize("index", ["-1", "100000"])
def test_source__no_such_sample__says_so(dataset: Path, says: Say, index: str) -> None:
    assert f"there is no sample {index}" in says("source", dataset, "--", index)


def test_manifest__roots__stand_in_the_run_s_spec_hash(tmp_path: Path) -> None:
    spec = small_spec(tmp_path / "town")
    data: DataSpec = read_manifest(tmp_path / "town")
    assert spec.data == data
    for value in (data.dataset_root, data.sources_root, data.documents_root):
        assert value.hex().encode() in spec.to_bytes()
