"""The picture: it can be drawn of whatever there is, and shows what the rows say."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from node.curves import EvaluationRow, TrainingRow
from syntience.curves.homes import TrainingReport, read_report
from syntience.curves.picture import draw, save_picture
from syntience.errors import ConfigError, UnwritableOutput
from tests.syntience.curves.homes import evaluation_row, make_devnet, make_home, training_row

PNG = b"\x89PNG\r\n\x1a\n"


def report_of(tmp_path: Path, **homes: Sequence[TrainingRow | EvaluationRow]) -> TrainingReport:
    return read_report([make_home(tmp_path / name, rows) for name, rows in homes.items()])


def panel(report: TrainingReport, title: str) -> Axes:
    return next(axes for axes in draw(report).axes if axes.get_title(loc="left") == title)


def line(axes: Axes, label: str) -> Line2D:
    return next(each for each in axes.get_lines() if each.get_label() == label)


def points(drawn: Line2D) -> list[tuple[float, float]]:
    x, y = drawn.get_data()
    return list(zip(map(float, x), map(float, y), strict=True))


def test_save_picture__devnet__is_a_png_of_readable_size(tmp_path: Path) -> None:
    path = tmp_path / "pictures" / "training.PNG"
    save_picture(read_report([make_devnet(tmp_path / "run")]), path)
    data = path.read_bytes()
    assert data.startswith(PNG)
    width, height = struct.unpack_from(">II", data, 16)
    assert 900 <= width <= 1400
    assert 900 <= height <= 1400
    assert len(data) < 100_000


def test_save_picture__svg__is_the_same_bytes_again(tmp_path: Path) -> None:
    report = read_report([make_devnet(tmp_path / "run")])
    for name in ("one.svg", "other.svg"):
        save_picture(report, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


@pytest.mark.parametrize("name", ["training.jpg", "training"])
def test_save_picture__another_kind__names_those_that_there_are(tmp_path: Path, name: str) -> None:
    report = report_of(tmp_path, m=[training_row(1)])
    with pytest.raises(
        ConfigError, match=r"can't draw into .*: end the file's name in \.png or \.svg"
    ):
        save_picture(report, tmp_path / name)


def test_save_picture__place_that_can_t_be_written__says_so(tmp_path: Path) -> None:
    report = report_of(tmp_path, m=[training_row(1)])
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableOutput):
        save_picture(report, tmp_path / "file" / "a.png")


def test_draw__devnet__shows_the_rows(tmp_path: Path) -> None:
    report = read_report([make_devnet(tmp_path / "run")])
    rows = report.miners[0].training
    losses = panel(report, "Loss")
    assert points(line(losses, "training, miner-1")) == [(row.round, row.mean_loss) for row in rows]
    assert points(line(losses, "not accepted")) == [(3, report.miners[1].training[2].mean_loss)]
    evaluated = report.validators[0].evaluation
    assert points(line(losses, "held-out, agreed model")) == [
        (row.round + 0.5, row.heldout_loss) for row in evaluated
    ]
    (void,) = [row for row in evaluated if row.void]
    assert points(line(losses, "the round left the model as it was")) == [
        (void.round + 0.5, void.heldout_loss)
    ]
    error = panel(report, "Compression error").get_lines()[0]
    assert points(error) == [(row.round, row.compression_error) for row in rows]
    speed = panel(report, "Training speed").get_lines()[0]
    assert points(speed) == [(row.round, row.tokens_per_s) for row in rows]


def test_draw__missed_rounds__leave_a_gap(tmp_path: Path) -> None:
    report = report_of(tmp_path, m=[training_row(1), training_row(2), training_row(5)])
    drawn = points(panel(report, "Compression error").get_lines()[0])
    assert [x for x, _ in drawn] == [1, 2, 4, 5]
    assert math.isnan(drawn[2][1])


def test_draw__inner_steps__lie_inside_their_round(tmp_path: Path) -> None:
    report = report_of(tmp_path, m=[replace(training_row(2), losses=(3.0, 2.0))])
    steps = points(panel(report, "Loss").get_lines()[0])
    assert steps[:2] == [(1.75, 3.0), (2.25, 2.0)]


def test_draw__validators_disagree__has_a_line_for_each(tmp_path: Path) -> None:
    other = replace(evaluation_row(1), heldout_loss=9.0)
    report = report_of(tmp_path, v1=[evaluation_row(1)], v2=[other])
    losses = panel(report, "Loss")
    assert points(line(losses, "held-out, v2")) == [(1.5, 9.0)]
    assert points(line(losses, "held-out, v1")) == [(1.5, evaluation_row(1).heldout_loss)]


def test_draw__bytes__are_read_as_ratio_on_the_other_side(tmp_path: Path) -> None:
    report = report_of(tmp_path, m=[training_row(1), training_row(9)])
    axes = panel(report, "Bytes of an update")
    axes.figure.draw_without_rendering()
    (right,) = axes.child_axes
    assert right.get_ylabel() == "times smaller than fp32"
    for row in report.miners[0].training:
        _, here = axes.transData.transform((0, row.payload_bytes / 1000))
        _, there = right.transData.transform((0, row.ratio))
        assert here == pytest.approx(there)


@pytest.mark.parametrize("rounds", [1, 50])
@pytest.mark.parametrize("who", ["miner", "validator", "miners"])
def test_save_picture__whatever_there_is__can_be_drawn(
    tmp_path: Path, who: str, rounds: int
) -> None:
    make = evaluation_row if who == "validator" else training_row
    names = [f"m{number}" for number in range(12)] if who == "miners" else [who]
    report = report_of(tmp_path, **{n: [make(r) for r in range(1, rounds + 1)] for n in names})
    save_picture(report, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)


def test_save_picture__numbers_that_are_not_finite__can_be_drawn(tmp_path: Path) -> None:
    rows = [replace(evaluation_row(1), heldout_loss=math.inf), evaluation_row(2)]
    save_picture(report_of(tmp_path, v=rows), tmp_path / "a.png")


def test_draw__head__says_run_model_and_spec(tmp_path: Path) -> None:
    report = read_report([make_devnet(tmp_path / "run")])
    words = " ".join(text.get_text() for text in draw(report).texts)
    assert f"Run 0x{report.run.hex()[:16]}" in words
    assert report.homes[0].model in words
    assert f"spec 0x{report.homes[0].spec_hash.hex()[:16]}" in words
    assert "2 miners · 2 validators" in words
