"""The data set from strangers: the right one, or another peer is asked."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from node.dataset import offer_dataset, open_dataset
from node.errors import NoDataset
from protocol import canonical, record
from protocol.errors import OperatorError
from tests.node.peers import Peers
from tests.specs import some_hash
from training.dataset import LEAVES, MANIFEST, NODES, SOURCES, TokenDataset
from training.sources import prove_source
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore

TOPIC = "dataset"
Files = dict[str, dict[str, int | str]]


@pytest.fixture
def peers() -> Peers:
    return Peers()


def offered(dataset: TokenDataset, folder: Path, peers: Peers) -> Files:
    """What a validator offers, its blobs to be had from the peers."""
    board, store = RecordBoard(folder / "board"), FolderStore(folder / "blobs", 64 * MIB)
    offer_dataset(dataset, board=board, store=store)
    for digest in store.digests():
        data = store.get(digest)
        assert data is not None
        peers.has(data)
    (record,) = board.records(TOPIC)
    value = canonical.loads(record)
    assert isinstance(value, dict)
    return value


def flipped(dataset: TokenDataset, name: str, peers: Peers) -> dict[str, int | str]:
    """A file of the data set with another first bit."""
    damaged = bytearray((dataset.folder / name).read_bytes())
    damaged[0] ^= 1
    return located(bytes(damaged), peers)


def other_manifest(dataset: TokenDataset, peers: Peers) -> dict[str, int | str]:
    """One that has the run's roots and differs in what no file shows."""
    spec = replace(dataset.spec, name="other")
    return located(canonical.dumps(record.to_json(spec)), peers)


def located(data: bytes, peers: Peers) -> dict[str, int | str]:
    ref = peers.has(data)
    return {"digest": ref.digest.hex(), "size": ref.size}


async def fetch(
    dataset: TokenDataset, folder: Path, peers: Peers, endpoints: list[str]
) -> TokenDataset:
    return await open_dataset(
        dataset.spec,
        folder=folder / "fetched",
        store=FolderStore(folder / "mine", 64 * MIB),
        client=peers,  # type: ignore[arg-type]  # the methods that it uses
        endpoints=endpoints,
    )


async def test_open__nothing_here__fetches_the_same_data_set(
    text: TokenDataset, tmp_path: Path, peers: Peers
) -> None:
    peers.listings["v1", TOPIC] = [canonical.dumps(offered(text, tmp_path, peers))]
    found = await fetch(text, tmp_path, peers, ["silent", "v1"])
    assert found.spec == text.spec
    assert found.sample_bytes(3) == text.sample_bytes(3)
    assert prove_source(found, 3) == prove_source(text, 3)
    for path in text.folder.iterdir():
        assert (found.folder / path.name).read_bytes() == path.read_bytes()
    asked = len(peers.asked)
    again = await fetch(text, tmp_path, peers, [])
    assert again.spec == text.spec
    assert len(peers.asked) == asked, "what is there is not fetched again"


async def test_open__peers_lie__asks_the_next(
    text: TokenDataset, tmp_path: Path, peers: Peers
) -> None:
    true = offered(text, tmp_path, peers)
    shard = flipped(text, "tokens-00000.bin", peers)
    climber: Files = {**true, "../../escaped": true[MANIFEST]}
    lies: dict[str, Files] = {
        "climbs out": climber,
        "damaged shard": {**true, "tokens-00000.bin": shard},
        "other manifest": {**true, MANIFEST: other_manifest(text, peers)},
        "other sources": {**true, SOURCES: flipped(text, SOURCES, peers)},
        "other nodes": {**true, NODES: flipped(text, NODES, peers)},
        "lacks leaves": {name: ref for name, ref in true.items() if name != LEAVES},
        "swapped": {**true, MANIFEST: true[LEAVES]},
        "huge": {**true, MANIFEST: {"digest": some_hash("huge").hex(), "size": 1 << 39}},
        "odd": {**true, MANIFEST: {"digest": "zz", "size": 1}},
    }
    for name, files in lies.items():
        peers.listings[name, TOPIC] = [canonical.dumps(files)]
    peers.listings["junk", TOPIC] = [b"\xff", b"[]"]
    liars = [endpoint for endpoint, _ in peers.listings]
    with pytest.raises(NoDataset):
        await fetch(text, tmp_path, peers, liars)
    assert not (tmp_path / "escaped").exists()
    assert all(ref.size < 1 << 30 for ref in peers.asked)
    peers.listings["honest", TOPIC] = [canonical.dumps(true)]
    assert (await fetch(text, tmp_path, peers, [*liars, "honest"])).spec == text.spec


async def test_open__another_data_set_lies_there__tells_the_operator(
    text: TokenDataset, tmp_path: Path, peers: Peers
) -> None:
    shutil.copytree(text.folder, tmp_path / "fetched")
    other = replace(text.spec, name="another")
    with pytest.raises(OperatorError, match="another data set"):
        await open_dataset(
            other,
            folder=tmp_path / "fetched",
            store=FolderStore(tmp_path / "mine", 64 * MIB),
            client=peers,  # type: ignore[arg-type]
            endpoints=[],
        )
