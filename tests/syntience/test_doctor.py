"""What the doctor finds, good and bad."""

from __future__ import annotations

import shutil
import socket
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from syntience import doctor
from syntience.doctor import (
    Level,
    check_anvil,
    check_chain,
    check_disk,
    check_packages,
    check_port,
    check_python,
    check_text,
)
from syntience.errors import ToolMissing
from tests.chain import Anvil
from tests.ports import free_port


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("version", "level"), [((3, 10, 9), Level.FAILURE), ((3, 11, 0), Level.OK), ((4, 0), Level.OK)]
)
def test_python__versions__old_ones_fail(version: tuple[int, ...], level: Level) -> None:
    assert check_python(version).level is level


def test_packages__missing_one__is_named_and_extras_are_not_asked_for() -> None:
    assert check_packages(["torch>=2", "typer"]).level is Level.OK
    finding = check_packages(["torch>=2", "no-such-thing<3,>=2", "not-here; extra == 'dev'"])
    assert (finding.level, finding.detail) == (Level.FAILURE, "missing: no-such-thing")


def test_anvil__missing__is_a_warning_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise ToolMissing("not installed", "run setup")

    monkeypatch.setattr(doctor, "find_anvil", missing)
    finding = check_anvil()
    assert (finding.level, finding.fix) == (Level.WARNING, "run setup")


def test_text__not_fetched__is_a_warning(tmp_path: Path) -> None:
    assert check_text(tmp_path).level is Level.WARNING


def test_port__taken__fails() -> None:
    assert check_port("127.0.0.1", free_port()).level is Level.OK
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finding = check_port("127.0.0.1", taken.getsockname()[1])
    assert finding.level is Level.FAILURE
    assert "--listen-port" in finding.fix


@pytest.mark.parametrize(
    ("free_gib", "level"), [(20.0, Level.OK), (2.0, Level.WARNING), (0.5, Level.FAILURE)]
)
def test_disk__little_room__is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_gib: float, level: Level
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Usage(0, 0, int(free_gib * (1 << 30))))
    finding = check_disk(tmp_path / "not" / "there" / "yet")
    assert finding.level is level
    assert finding.detail == f"{free_gib:.1f} GiB free in {tmp_path}"


async def test_chain__a_node_and_a_run_file__are_both_judged(anvil: Anvil, tmp_path: Path) -> None:
    finding = await check_chain(anvil.url, None)
    assert "chain 31337, block" in finding.detail
    assert finding.level in (Level.OK, Level.WARNING)  # a chain that mines on demand may rest
    finding = await check_chain(anvil.url, tmp_path / "none.json")
    assert (finding.level, finding.detail) == (
        Level.FAILURE,
        f"there is no run file {tmp_path / 'none.json'}",
    )


async def test_chain__nobody_answers__fails_with_a_fix() -> None:
    finding = await check_chain(f"http://127.0.0.1:{free_port()}", None)
    assert finding.level is Level.FAILURE
    assert finding.fix


async def test_chain__a_node_that_sleeps__is_a_warning(
    anvil: Anvil, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(doctor.time, "time", lambda: now + 10**6)
    finding = await check_chain(anvil.url, None)
    assert finding.level is Level.WARNING
    assert "its newest block is" in finding.detail
