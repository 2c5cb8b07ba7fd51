"""A node's models read from its folder, by whoever wants to export one."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.checkpoints import Checkpoints
from node.kept import read_kept
from node.node import BLOBS, BOARD
from protocol.errors import OperatorError
from protocol.ids import Hash32, Round
from tests.bench import Desk, desk_over
from tests.node.peers import Peers
from training.dataset import TokenDataset
from training.parameters import Parameters, initial_parameters
from training.roots import state_root
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture
def state(desk: Desk, tmp_path: Path) -> Path:
    """Of a node that kept rounds 3 and 4."""
    checkpoints = Checkpoints(
        spec=desk.spec,
        board=RecordBoard(tmp_path / BOARD),
        store=FolderStore(tmp_path / BLOBS, 64 * MIB),
        client=Peers(),  # type: ignore[arg-type]  # never asked
        keep=2,
    )
    for number in (2, 3, 4):
        root, params = model(desk, number)
        checkpoints.save(Round(number), root, params)
    return tmp_path


def model(desk: Desk, number: int) -> tuple[Hash32, Parameters]:
    params = initial_parameters(desk.spec.model)
    params["model.norm.weight"] = params["model.norm.weight"] + number
    return state_root(params), params


def test_read_kept__newest_or_a_round__is_the_node_s(desk: Desk, state: Path) -> None:
    for asked, number in ((None, 4), (Round(3), 3), (Round(4), 4)):
        found = read_kept(state, desk.spec, asked)
        assert (found.round, found.root) == (number, model(desk, number)[0])
        assert state_root(found.params) == found.root


def test_read_kept__newest_damaged__is_the_one_before(desk: Desk, state: Path) -> None:
    newest = max((state / BLOBS / "blobs").rglob("*/*"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-1])
    assert read_kept(state, desk.spec).round == 3
    with pytest.raises(OperatorError, match="no model of round 4"):
        read_kept(state, desk.spec, Round(4))


def test_read_kept__dropped_round_or_no_node__says_what_there_is(desk: Desk, state: Path) -> None:
    with pytest.raises(OperatorError, match=r"round 2 .*kept: rounds 3 to 4"):
        read_kept(state, desk.spec, Round(2))
    with pytest.raises(OperatorError, match="kept: none"):
        read_kept(state / "nowhere", desk.spec)
