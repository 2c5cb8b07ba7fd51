"""From a node's state to a folder for `transformers` and back: weights, words, card and root belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.checkpoints import Checkpoints
from node.node import BLOBS, BOARD
from protocol.ids import Hash32, Round
from protocol.runfile import RunFile
from syntience.cli.app import run
from syntience.model_card import CARD, Origin, model_card, root_in_card
from tests.bench import Desk, desk_over
from tests.node.peers import Peers
from tests.specs import some_hash
from training.dataset import TOKENIZER, TokenDataset
from training.model_folder import read_model
from training.parameters import initial_parameters, to_blob
from training.roots import state_root
from training.tokenizer import END_OF_TEXT
from transport.board import RecordBoard
from transport.limits import MIB
from transport.store import FolderStore


@pytest.fixture(scope="module")
def desk(text: TokenDataset) -> Desk:
    return desk_over(text)


@pytest.fixture
def place(desk: Desk, tmp_path: Path) -> Path:
    """A folder with a run file, a node's state at round 5, and a bare checkpoint."""
    (tmp_path / "run.json").write_bytes(desk.run_file.to_bytes())
    params = initial_parameters(desk.spec.model)
    (tmp_path / "checkpoint").write_bytes(to_blob(params))
    checkpoints = Checkpoints(
        spec=desk.spec,
        board=RecordBoard(tmp_path / "state" / BOARD),
        store=FolderStore(tmp_path / "state" / BLOBS, 64 * MIB),
        client=Peers(),  # type: ignore[arg-type]  # never asked
        keep=2,
    )
    checkpoints.save(Round(5), state_root(params), params)
    return tmp_path


def export(place: Path, desk: Desk, *options: str, out: str = "out") -> int:
    common = ["--run", str(place / "run.json"), "--data", str(desk.dataset.folder)]
    return run(["model", "export", str(place / out), *common, *options])


def root_of(desk: Desk) -> Hash32:
    return state_root(initial_parameters(desk.spec.model))


def test_export__from_a_state__is_a_model_with_its_words_and_card(
    place: Path, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(place, desk, "--state", str(place / "state")) == 0
    assert "round      5" in capsys.readouterr().out
    stored = read_model(place / "out")
    assert state_root(stored.params) == root_of(desk)
    assert stored.words is not None
    assert stored.words.json == (desk.dataset.folder / TOKENIZER).read_bytes()
    assert stored.words.end == END_OF_TEXT
    card = (place / "out" / CARD).read_text()
    assert root_in_card(card) == root_of(desk)
    for fact in (desk.run_file.run, desk.spec.hash(), desk.dataset.root):
        assert fact.hex() in card
    assert "\n  round: 5\n" in card
    assert run(["model", "verify", str(place / "out")]) == 0


def test_export__from_a_checkpoint_file__needs_its_round_and_says_its_root(
    place: Path, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = ("--checkpoint", str(place / "checkpoint"))
    assert export(place, desk, *bare) == 1
    assert "--checkpoint with its --round" in capsys.readouterr().err
    assert export(place, desk, *bare, "--round", "9", "--root", root_of(desk).hex()) == 0
    assert "\n  round: 9\n" in (place / "out" / CARD).read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--state", "{place}/state", "--root", "0x" + "11" * 32), "not 0x1111"),
        (("--state", "{place}/state", "--round", "4"), "no model of round 4"),
        (("--state", "{place}/state", "--root", "12"), "no root"),
        (("--state", "{place}/nowhere"), "no model of this run"),
        (("--checkpoint", "{place}/run.json", "--round", "1"), "no checkpoint of this run"),
        (("--checkpoint", "{place}/nowhere", "--round", "1"), "no checkpoint of this run"),
        ((), "not clear which"),
        (("--state", "{place}/state", "--data", "{place}"), "no tokenizer.json"),
    ],
)
def test_export__wrong_model_root_or_words__writes_nothing(
    place: Path,
    desk: Desk,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    message: str,
) -> None:
    assert export(place, desk, *(option.format(place=place) for option in options)) == 1
    assert message in capsys.readouterr().err
    assert not (place / "out").exists()


def test_export__tokenizer_of_another_run__is_refused(
    place: Path, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / TOKENIZER).write_bytes((desk.dataset.folder / TOKENIZER).read_bytes() + b"\n")
    assert export(place, desk, "--state", str(place / "state"), "--data", str(place)) == 1
    assert "is not the run's" in capsys.readouterr().err


def test_verify__changed_weights_card_or_root__is_refused(
    place: Path, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(place, desk, "--state", str(place / "state")) == 0
    folder, root = str(place / "out"), "0x" + root_of(desk).hex()
    assert run(["model", "verify", folder, "--root", root]) == 0
    assert run(["model", "verify", folder, "--root", "0x" + "11" * 32]) == 1
    assert "not 0x1111" in capsys.readouterr().err
    weights = place / "out" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert run(["model", "verify", folder]) == 1
    assert f"not {root}" in capsys.readouterr().err
    (place / "out" / CARD).write_text("# nothing\n")
    assert run(["model", "verify", folder]) == 1
    assert "names no state root" in capsys.readouterr().err
    (place / "out" / CARD).unlink()
    assert run(["model", "verify", folder]) == 1
    assert "model card" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("finalised", "sentence"),
    [
        (None, "was not asked"),
        (True, "held this root as final"),
        (False, "did not hold a final root"),
    ],
)
def test_model_card__what_the_chain_said__is_told(
    desk: Desk, finalised: bool | None, sentence: str
) -> None:
    run_file: RunFile = desk.run_file
    origin = Origin(run_file=run_file, round=Round(3), root=some_hash("root"), finalised=finalised)
    card = model_card(origin, parameters=12_345).decode()
    assert sentence in card
    assert "12,345 parameters" in card
    assert card.startswith("---\n")
    assert root_in_card(card) == some_hash("root")
