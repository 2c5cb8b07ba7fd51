"""`syntience report training`: what it writes, and the one line that it says when it can't."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from syntience.cli.app import run
from tests.chain import ROOT
from tests.syntience.curves.events import scalars_in
from tests.syntience.curves.homes import make_devnet, make_home, training_row

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def refusal(capsys: Capture) -> Callable[..., str]:
    """Runs the command, which must fail with one line, and returns the line."""

    def refused(*arguments: str | Path) -> str:
        assert run(["report", "training", *map(str, arguments)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    return refused


def test_report_training__nothing_asked_for__draws_into_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    devnet = make_devnet(tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    assert run(["report", "training", str(devnet)]) == 0
    assert capsys.readouterr().out == "picture       training.png\n"
    assert (tmp_path / "training.png").stat().st_size > 10_000


def test_report_training__everything_asked_for__is_written(tmp_path: Path, capsys: Capture) -> None:
    devnet = make_devnet(tmp_path / "run")
    options = ("--out", "a.svg", "--json", "a.json", "--tensorboard", "events")
    paths = [word if word.startswith("--") else str(tmp_path / word) for word in options]
    assert run(["report", "training", str(devnet), *paths]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["picture", "numbers", "event"]
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")
    document = json.loads((tmp_path / "a.json").read_text())
    assert [len(home["training"]) for home in document["homes"]] == [12, 10, 0, 0]
    files = sorted((tmp_path / "events").rglob("*tfevents*"))
    assert len(files) == 4
    assert len(scalars_in(files[0])["loss/training"]) == 12


def test_report_training__numbers_alone__draws_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path / "miner", [training_row(1)])
    monkeypatch.chdir(tmp_path)
    assert run(["report", "training", str(home), "--json", "a.json"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "miner"]


def test_report_training__no_curves__says_so(refusal: Callable[..., str], tmp_path: Path) -> None:
    assert f"there are no curves in {tmp_path}: name the --state folder" in refusal(tmp_path)
    home = make_home(tmp_path / "miner")
    assert f"no round has been recorded in {home} yet: try again" in refusal(home)
    (home / "curves.db").write_bytes(b"\0" * 5000)
    assert "cannot read the curves in" in refusal(home)


def test_report_training__no_matplotlib__names_the_extra(
    refusal: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_home(tmp_path / "miner", [training_row(1)])
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.delitem(sys.modules, "syntience.curves.picture", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    line = refusal(home, "--out", tmp_path / "a.png")
    assert "drawing needs matplotlib: install it: pip install 'syntience[curves]'" in line


def test_roles__imported__have_not_loaded_matplotlib() -> None:
    script = (
        "import sys, miner.miner, validator.validator, syntience.roles, syntience.curves.mirror\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
