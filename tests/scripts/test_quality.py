"""The whole script, with one short round on text that every clone has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.bench import quality
from tests.scripts.trials import LICENCE, LLAMA
from training.errors import DatasetError


@pytest.fixture(autouse=True)
def tiny_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "MODEL", LLAMA)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["quality", *arguments])
    monkeypatch.setattr(quality, "pin_threads", lambda count: None)  # once a process
    with pytest.raises(SystemExit) as ended:
        quality.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_main__one_step_of_all_settings__writes_figures_and_curves_and_trains_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    places = (
        "--data", str(LICENCE), "--out", str(tmp_path / "out"), "--json", str(tmp_path / "q.json"), "--svg", str(tmp_path / "q.svg"),
    )  # fmt: skip
    short = ("--rounds", "1", "--inner-steps", "10", "--seeds", "0")
    run(monkeypatch, *short, *places)
    printed = capsys.readouterr().out
    assert printed.count("round 1:") == len(quality.SETTINGS)
    figures = json.loads((tmp_path / "q.json").read_text())
    assert list(figures) == [
        "SparseLoCo above DiLoCo",
        "SparseLoCo above AdamW",
        "no feedback above SparseLoCo",
    ]
    # The first round has nothing to remember, so feedback can't have helped yet.
    assert figures["no feedback above SparseLoCo"] == {
        "value": 0.0, "goal": 1.0, "unit": "%", "holds": False,
    }  # fmt: skip
    assert (tmp_path / "q.svg").read_text().count("nesterov") == 1
    assert run(monkeypatch, *short, *places) == 1
    assert "round 1:" not in capsys.readouterr().out


def test_main__setting_that_is_none__says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--settings", "sparse,other") == 2
    assert "other: no such setting" in capsys.readouterr().err


def test_main__steps_that_adamw_can_not_take__says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--rounds", "3", "--inner-steps", "5") == 2
    assert "10 steps at a time" in capsys.readouterr().err


def test_main__text_too_short_for_a_step__says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short.txt").write_text("To be, or not to be. " * 20)
    with pytest.raises(DatasetError, match="training samples, one step takes 32"):
        run(monkeypatch, "--data", str(tmp_path / "short.txt"), "--out", str(tmp_path / "out"))
