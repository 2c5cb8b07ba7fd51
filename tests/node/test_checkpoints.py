"""Models on disk and from strangers: believed only under their root."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from node.checkpoints import Checkpoints
from node.errors import NoCheckpoint
from protocol import canonical
from protocol.hashing import sha256
from protocol.ids import Hash32, Round
from tests.bench import Desk, desk_over
from tests.node.peers import Peers
from tests.specs import some_hash
from training.dataset import TokenDataset
from training.parameters import Parameters, initial_parameters, to_blob
from training.roots import state_root
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore

KEEP = 3


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture
def peers() -> Peers:
    return Peers()


class Shelf:
    """Checkpoints over a folder, with the parts that they are kept in."""

    def __init__(self, desk: Desk, folder: Path, peers: Peers) -> None:
        self.board = RecordBoard(folder / "board")
        self.store = FolderStore(folder / "blobs", 64 * MIB)
        self.checkpoints = Checkpoints(
            spec=desk.spec,
            board=self.board,
            store=self.store,
            client=peers,  # type: ignore[arg-type]  # the methods that checkpoints use
            keep=KEEP,
        )


@pytest.fixture
def shelf(desk: Desk, tmp_path: Path, peers: Peers) -> Shelf:
    return Shelf(desk, tmp_path, peers)


def model(desk: Desk, number: int) -> tuple[Hash32, Parameters]:
    """Distinct models by number."""
    params = initial_parameters(desk.spec.model)
    params["model.norm.weight"] = params["model.norm.weight"] + np.float32(number)
    return state_root(params), params


def save(shelf: Shelf, desk: Desk, round_: int, number: int | None = None) -> Hash32:
    root, params = model(desk, round_ if number is None else number)
    shelf.checkpoints.save(Round(round_), root, params)
    return root


def test_newest__several_saved__is_the_last_also_after_a_restart(
    shelf: Shelf, desk: Desk, tmp_path: Path, peers: Peers
) -> None:
    assert shelf.checkpoints.newest() is None
    save(shelf, desk, 1)
    save(shelf, desk, 2)
    root = save(shelf, desk, 10)
    for each in (shelf, Shelf(desk, tmp_path, peers)):
        newest = each.checkpoints.newest()
        assert newest is not None
        assert newest[:2] == (10, root)
        assert state_root(newest[2]) == root


def test_newest__damaged_on_disk__falls_back_to_the_one_before(
    shelf: Shelf, desk: Desk, tmp_path: Path, peers: Peers
) -> None:
    before = save(shelf, desk, 1)
    save(shelf, desk, 2)
    digest = sha256(to_blob(model(desk, 2)[1])).hex()
    path = next(each for each in (tmp_path / "blobs").rglob(digest) if each.stat().st_size)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    newest = Shelf(desk, tmp_path, peers).checkpoints.newest()
    assert newest is not None
    assert newest[:2] == (1, before)


def test_save__more_than_are_kept__drops_the_oldest_and_unpins_its_blob(
    shelf: Shelf, desk: Desk
) -> None:
    for round_ in range(1, KEEP + 3):
        save(shelf, desk, round_)
    assert [shelf.checkpoints.has(Round(r)) for r in range(1, KEEP + 3)] == [
        False,
        False,
        *[True] * KEEP,
    ]
    assert len(shelf.store.pinned()) == KEEP


def test_save__void_rounds_share_a_model__keeps_the_blob_while_one_needs_it(
    shelf: Shelf, desk: Desk
) -> None:
    save(shelf, desk, 1, number=0)
    for round_ in range(2, KEEP + 2):
        save(shelf, desk, round_, number=0)
    newest = shelf.checkpoints.newest()
    assert newest is not None
    assert newest[0] == KEEP + 1
    assert len(shelf.store.pinned()) == 1


def test_drop_after__later_rounds__are_gone(shelf: Shelf, desk: Desk) -> None:
    for round_ in (1, 2, 3):
        save(shelf, desk, round_)
    shelf.checkpoints.drop_after(Round(2))
    newest = shelf.checkpoints.newest()
    assert newest is not None
    assert newest[0] == 2
    assert not shelf.checkpoints.has(Round(3))


async def test_fetch__one_peer_lies_and_one_is_silent__believes_only_the_root(
    shelf: Shelf, desk: Desk, peers: Peers
) -> None:
    root, params = model(desk, 7)
    right = peers.has(to_blob(params))
    wrong = peers.has(to_blob(model(desk, 8)[1]))

    def record(digest: Hash32, size: int, *, says: Hash32 = root, round_: int = 7) -> bytes:
        return canonical.dumps(
            {"digest": digest.hex(), "root": says.hex(), "round": round_, "size": size}
        )

    peers.listings = {
        ("junk", "checkpoints/7"): [b"junk", b"{}", b"[]"],
        ("other round", "checkpoints/7"): [record(right.digest, right.size, round_=6)],
        ("other root", "checkpoints/7"): [
            record(right.digest, right.size, says=some_hash("another"))
        ],
        ("liar", "checkpoints/7"): [record(wrong.digest, wrong.size)],
        ("huge", "checkpoints/7"): [record(some_hash("huge"), 1 << 39)],
        ("nobody", "checkpoints/7"): [record(some_hash("nothing"), right.size)],
    }
    names = [*(endpoint for endpoint, _ in peers.listings), "silent"]
    with pytest.raises(NoCheckpoint):
        await shelf.checkpoints.fetch(Round(7), root, names)
    peers.listings["honest", "checkpoints/7"] = [
        record(wrong.digest, wrong.size, says=some_hash("of a chain that was reorganised")),
        record(right.digest, right.size),
    ]
    found = await shelf.checkpoints.fetch(Round(7), root, [*names, "honest"])
    assert state_root(found) == root
    assert all(ref.size < 1 << 30 for ref in peers.asked), "the huge one was never asked for"


async def test_fetch__one_peer_lists_model_after_model__is_left_soon(
    shelf: Shelf, desk: Desk, peers: Peers
) -> None:
    root = model(desk, 7)[0]
    wrong = [peers.has(to_blob(model(desk, number)[1])) for number in range(10, 20)]
    peers.listings["liar", "checkpoints/7"] = [
        canonical.dumps(
            {"digest": ref.digest.hex(), "root": root.hex(), "round": 7, "size": ref.size}
        )
        for ref in wrong
    ]
    with pytest.raises(NoCheckpoint):
        await shelf.checkpoints.fetch(Round(7), root, ["liar"])
    assert len(peers.asked) == 4
