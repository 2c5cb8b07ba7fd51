"""Data preparation: the same bytes everywhere, proofs that hold, and damage that is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from protocol.ids import Hash32
from protocol.merkle import leaf_hash, merkle_root, verify_proof
from tests.specs import MODEL, some_hash
from tests.training.texts import contents, documents, prepared
from training.dataset import TokenDataset
from training.errors import DatasetError
from training.prepare import prepare_dataset
from training.tokenizer import END_OF_TEXT, load_tokenizer
from training.verification import verify


def leaf_hashes(dataset: TokenDataset) -> list[Hash32]:
    return [dataset.leaf_hash(index) for index in range(dataset.total_samples)]


def test_prepare__twice__gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = prepared(tmp_path / "a"), prepared(tmp_path / "b")
    assert first == second
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_prepare__known_text__has_the_known_root(tmp_path: Path) -> None:
    """A change here changes the root of every run's data: only with a new major version of the data format."""
    assert prepared(tmp_path / "a").dataset_root.hex() == ROOT


@pytest.mark.parametrize("threads", ["1", "3"])
def test_prepare__other_process_and_threads__gives_the_same_root(
    tmp_path: Path, threads: str
) -> None:
    code = (
        "import sys, pathlib\n"
        "from tests.training.texts import prepared\n"
        "print(prepared(pathlib.Path(sys.argv[1])).dataset_root.hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a")],
        env={"RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": threads, "PYTHONPATH": "."},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ROOT


def test_prepare__other_seed__shuffles_the_same_samples(tmp_path: Path) -> None:
    prepared(tmp_path / "a", seed=1)
    prepared(tmp_path / "b", seed=2)
    a, b = TokenDataset.open(tmp_path / "a"), TokenDataset.open(tmp_path / "b")
    assert a.root != b.root
    assert sorted(leaf_hashes(a)) == sorted(leaf_hashes(b))


def test_prepare__tokens__decode_to_the_text(tmp_path: Path) -> None:
    prepared(tmp_path / "a")
    dataset = TokenDataset.open(tmp_path / "a")
    tokenizer = load_tokenizer(dataset)
    text = documents()[0]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.token_to_id(END_OF_TEXT) == 0
    everything = tokenizer.decode(dataset.sample(0).tolist())
    whole = "".join(documents())
    # A sample may start inside a character or hold an end of text: compare what lies between.
    assert any(part in whole for part in (everything[4:-4], everything[4:24], everything[-24:-4]))


def test_dataset__samples__match_leaves_root_and_proofs(tmp_path: Path) -> None:
    spec = prepared(tmp_path / "a")
    dataset = TokenDataset.open(tmp_path / "a")
    assert dataset.spec == spec
    assert dataset.total_samples - dataset.train_samples == int(dataset.total_samples * 0.2)
    assert merkle_root(leaf_hashes(dataset)) == dataset.root == spec.dataset_root
    for index in range(dataset.total_samples):
        sample = dataset.sample(index)
        assert sample.shape == (MODEL.context + 1,)
        assert sample.max() < 300
        data = sample.astype("<u2").tobytes()
        assert leaf_hash(data) == dataset.leaf_hash(index)
        assert verify_proof(
            root=dataset.root,
            leaf=dataset.leaf_hash(index),
            index=index,
            proof=dataset.proof(index),
            depth=dataset.depth,
        )
    picked = dataset.samples([3, 0, 3])
    assert np.array_equal(picked, np.stack([dataset.sample(i) for i in (3, 0, 3)]))
    assert dataset.samples([]).shape == (0, MODEL.context + 1)


@pytest.mark.parametrize("index", [-1, 10_000_000])
def test_dataset__index_out_of_range__raises_index_error(tmp_path: Path, index: int) -> None:
    prepared(tmp_path / "a")
    dataset = TokenDataset.open(tmp_path / "a")
    for access in (dataset.sample, dataset.leaf_hash, dataset.proof):
        with pytest.raises(IndexError):
            access(index)


def test_dataset__several_shards__reads_across_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path / "a")
    one = TokenDataset.open(tmp_path / "a")
    expected = one.samples(range(one.total_samples))
    for module in ("training.dataset", "training.samples"):
        monkeypatch.setattr(f"{module}.SHARD_SAMPLES", 10)
    prepared(tmp_path / "b")
    many = TokenDataset.open(tmp_path / "b")
    assert len(list((tmp_path / "b").glob("tokens-*.bin"))) > 2
    assert many.root == one.root
    assert np.array_equal(many.samples(range(many.total_samples)), expected)


def test_prepare__large_vocabulary__stores_four_bytes(tmp_path: Path) -> None:
    spec = prepare_dataset(documents(), tmp_path / "a", vocab_size=70_000, context=16)
    assert spec.token_bytes == 4
    dataset = verify(tmp_path / "a", spec.dataset_root)
    assert leaf_hash(dataset.sample(1).astype("<u4").tobytes()) == dataset.leaf_hash(1)


def test_verify__intact__returns_the_dataset(tmp_path: Path) -> None:
    spec = prepared(tmp_path / "a")
    assert verify(tmp_path / "a", spec.dataset_root).root == spec.dataset_root


def test_verify__other_root__raises_dataset_error(tmp_path: Path) -> None:
    prepared(tmp_path / "a")
    with pytest.raises(DatasetError, match="the run wants"):
        verify(tmp_path / "a", some_hash("other"))


@pytest.mark.parametrize(
    "name",
    [
        "tokens-00000.bin",
        "leaves.bin",
        "nodes.bin",
        "sources.bin",
        "documents.bin",
        "manifest.json",
        "tokenizer.json",
    ],
)
@pytest.mark.parametrize("damage", ["flip", "cut", "gone"])
def test_verify__damaged_file__raises_dataset_error(tmp_path: Path, name: str, damage: str) -> None:
    root = prepared(tmp_path / "a").dataset_root
    path = tmp_path / "a" / name
    data = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        data[len(data) // 2] ^= 1
        path.write_bytes(data if damage == "flip" else data[:-1])
    with pytest.raises(DatasetError):
        verify(tmp_path / "a", root)


def test_open__no_folder__says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="prepare"):
        TokenDataset.open(tmp_path / "nothing")


def test_prepare__existing_folder__raises_dataset_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="exists"):
        prepared(tmp_path)


def test_prepare__no_place_for_the_folder__raises_dataset_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(DatasetError, match="can't write"):
        prepared(tmp_path / "file" / "set")


@pytest.mark.parametrize("texts", [[], ["", "  \n"], ["short"]])
def test_prepare__too_little_text__raises_dataset_error_and_leaves_nothing(
    tmp_path: Path, texts: list[str]
) -> None:
    with pytest.raises(DatasetError, match="more text"):
        prepare_dataset(texts, tmp_path / "a", vocab_size=300, context=16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("vocab_size", "context", "fraction"),
    [(256, 16, 0.1), (300, 0, 0.1), (300, 16, 0.0), (300, 16, 1.0)],
)
def test_prepare__impossible_settings__raises_dataset_error(
    tmp_path: Path, vocab_size: int, context: int, fraction: float
) -> None:
    with pytest.raises(DatasetError):
        prepare_dataset(
            documents(),
            tmp_path / "a",
            vocab_size=vocab_size,
            context=context,
            heldout_fraction=fraction,
        )


ROOT = "dd72283f3cf7e46709cfeff2cb151221c70219d85af6e779c8ec4737f9ea9520"
