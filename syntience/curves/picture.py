"""A run's curves on one page. matplotlib is an extra (`pip install 'syntience[curves]'`), so import this where it is drawn.

A round r takes the width from r - 1/2 to r + 1/2: its inner steps lie inside, the held-out loss of the model that comes out
of it at its end, and everything that is one number a round in the middle.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike
from PIL import Image

from node.curves import EvaluationRow, TrainingRow
from syntience.curves.homes import HomeCurves, TrainingReport
from syntience.errors import ConfigError
from syntience.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

FORMATS = ("png", "svg")
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F", "#B5A400")
"""After Okabe and Ito: told apart by colour-blind people too. More miners than these share the first."""
_INK, _FAINT, _GRID = "#222222", "#6B6B6B", "#E4E4E4"
STYLE: dict[RcKeyType, object] = {
    "axes.edgecolor": _FAINT,
    "axes.grid": True,
    "axes.labelcolor": _FAINT,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "syntience",
    "text.color": _INK,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
}
_ALPHA = "#D55E00"
_DASHES = ("-", "--", ":", "-.")
"""Of held-out losses, where validators did not measure the same."""
_DPI = 110
_PALETTE = 128
"""Colours of a PNG, those of smoothed edges among them."""
_FEW_ROUNDS = 40
"""Up to so many, each round is marked with a dot."""
_ROOM = 0.005
"""Above and below errors, so that noise doesn't fill the panel."""
_LEAST = 1e-9
"""The second axis of bytes asks for the ratio at 0 as well."""
_SHOWN = 16
"""Digits of a hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How a miner's lines look; `label` only where it stands in the legend."""

    colour: str
    label: str
    is_own: bool


def save_picture(report: TrainingReport, path: Path) -> None:
    """Draws the report into a file; see `save_figure`."""
    save_figure(draw(report), path)


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a picture in this module's style, as PNG or SVG by the file's name.

    Raises:
        ConfigError: another kind of file.
        UnwritableOutput: it can't be written.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise ConfigError(
            f"can't draw into {path}",
            f"end the file's name in {' or '.join('.' + k for k in FORMATS)}",
        )
    stream = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format=kind, dpi=_DPI, metadata=metadata)
    write_atomically(path, _with_palette(stream) if kind == "png" else stream.getvalue())


def _with_palette(png: io.BytesIO) -> bytes:
    """A third of the bytes, and nothing that one could see."""
    small = io.BytesIO()
    Image.open(png).convert("RGB").quantize(_PALETTE).save(small, "png", optimize=True)
    return small.getvalue()


def draw(report: TrainingReport) -> Figure:
    """The page: losses above; rates, compression error, bytes and speed below."""
    with mpl.rc_context(STYLE):
        return _page(report)


def _page(report: TrainingReport) -> Figure:
    layout = ConstrainedLayoutEngine(h_pad=0.09, w_pad=0.07, rect=(0, 0, 1, 0.93))
    figure = Figure(figsize=(10, 10.4), layout=layout)
    panels = figure.subplot_mosaic(
        [["losses", "losses"], ["rates", "error"], ["bytes", "speed"]],
        height_ratios=[1.35, 1, 1],
    )
    _head(figure, report)
    _draw_losses(panels["losses"], report)
    _draw_rates(panels["rates"], report)
    _draw_error(panels["error"], report)
    _draw_bytes(panels["bytes"], report)
    _draw_speed(panels["speed"], report)
    for axes in panels.values():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
        axes.set_xlim(*_span(report))
    for name in ("losses", "bytes", "speed"):
        panels[name].set_xlabel("round")
    return figure


def _head(figure: Figure, report: TrainingReport) -> None:
    specs = ", ".join(sorted({"0x" + home.spec_hash.hex()[:_SHOWN] for home in report.homes}))
    models = "; ".join(sorted({home.model for home in report.homes}))
    parts = (
        models,
        f"spec {specs}",
        _counted(len(report.miners), "miner"),
        _counted(len(report.validators), "validator"),
    )
    figure.text(
        0.012, 0.976, f"Run 0x{report.run.hex()[:_SHOWN]}", fontsize=15, weight="bold", va="center"
    )
    figure.text(0.012, 0.949, " · ".join(parts), fontsize=9.5, color=_FAINT, va="center")


def _draw_losses(axes: Axes, report: TrainingReport) -> None:
    axes.set_title("Loss")
    axes.set_ylabel("nats per token")
    for home, look in _looks(report.miners):
        rows = home.training
        if look.is_own:
            axes.plot(*_inner_steps(rows), color=look.colour, alpha=0.4, linewidth=0.9)
        _line(axes, rows, [row.mean_loss for row in rows], look)
    refused = [row for home in report.miners for row in home.training if row.accepted is False]
    _marks(axes, [(row.round, row.mean_loss) for row in refused], "x", "not accepted")
    for (label, scored), dashes in zip(_heldout(report.validators), cycle(_DASHES), strict=False):
        places = [(row.round + 0.5, row.heldout_loss) for row in scored]
        axes.plot(
            *_columns(places),
            color=_INK,
            linestyle=dashes,
            linewidth=2,
            marker=_marker(scored),
            markersize=4,
            label=label,
        )
        still = [place for place, row in zip(places, scored, strict=True) if row.void]
        _marks(axes, still, "o", "the round left the model as it was")
    axes.legend(loc="upper right", ncols=2 if len(axes.get_lines()) > 4 else 1)


def _draw_rates(axes: Axes, report: TrainingReport) -> None:
    axes.set_title("Learning rate and α")
    rates = {row.round: row.learning_rate for home in report.miners for row in home.training}
    alphas = {row.round: row.alpha for home in report.validators for row in home.evaluation}
    axes.set_ylabel("learning rate of a round's last step", color=COLOURS[0])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.plot(
        *_columns(sorted(rates.items())), color=COLOURS[0], marker=_marker(rates), markersize=3.5
    )
    axes.set_ylim(0, 1.1 * max(rates.values(), default=1.0) or 1)
    if alphas:
        right = axes.twinx()
        right.spines["right"].set_visible(True)
        right.grid(visible=False)
        right.set_ylabel("α, the outer step", color=_ALPHA)
        right.plot(
            *_columns(sorted(alphas.items())), color=_ALPHA, marker=_marker(alphas), markersize=3.5
        )
        right.set_ylim(
            0, 1.3 * max(alphas.values()) or 1
        )  # not the left axis' share: two constants would hide each other


def _draw_error(axes: Axes, report: TrainingReport) -> None:
    axes.set_title("Compression error")
    axes.set_ylabel("norm left unsent / to be sent")
    _draw_per_miner(axes, report, lambda row: row.compression_error)
    low, high = axes.get_ylim()
    axes.set_ylim(low - _ROOM, high + _ROOM)


def _draw_bytes(axes: Axes, report: TrainingReport) -> None:
    axes.set_title("Bytes of an update")
    axes.set_ylabel("kB")
    _draw_per_miner(axes, report, lambda row: row.payload_bytes / 1000)
    rows = [row for home in report.miners for row in home.training]
    if not rows:
        return
    sizes = [row.payload_bytes / 1000 for row in rows]
    axes.set_ylim(0.9 * min(sizes), 1.1 * max(sizes))
    dense = rows[-1].dense_bytes / 1000

    def ratio(size: ArrayLike) -> ArrayLike:
        return np.divide(dense, np.maximum(size, _LEAST))

    right = axes.secondary_yaxis("right", functions=(ratio, ratio))
    right.set_ylabel("times smaller than fp32")


def _draw_speed(axes: Axes, report: TrainingReport) -> None:
    axes.set_title("Training speed")
    axes.set_ylabel("tokens/s of the inner steps")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _draw_per_miner(axes, report, lambda row: row.tokens_per_s)
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])


def _draw_per_miner(
    axes: Axes, report: TrainingReport, value: Callable[[TrainingRow], float]
) -> None:
    """A line for each miner, in the colours of the first panel, whose legend holds for all."""
    for home, look in _looks(report.miners):
        _line(axes, home.training, [value(row) for row in home.training], look)
    if not report.miners:
        axes.text(
            0.5,
            0.5,
            "no miner among these nodes",
            transform=axes.transAxes,
            ha="center",
            color=_FAINT,
        )


def _line(axes: Axes, rows: Sequence[TrainingRow], values: Sequence[float], look: _Look) -> None:
    """A value a round, with a gap where rounds are missing."""
    places: list[tuple[float, float]] = []
    for row, value in zip(rows, values, strict=True):
        if places and row.round > places[-1][0] + 1:
            places.append((row.round - 1, math.nan))
        places.append((row.round, value))
    axes.plot(
        *_columns(places),
        color=look.colour, alpha=1.0 if look.is_own else 0.4, label=look.label, marker=_marker(rows), markersize=3.5,
    )  # fmt: skip


def _marks(axes: Axes, places: Sequence[tuple[float, float]], marker: str, label: str) -> None:
    if places:
        axes.plot(
            *_columns(places),
            linestyle="none", marker=marker, markersize=7, color=_INK, markerfacecolor="white",
            label=label, zorder=3,
        )  # fmt: skip


def _looks(miners: Sequence[HomeCurves]) -> Iterator[tuple[HomeCurves, _Look]]:
    """A colour for each, or one for all where there are too many to tell apart."""
    if len(miners) <= len(COLOURS):
        for home, colour in zip(miners, COLOURS, strict=False):
            yield home, _Look(colour=colour, label=f"training, {home.name}", is_own=True)
        return
    for place, home in enumerate(miners):
        label = "" if place else f"training, {len(miners)} miners"
        yield home, _Look(colour=COLOURS[0], label=label, is_own=False)


def _heldout(validators: Sequence[HomeCurves]) -> list[tuple[str, list[EvaluationRow]]]:
    """One line if all validators measured the same in each round, as those of one run do; else one for each."""
    merged: dict[int, EvaluationRow] = {}
    for home in validators:
        for row in home.evaluation:
            if merged.setdefault(row.round, row).heldout_loss != row.heldout_loss:
                return [(f"held-out, {each.name}", list(each.evaluation)) for each in validators]
    rows = [merged[round_] for round_ in sorted(merged)]
    return [("held-out, agreed model", rows)] if rows else []


def _inner_steps(rows: Iterable[TrainingRow]) -> tuple[list[float], list[float]]:
    """The loss of each inner step, by its place in its round; a gap after each round."""
    places: list[tuple[float, float]] = []
    for row in rows:
        steps = len(row.losses)
        places += [
            (row.round - 0.5 + (step + 0.5) / steps, loss) for step, loss in enumerate(row.losses)
        ]
        places.append((row.round + 0.5, math.nan))
    return _columns(places)


def _span(report: TrainingReport) -> tuple[float, float]:
    """From the first round's beginning to the last one's end."""
    rounds = [row.round for home in report.homes for row in home.rows]
    return min(rounds) - 0.6, max(rounds) + 0.6


def _columns(places: Iterable[tuple[float, float]]) -> tuple[list[float], list[float]]:
    pairs = list(places)
    return [x for x, _ in pairs], [y for _, y in pairs]


def _marker(rounds: Sized) -> str:
    return "o" if len(rounds) <= _FEW_ROUNDS else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
