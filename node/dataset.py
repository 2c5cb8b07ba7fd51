"""The run's data set on this node: opened where it lies, or fetched from validators by digest.

The run's spec names the Merkle root over all samples, so it does not matter who delivers.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from node.errors import NoDataset
from protocol import canonical
from protocol.beacon import Draw
from protocol.errors import OperatorError, Rejected, Retryable
from protocol.ids import to_hash32
from protocol.spec import DataSpec
from protocol.submission import BlobRef
from training.dataset import MANIFEST, TOKENIZER, TokenDataset, file_sizes
from training.verification import verify_spec
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.errors import BlobMissing
from transport.store import FolderStore

logger = logging.getLogger(__name__)

_TOPIC = "dataset"
_KEY = "files"
_TEXT_ALLOWANCE = 64 << 20
"""For tokenizer and manifest each, whose sizes the spec does not tell."""


async def open_dataset(
    spec: DataSpec,
    *,
    folder: Path,
    store: FolderStore,
    client: PeerClient,
    endpoints: Sequence[str],
) -> TokenDataset:
    """Opens the data set in ``folder``; if there is none, fetches it there first.

    Raises:
        OperatorError: another data set lies there.
        NoDataset: it is not there and nobody delivers it just now.
    """
    if not (folder / MANIFEST).exists():
        await _fetch(spec, folder, store=store, client=client, endpoints=endpoints)
    dataset = await asyncio.to_thread(TokenDataset.open, folder)
    if dataset.spec != spec:
        raise OperatorError(
            f"{folder} holds another data set than the run's",
            "give the right --data, or leave it out to fetch the run's from its validators",
        )
    return dataset


def offer_dataset(dataset: TokenDataset, *, board: RecordBoard, store: FolderStore) -> None:
    """Puts the data set's files among the blobs, for joiners to fetch."""
    files: dict[str, canonical.Json] = {}
    for name in _most_sizes(dataset.spec):
        ref = store.put_file(dataset.folder / name)
        store.pin(ref.digest)
        files[name] = {"digest": ref.digest.hex(), "size": ref.size}
    board.put(_TOPIC, _KEY, canonical.dumps(files))


async def _fetch(
    spec: DataSpec,
    folder: Path,
    *,
    store: FolderStore,
    client: PeerClient,
    endpoints: Sequence[str],
) -> None:
    for endpoint in client.trust.order(endpoints, Draw(spec.dataset_root)):
        try:
            for record in await client.fetch_records(endpoint, _TOPIC):
                files = _parse(record, spec)
                for ref in files.values():
                    await client.fetch_blob(ref, [endpoint, *endpoints], store)
                await asyncio.to_thread(_assemble, spec, folder, files, store)
                return
        except (Retryable, Rejected, OperatorError) as error:
            logger.warning("no data set from %s: %s", endpoint, error)
    raise NoDataset("none of the run's validators delivers the data set just now")


def _assemble(
    spec: DataSpec, folder: Path, files: Mapping[str, BlobRef], store: FolderStore
) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, ref in files.items():
        try:
            with (partial / name).open("wb") as file:
                for chunk in store.stream(ref.digest):
                    file.write(chunk)
        except BlobMissing as error:
            raise Rejected(f"{name} was damaged on disk") from error
    verify_spec(partial, spec)
    partial.rename(folder)


def _parse(record: bytes, spec: DataSpec) -> dict[str, BlobRef]:
    """File names and locators of a data set record; raises `Rejected`."""
    value = canonical.loads(record)
    if not isinstance(value, Mapping):
        raise Rejected("not a data set record")
    files: dict[str, BlobRef] = {}
    most = _most_sizes(spec)
    for name, ref in value.items():
        match ref:
            case {"digest": str(digest), "size": int(size)} if name in most:
                files[name] = BlobRef(digest=to_hash32(digest), size=size)
            case _:
                raise Rejected(f"not a file of the data set: {name!r}")
        if size > most[name]:
            raise Rejected(f"{name} has more bytes than it should")
    if files.keys() != most.keys():
        raise Rejected("files of the data set are missing")
    return files


def _most_sizes(spec: DataSpec) -> dict[str, int]:
    """Every file of the data set, and the most bytes that it has."""
    return {**file_sizes(spec), MANIFEST: _TEXT_ALLOWANCE, TOKENIZER: _TEXT_ALLOWANCE}
