"""What is measured, against what: goals and anchors of the gas table, the printed table and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number.

    Attributes:
        goal: it must not be more (`at_least`: not less); None if nothing was promised.
        anchors: what others pay for the same, by name.
    """

    name: str
    value: float
    goal: float | None = None
    unit: str = "gas"
    at_least: bool = False
    anchors: Mapping[str, int] | None = None

    @property
    def holds(self) -> bool:
        """Whether the goal is met."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def ratios(self) -> str:
        """Ours against each anchor."""
        anchors = self.anchors or {}
        return ", ".join(f"{who} {gas:,} ({self.value / gas:.2f})" for who, gas in anchors.items())


def table(figures: Iterable[Figure]) -> str:
    """A line per figure: value, goal, ours/goal, and the anchors with ours/theirs."""
    rows = [("", "ours", "goal", "ours/goal", "others (ours/theirs)")]
    for figure in figures:
        goal = "–" if figure.goal is None else _number(figure.goal)
        ratio = "–" if figure.goal is None else f"{figure.value / figure.goal:.2f}"
        mark = "" if figure.holds else "  MISSED"
        value = _number(figure.value) + ("" if figure.unit == "gas" else f" {figure.unit}")
        rows.append((figure.name, value, goal, ratio + mark, figure.ratios()))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}  {row[4]}".rstrip()
        for row in rows
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}"


def write_json(path: Path, figures: Iterable[Figure]) -> None:
    """{figure: {value, goal, unit, holds}}."""
    document = {
        figure.name: {
            "value": figure.value,
            "goal": figure.goal,
            "unit": figure.unit,
            "holds": figure.holds,
        }
        for figure in figures
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def peak_mib() -> float:
    """The peak of this process's memory since its program started. Not `ru_maxrss`: that is inherited from who started it."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
