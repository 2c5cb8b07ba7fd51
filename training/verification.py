"""Whether a data set on disk is, to the byte, the one with a given root."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from protocol.ids import Hash32
from protocol.spec import DataSpec
from training.dataset import DOCUMENTS, REMEDY, SOURCES, TOKENIZER, TokenDataset, read_file
from training.errors import DatasetError
from training.roots import leaf_hashes
from training.watch import Watch, unwatched

_CHUNK = 1 << 16


def verify(folder: Path, root: Hash32 | None = None, *, watch: Watch = unwatched) -> TokenDataset:
    """Opens a data set and hashes all of it.

    Args:
        folder: where it lies.
        root: of the run; by default the one in the manifest.
        watch: told of the samples done.

    Raises:
        DatasetError: it is not exactly the one with this root, or its sources contradict each other.
    """
    dataset = TokenDataset.open(folder)
    if root is not None and dataset.root != root:
        raise DatasetError(
            f"{folder} holds the data set {dataset.root.hex()}, the run wants {root.hex()}",
            "point --data to the run's text, prepared with the run's tokenizer settings",
        )
    _check_samples(dataset, watch)
    tokenizer = hashlib.sha256(read_file(folder / TOKENIZER)).digest()
    if tokenizer != dataset.spec.tokenizer_digest:
        raise DatasetError(f"{folder / TOKENIZER} is not the tokenizer of its manifest", REMEDY)
    if dataset.documents.root != dataset.spec.documents_root:
        raise DatasetError(f"{folder / DOCUMENTS} is damaged", REMEDY)
    if dataset.sources.root != dataset.spec.sources_root:
        raise DatasetError(f"{folder / SOURCES} is damaged", REMEDY)
    _check_sources(dataset)
    return dataset


def verify_spec(folder: Path, spec: DataSpec, *, watch: Watch = unwatched) -> TokenDataset:
    """The same for a data set that a run's spec describes in full; raises DatasetError."""
    found = TokenDataset.open(folder).spec
    if found != spec:
        raise DatasetError(
            f"{folder} holds the data set {found.dataset_root.hex()}, the run wants {spec.dataset_root.hex()}",
            "point --data to the run's text, prepared with the run's tokenizer settings",
        )
    return verify(folder, spec.dataset_root, watch=watch)


def _check_samples(dataset: TokenDataset, watch: Watch) -> None:
    size, total = dataset.spec.sample_tokens * dataset.spec.token_bytes, dataset.total_samples
    for first, block, expected in dataset.blocks():
        watch("verify", first, total)
        found = leaf_hashes(block[i : i + size] for i in range(0, len(block), size))
        if found != expected:
            index = first + [a == b for a, b in zip(found, expected, strict=True)].index(False)
            raise DatasetError(f"sample {index} in {dataset.folder} is damaged", REMEDY)
    watch("verify", total, total)


def _check_sources(dataset: TokenDataset) -> None:
    """Documents follow each other, and the samples are all the whole pieces of the stream, each once."""
    spec = dataset.spec
    documents, sources = dataset.documents.records, dataset.sources.records
    _require(int(documents[0]["start"]) == 0, spec)
    for first in range(0, spec.documents, _CHUNK):
        starts = documents["start"][first : first + _CHUNK + 1].astype(np.int64)
        _require(bool((np.diff(starts) > 0).all()), spec)
    seen = np.zeros(spec.total_samples, np.bool_)
    for first in range(0, spec.total_samples, _CHUNK):
        chunk = sources[first : first + _CHUNK]
        number = chunk["document"]
        _require(bool((number < spec.documents).all()), spec)
        place = documents["start"][number] + chunk["offset"]
        after = np.minimum(number + np.uint64(1), np.uint64(spec.documents - 1))
        inside = (place < documents["start"][after]) | (after == number)
        piece, rest = np.divmod(place, np.uint64(spec.sample_tokens))
        _require(bool((inside & (rest == 0) & (piece < spec.total_samples)).all()), spec)
        seen[piece] = True
    _require(bool(seen.all()), spec)


def _require(holds: bool, spec: DataSpec) -> None:
    if not holds:
        raise DatasetError(
            f"the sources of the data set {spec.name!r} contradict each other",
            "whoever prepared it did it wrong: ask for another one",
        )
