"""`syntience devnet run`: what is wrong is said in one line before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from syntience.cli.app import run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cheat", "copier,nosie"], "there is no cheat 'nosie': choose --cheat none"),
        (["--model", "huge"], "choose --model tiny or default or small"),
        (["--miners", "0"], "--miners 0 is out of range"),
        (["--set", "outer.rule=adam"], "outer.rule 'adam' is none of sparseloco, demo"),
        (["--set", "outer.alpha=1", "--set", "model.init_seed=2"], "follows from --seed"),
        (["--validators", "33"], "--validators 33 is out of range: give 1 to 32"),
    ],
)
def test_run__a_flag_that_makes_no_sense__is_one_line(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["devnet", "run", "--work", str(tmp_path), *arguments]) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_run__output_that_cannot_be_written__is_said_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out.json"
    assert run(["devnet", "run", "--work", str(tmp_path / "work"), "--json", str(out)]) == 1
    assert "can't write" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_run__text_that_is_not_there__is_said_before_the_chain_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "text.txt"
    assert run(["devnet", "run", "--work", str(tmp_path), "--data", str(missing)]) == 1
    assert f"there is no file or folder {missing}" in capsys.readouterr().err
