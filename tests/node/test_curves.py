"""A node's rows: one a round, whatever is done again, and none lost to a SIGKILL."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import StoreDamaged
from node import curves as module
from node.curves import Curves, EvaluationRow, TrainingRow
from protocol.ids import Round
from tests.chain import ROOT
from tests.specs import some_hash
from tests.syntience.curves.homes import about, evaluation_row, training_row

FLOATS = st.floats(allow_nan=False)
LOSSES = st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(tuple)
COUNTS = st.integers(0, 1 << 62)


def training_rows() -> st.SearchStrategy[TrainingRow]:
    return st.builds(
        TrainingRow,
        round=st.integers(1, 6).map(Round),
        at=FLOATS,
        mean_loss=FLOATS,
        losses=LOSSES,
        learning_rate=FLOATS,
        compression_error=FLOATS,
        payload_bytes=COUNTS,
        dense_bytes=COUNTS,
        tokens=COUNTS,
        train_s=FLOATS,
        encode_s=FLOATS,
        accepted=st.none() | st.booleans(),
    )


def evaluation_rows() -> st.SearchStrategy[EvaluationRow]:
    return st.builds(
        EvaluationRow,
        round=st.integers(1, 6).map(Round),
        at=FLOATS,
        heldout_loss=FLOATS,
        alpha=FLOATS,
        accepted=COUNTS,
        selected=COUNTS,
        fetched_bytes=COUNTS,
        void=st.sampled_from(["", "no accepted miner"]),
    )


JUDGEMENTS = st.tuples(st.integers(1, 6).map(Round), st.booleans())
RESTART = st.just("restart")


@settings(max_examples=40, deadline=None)
@given(st.lists(training_rows() | evaluation_rows() | JUDGEMENTS | RESTART, max_size=20))
def test_curves__any_history_with_restarts__keeps_the_last_row_of_each_round(
    history: list[TrainingRow | EvaluationRow | tuple[Round, bool] | str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "curves.db"
        curves = Curves.open(path, about("miner"))
        trained: dict[int, TrainingRow] = {}
        evaluated: dict[int, EvaluationRow] = {}
        for event in history:
            if isinstance(event, str):
                curves.close()
                curves = Curves.open(path, about("miner"))
            elif isinstance(event, tuple):
                round_, accepted = event
                curves.judge(round_, accepted=accepted)
                if round_ in trained:
                    trained[round_] = replace(trained[round_], accepted=accepted)
            else:
                curves.add(event)
                if isinstance(event, TrainingRow):
                    trained[event.round] = event
                else:
                    evaluated[event.round] = event
        assert curves.training() == tuple(trained[key] for key in sorted(trained))
        assert curves.evaluation() == tuple(evaluated[key] for key in sorted(evaluated))
        later = [key for key in sorted(trained) if key >= 3]
        assert curves.training(Round(3)) == tuple(trained[key] for key in later)
        curves.close()


def test_curves__about__is_what_the_last_start_said(tmp_path: Path) -> None:
    path = tmp_path / "curves.db"
    Curves.open(path, about("miner")).close()
    later = replace(about("miner"), spec_hash=some_hash("later spec"))
    curves = Curves.open(path, later)
    assert curves.about() == later
    curves.close()


def test_curves__many_rounds__keeps_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROUNDS_KEPT", 3)
    curves = Curves.open(tmp_path / "curves.db", about("miner"))
    for round_ in range(1, 9):
        curves.add(training_row(round_))
        curves.add(evaluation_row(round_))
    assert [row.round for row in curves.training()] == [6, 7, 8]
    assert [row.round for row in curves.evaluation()] == [6, 7, 8]
    curves.close()


def test_curves__row__says_ratio_and_speed() -> None:
    row = replace(training_row(1), payload_bytes=100, dense_bytes=21_500, tokens=300, train_s=1.5)
    assert (row.ratio, row.tokens_per_s) == (215, 200)


def test_curves__losses__are_kept_as_fp32(tmp_path: Path) -> None:
    curves = Curves.open(tmp_path / "curves.db", about("miner"))
    curves.add(replace(training_row(1), losses=(0.1, 5.7)))
    assert curves.training()[0].losses == (float(np.float32(0.1)), float(np.float32(5.7)))
    curves.close()


def test_curves__read_while_written__shows_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "a state of #1 & 100%"
    writer = Curves.open(folder / "curves.db", about("miner"))
    reader = Curves.open_to_read(folder / "curves.db")
    for round_ in (1, 2, 3):
        writer.add(training_row(round_))
        assert len(reader.training()) == round_
    assert reader.about() == about("miner")
    reader.close()
    writer.close()


def test_curves__read_when_closed__leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "curves.db"
    writer = Curves.open(path, about("miner"))
    writer.add(training_row(1))
    writer.close()
    assert list(tmp_path.iterdir()) == [path]
    reader = Curves.open_to_read(path)
    assert reader.training() == (training_row(1),)
    assert list(tmp_path.iterdir()) == [path]
    reader.close()


@pytest.mark.parametrize("content", [b"", b"not a database" * 100])
def test_curves__no_curves_file__says_so_and_leaves_it_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "curves.db"
    path.write_bytes(content)
    curves = Curves.open_to_read(path)
    with pytest.raises(StoreDamaged, match=r"cannot read the curves in .*curves.db \(.*\): check"):
        curves.about()
    curves.close()
    assert path.read_bytes() == content


def test_curves__killed_at_any_time__has_each_round_once(tmp_path: Path) -> None:
    path, chance = tmp_path / "curves.db", random.Random(5)
    first = 1
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.node.curves_child", str(path), str(first)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        said = [process.stdout.readline()]
        time.sleep(chance.uniform(0.01, 0.3))
        process.kill()
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        said += rest.splitlines()
        curves = Curves.open(path, about("miner"))
        rows = curves.training()
        curves.close()
        assert [row.round for row in rows] == list(range(1, len(rows) + 1))
        assert 0 <= len(rows) - int(said[-1]) <= 1, "what was entered is there, the next one may be"
        assert rows == tuple(training_row(row.round) for row in rows)
        first = len(rows)  # that one is done again


def test_curves__torn_last_write__loses_that_row_alone(tmp_path: Path) -> None:
    path = tmp_path / "curves.db"
    curves = Curves.open(path, about("miner"))
    for round_ in range(1, 6):
        curves.add(training_row(round_))
    log = Path(f"{path}-wal").read_bytes()
    database = path.read_bytes()
    curves.close()
    copy = tmp_path / "copy.db"
    for torn_bytes in (1, 100, 3000):
        copy.write_bytes(database)
        Path(f"{copy}-wal").write_bytes(log[:-torn_bytes])
        again = Curves.open(copy, about("miner"))
        assert [row.round for row in again.training()] == [1, 2, 3, 4]
        again.add(training_row(5))
        assert [row.round for row in again.training()] == [1, 2, 3, 4, 5]
        again.close()
