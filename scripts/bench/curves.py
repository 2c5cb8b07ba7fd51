"""Draws curves of held-out loss with the band of their seeds, for pages with a light or a dark background.

matplotlib is an extra (`pip install 'syntience[curves]'`), so import this where it is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from scripts.bench.trial import Curve
from syntience.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

INK = "#808080"
COLOURS = ("#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#D55E00")
"""After Okabe and Ito, those of a middling lightness: they must stand out from white and from black."""
MOST_EXCESS = 8.0
STYLE: dict[RcKeyType, object] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "syntience",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.25,
    "axes.grid": True,
    "legend.frameon": False,
    "savefig.transparent": True,
}


def draw(
    path: Path, curves: Mapping[str, Sequence[Curve]], *, tokens_per_step: int, base: str
) -> None:
    """Writes an SVG: on the left the losses, on the right how far each mean lies above that of `base`.

    Args:
        path: of the picture.
        curves: of each setting, one curve a seed; all with points after the same steps.
        tokens_per_step: of all workers together.
        base: the setting that the others are compared with.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        steps = np.array([point.step for point in curves[base][0]])
        tokens_M = steps * tokens_per_step / 1e6
        reference = _losses(curves[base]).mean(axis=0)
        for colour, (setting, found) in zip(COLOURS, curves.items(), strict=False):
            losses = _losses(found)
            _line(left, tokens_M, losses, colour=colour, label=setting)
            if setting != base:
                excess = 100 * (losses / _losses(curves[base]) - 1)
                _line(right, tokens_M, excess, colour=colour, label=setting)
        left.set(xlabel="million tokens", ylabel="held-out loss, nats per token")
        left.set_ylim(0.98 * reference[-1], 1.35 * reference[-1])
        left.legend()
        right.set(xlabel="million tokens", ylabel=f"above {base}, %", ylim=(-1, MOST_EXCESS))
        right.axhline(0, color=INK, linewidth=1)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    write_atomically(path, drawn.getvalue())


def _losses(curves: Sequence[Curve]) -> NDArray[np.float64]:
    """(seeds, points)."""
    return np.array([[point.loss for point in curve] for curve in curves])


def _line(
    axes: Axes,
    x: NDArray[np.float64],
    values: NDArray[np.float64],
    *,
    colour: str,
    label: str,
) -> None:
    """The mean, and a band from the least to the most."""
    axes.plot(x, values.mean(axis=0), color=colour, label=label, linewidth=1.5)
    axes.fill_between(
        x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )
