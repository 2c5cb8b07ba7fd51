"""The run's data set on this node: opened where it lies, or fetched from validators by digest.

The run's spec names the Merkle root over all samples, so it does not matter who delivers.
"""

from __future__ import annotations

import asyncio
import logging
import re
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
from training.dataset import LEAVES, MANIFEST, TOKENIZER, TokenDataset, verify
from transport.board import RecordBoard
from transport.client import PeerClient
from transport.store import FolderStore

logger = logging.getLogger(__name__)

_TOPIC = "dataset"
_KEY = "files"
_LEAF_BYTES = 32
_TEXT_ALLOWANCE = 64 << 20
"""For tokenizer and manifest, whose sizes the spec does not tell."""
_SHARD = re.compile(r"tokens-[0-9]{5}\.bin", re.ASCII)


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
    for path in sorted(dataset.folder.iterdir()):
        if _is_ours(path.name):
            ref = store.put(path.read_bytes())
            store.pin(ref.digest)
            files[path.name] = {"digest": ref.digest.hex(), "size": ref.size}
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
        data = store.get(ref.digest)
        if data is None:
            raise Rejected(f"{name} was damaged on disk")
        (partial / name).write_bytes(data)
    verify(partial, spec.dataset_root)
    partial.rename(folder)


def _parse(record: bytes, spec: DataSpec) -> dict[str, BlobRef]:
    """File names and locators of a data set record; raises `Rejected`."""
    value = canonical.loads(record)
    if not isinstance(value, Mapping):
        raise Rejected("not a data set record")
    files: dict[str, BlobRef] = {}
    for name, ref in value.items():
        match ref:
            case {"digest": str(digest), "size": int(size)} if _is_ours(name):
                files[name] = BlobRef(digest=to_hash32(digest), size=size)
            case _:
                raise Rejected(f"not a file of a data set: {name!r}")
    needed = spec.total_samples * (spec.sample_tokens * spec.token_bytes + _LEAF_BYTES)
    if sum(ref.size for ref in files.values()) > needed + _TEXT_ALLOWANCE:
        raise Rejected("more bytes than the data set has")
    return files


def _is_ours(name: str) -> bool:
    return name in (LEAVES, MANIFEST, TOKENIZER) or _SHARD.fullmatch(name) is not None
