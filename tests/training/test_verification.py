"""A data set whose roots hold and whose sources are still wrong, and one larger than memory should hold."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from protocol import canonical, record
from protocol.merkle import leaf_hash, verify_proof
from tests.specs import some_hash
from tests.training.texts import prepared
from training.dataset import DOCUMENTS, MANIFEST, SOURCES, TokenDataset, file_sizes, read_manifest
from training.errors import DatasetError
from training.samples import Cut, Text, write_samples
from training.sources import DOCUMENT, DOCUMENTS_PER_LEAF, SOURCE, SOURCES_PER_LEAF
from training.trees import RecordTree
from training.verification import verify, verify_spec
from training.watch import unwatched

MILLION = 1_000_000


def rewritten(folder: Path) -> None:
    """Gives the manifest the roots of the files as they are: what a liar would publish."""
    sources = RecordTree(folder / SOURCES, SOURCE, per_leaf=SOURCES_PER_LEAF).root
    documents = RecordTree(folder / DOCUMENTS, DOCUMENT, per_leaf=DOCUMENTS_PER_LEAF).root
    spec = replace(read_manifest(folder), sources_root=sources, documents_root=documents)
    (folder / MANIFEST).write_bytes(canonical.dumps(record.to_json(spec)))


def test_verify__honest__tells_how_far_it_is(tmp_path: Path) -> None:
    spec = prepared(tmp_path / "a")
    seen: list[tuple[str, int, int | None]] = []
    verify(tmp_path / "a", watch=lambda *step: seen.append(step))
    assert seen[-1] == ("verify", spec.total_samples, spec.total_samples)
    assert verify_spec(tmp_path / "a", spec).spec == spec


def test_verify_spec__only_the_name_differs__is_refused(tmp_path: Path) -> None:
    spec = prepared(tmp_path / "a")
    with pytest.raises(DatasetError, match="the run wants"):
        verify_spec(tmp_path / "a", replace(spec, name="other"))


def twice(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    sources[3] = sources[4]


def far_document(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    sources["document"][3] = len(documents)


def off_the_grid(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    sources["offset"][3] += 1


def far_token(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    sources["offset"][sources["document"] < len(documents) - 1] += 17 * 1000


def late_start(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    documents["start"] += 17


def equal_starts(sources: NDArray[np.void], documents: NDArray[np.void]) -> None:
    documents["start"][2] = documents["start"][1]


@pytest.mark.parametrize(
    "lie", [twice, far_document, off_the_grid, far_token, late_start, equal_starts]
)
def test_verify__sources_that_contradict_each_other__are_found(
    tmp_path: Path, lie: Callable[[NDArray[np.void], NDArray[np.void]], None]
) -> None:
    prepared(tmp_path / "a")
    sources = np.fromfile(tmp_path / "a" / SOURCES, SOURCE)
    documents = np.fromfile(tmp_path / "a" / DOCUMENTS, DOCUMENT)
    lie(sources, documents)
    sources.tofile(tmp_path / "a" / SOURCES)
    documents.tofile(tmp_path / "a" / DOCUMENTS)
    rewritten(tmp_path / "a")
    with pytest.raises(DatasetError, match="contradict each other"):
        verify(tmp_path / "a")


@pytest.mark.parametrize(
    "change",
    [
        {"token_bytes": 3},
        {"sample_tokens": 1},
        {"documents": 0},
        {"train_samples": 0},
        {"total_samples": 1},
    ],
)
def test_open__impossible_manifest__says_so(tmp_path: Path, change: dict[str, int]) -> None:
    prepared(tmp_path / "a")
    path = tmp_path / "a" / MANIFEST
    value = json.loads(path.read_text()) | change
    path.write_bytes(canonical.dumps(value))
    with pytest.raises(DatasetError, match="impossible values"):
        TokenDataset.open(tmp_path / "a")


def test_file_sizes__a_data_set__are_those_on_disk(tmp_path: Path) -> None:
    spec = prepared(tmp_path / "a")
    for name, size in file_sizes(spec).items():
        assert (tmp_path / "a" / name).stat().st_size == size


CUT = Cut(name="synthetic", context=1, heldout_fraction=0.1, seed=1)


def synthetic_text(folder: Path, samples: int) -> Text:
    """A stream of so many samples of two tokens in a thousand documents; each token is the place that it stands in."""
    starts = np.arange(0, 2 * samples, samples // 500, dtype="<u8")
    documents = np.zeros(len(starts), DOCUMENT)
    documents["start"] = starts
    folder.mkdir()
    documents.tofile(folder / "documents")
    np.arange(2 * samples, dtype="<u4").tofile(folder / "tokens")
    return Text(
        tokens=np.memmap(folder / "tokens", "<u4", mode="r"),
        starts=starts,
        documents_file=folder / "documents",
        tokenizer=b"{}",
        end_token=0,
    )


def test_write_samples__many__takes_memory_of_one_shard(tmp_path: Path) -> None:
    few, many = tmp_path / "few", tmp_path / "many"
    peaks = []
    for folder, samples in ((few, 70_000), (many, 210_000)):
        text = synthetic_text(folder, samples)
        tracemalloc.start()
        try:
            write_samples(text, CUT, folder / "set", watch=unwatched)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[0] < 8 * MILLION
    assert peaks[1] < 1.1 * peaks[0]


def test_dataset__two_million_samples__are_opened_sampled_and_proven_in_little_memory(
    tmp_path: Path,
) -> None:
    total = 2 * MILLION
    text, folder = synthetic_text(tmp_path / "a", total), tmp_path / "a" / "set"
    write_samples(text, CUT, folder, watch=unwatched)
    chosen = np.random.default_rng(1).integers(0, total, 2_000).tolist()
    tracemalloc.start()
    try:
        dataset = TokenDataset.open(folder)
        rows = dataset.samples(chosen)
        leaves = [dataset.leaf_hash(index) for index in chosen[:200]]
        proofs = [dataset.proof(index) for index in chosen[:20]]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * MILLION, "the leaf hashes alone are 64 MB"
    assert np.array_equal(rows[:, 1], rows[:, 0] + 1)
    for index, leaf, row in zip(chosen, leaves, rows, strict=False):
        assert leaf == leaf_hash(row.astype("<u4").tobytes())
        if proofs:
            assert verify_proof(
                root=dataset.root, leaf=leaf, index=index, proof=proofs.pop(0), depth=dataset.depth
            )


def test_open__nodes_of_another_tree__says_so(tmp_path: Path) -> None:
    prepared(tmp_path / "a")
    (tmp_path / "a" / "nodes.bin").write_bytes(some_hash("other"))
    with pytest.raises(DatasetError, match="don't give the root"):
        TokenDataset.open(tmp_path / "a")
