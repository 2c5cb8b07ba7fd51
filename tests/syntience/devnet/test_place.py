"""A run's folder goes when all went well, and stays when its logs may be needed."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from syntience.devnet.place import logging_to, run_folder, usable_cores
from syntience.errors import UnwritableOutput


def test_run_folder__a_good_run__leaves_nothing(tmp_path: Path) -> None:
    with run_folder(tmp_path, keep=False) as place:
        (place.path / "log.txt").write_text("…")
    assert list((tmp_path / "runs").iterdir()) == []


def test_run_folder__kept_or_failed__stays(tmp_path: Path) -> None:
    with run_folder(tmp_path, keep=True) as kept:
        pass
    with pytest.raises(RuntimeError), run_folder(tmp_path, keep=False) as failed:
        raise RuntimeError
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {
        kept.path.name,
        failed.path.name,
    }


def test_run_folder__no_place_for_it__says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with (
        pytest.raises(UnwritableOutput, match="can't write"),
        run_folder(tmp_path / "file", keep=False),
    ):
        pass


def test_run_folder__interrupted__goes(tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError), run_folder(tmp_path, keep=False):
        raise asyncio.CancelledError
    assert list((tmp_path / "runs").iterdir()) == []


def test_logging_to__a_file__takes_the_log_and_gives_it_back(tmp_path: Path) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    with logging_to(tmp_path / "devnet.log"):
        logging.getLogger("devnet").info("hello")
    assert "hello" in (tmp_path / "devnet.log").read_text()
    assert root.handlers == before


def test_usable_cores__this_machine__has_one() -> None:
    assert usable_cores() >= 1
