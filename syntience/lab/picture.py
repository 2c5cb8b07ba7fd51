"""A scenario's first run as a picture: ratings and pay by group, and the loss where a model is trained."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from protocol.ids import Address
from syntience.curves.picture import COLOURS, STYLE, save_figure
from syntience.lab.history import History
from syntience.lab.run import Outcome


def save(outcome: Outcome, path: Path) -> None:
    """Writes it as PNG or SVG, by the file's name; raises as `syntience.curves.picture.save_figure`."""
    save_figure(draw(outcome), path)


def draw(outcome: Outcome) -> Figure:
    """Rating above, pay below; a band spans the members of a group."""
    history, scenario = outcome.trials[0].history, outcome.scenario
    trained = history.epochs[0].heldout is not None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 9 if trained else 6.5), layout="constrained")
        panels = figure.subplots(3 if trained else 2, 1, sharex=True, squeeze=False)[:, 0]
        figure.suptitle(f"{scenario.name}: {scenario.text}", fontsize=11, x=0.01, ha="left")
        _ratings(panels[0], history)
        _pay(panels[1], history)
        if trained:
            _loss(panels[2], history)
        panels[-1].set_xlabel("round")
    return figure


def _ratings(axes: Axes, history: History) -> None:
    axes.set_title("Rating (ordinal)")
    for colour, (group, members) in _coloured(history):
        values = [[row.standings[m].ordinal for m in members] for row in history.epochs]
        _band(axes, history, values, colour, group)
    axes.legend(loc="upper left", ncols=2)


def _pay(axes: Axes, history: History) -> None:
    axes.set_title("Pay of a member over the first group's median, epoch by epoch")
    first = next(iter(history.miners.values()))
    for colour, (group, members) in _coloured(history):
        values = []
        for row in history.epochs:
            middle = sorted(row.pay.get(m, 0) for m in first)[len(first) // 2] or 1
            values.append([row.pay.get(m, 0) / middle for m in members])
        _band(axes, history, values, colour, group)
    axes.set_ylim(bottom=0)


def _loss(axes: Axes, history: History) -> None:
    axes.set_title("Held-out loss, nats per token")
    axes.plot(_rounds(history), [row.heldout or 0.0 for row in history.epochs], color=COLOURS[0])


def _coloured(history: History) -> list[tuple[str, tuple[str, tuple[Address, ...]]]]:
    groups = list(history.miners.items())
    return [(COLOURS[i % len(COLOURS)], group) for i, group in enumerate(groups)]


def _band(axes: Axes, history: History, values: list[list[float]], colour: str, label: str) -> None:
    rounds = _rounds(history)
    middle = [sum(each) / len(each) for each in values]
    axes.plot(rounds, middle, color=colour, label=label)
    if any(len(each) > 1 for each in values):
        low, high = [min(each) for each in values], [max(each) for each in values]
        axes.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)


def _rounds(history: History) -> list[int]:
    return [row.round for row in history.epochs]
