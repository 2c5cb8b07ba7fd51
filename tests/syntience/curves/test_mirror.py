"""An event file that grows with a node's rows, over restarts, and that no kill spoils."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from node.curves import FILE, Curves
from protocol.ids import Round
from syntience.curves import mirror as module
from syntience.curves.mirror import Mirror, keep_mirror
from syntience.curves.tensorboard import event_file
from tests.syntience.curves.events import scalars_in
from tests.syntience.curves.homes import about, evaluation_row, training_row


@pytest.fixture
def curves(tmp_path: Path) -> Iterator[Curves]:
    opened = Curves.open(tmp_path / FILE, about("miner"))
    yield opened
    opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return event_file(tmp_path / "events", "miner")


def rounds(path: Path, tag: str) -> list[int]:
    return [step for step, _ in scalars_in(path).get(tag, [])]


def test_mirror__rounds_one_after_the_other__writes_each_once(curves: Curves, path: Path) -> None:
    mirror = Mirror(curves, path)
    for round_ in range(1, 31):
        curves.add(replace(training_row(round_), accepted=None))
        mirror.catch_up()
        mirror.catch_up()
        curves.judge(Round(round_ - 1), accepted=True)
        assert rounds(path, "loss/training") == list(range(1, round_ + 1))
    assert rounds(path, "round/was_accepted") == list(range(1, 29))


def test_mirror__reorganised_round__is_written_again_with_what_it_became(
    curves: Curves, path: Path
) -> None:
    mirror = Mirror(curves, path)
    curves.add(evaluation_row(1))
    mirror.catch_up()
    curves.add(replace(evaluation_row(1), heldout_loss=9.0))
    mirror.catch_up()
    assert [value for _, value in scalars_in(path)["loss/heldout"]][1:] == [9.0]


def test_mirror__restart_after_a_torn_record__has_every_round_once(
    curves: Curves, path: Path
) -> None:
    mirror = Mirror(curves, path)
    for round_ in range(1, 13):
        curves.add(training_row(round_))
        mirror.catch_up()
    path.write_bytes(path.read_bytes()[:-7])
    curves.add(training_row(13))
    again = Mirror(curves, path)
    curves.add(training_row(14))
    again.catch_up()
    assert rounds(path, "loss/training") == list(range(1, 15))


def test_mirror__file_that_can_t_be_written_any_more__warns_and_goes_on(
    curves: Curves, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mirror = Mirror(curves, path)
    path.unlink()
    path.mkdir()
    curves.add(training_row(1))
    with caplog.at_level(logging.WARNING):
        mirror.catch_up()
    assert f"can't write {path}" in caplog.text


async def test_keep_mirror__cancelled__has_written_the_last_rows(
    curves: Curves, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.01)
    task = asyncio.create_task(keep_mirror(Mirror(curves, path)))
    curves.add(training_row(1))
    async with asyncio.timeout(10):
        while rounds(path, "loss/training") != [1]:
            await asyncio.sleep(0.01)
    curves.add(training_row(2))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rounds(path, "loss/training") == [1, 2]
