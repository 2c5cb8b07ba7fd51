"""The devnet's table: a pure function from what is known to what is shown, live in a terminal or as an SVG picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from protocol.ids import UNITS_PER_TOKEN, Address, Units
from syntience.report import HONEST, HunterSummary, MinerSummary, RootSummary, ValidatorSummary

MOST_EVENTS = 8
_BARS = "▁▂▃▄▅▆▇█"
_EVENT_STYLES = {"verdict": "bold red", "reward": "green", "warning": "yellow", "info": "dim"}
_SVG_ID = "syntience"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """Something that happened; `kind` is verdict, reward, warning or info."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevnetView:
    """All that the table shows.

    Attributes:
        phase: the window that is open: train, put, publish, attest, apply, or what comes before and after the rounds.
        phase_left_s: seconds until it closes, None if it doesn't.
        heldout: held-out losses, the starting model's first.
        roots: newest last.
        events: newest last.
        nodes_up, nodes_total: role processes that run, and all of them.
    """

    title: str
    round: int
    rounds: int
    epoch: int
    epochs: int
    phase: str
    phase_left_s: int | None
    elapsed_s: float
    heldout: tuple[float, ...]
    miners: tuple[MinerSummary, ...]
    validators: tuple[ValidatorSummary, ...]
    hunters: tuple[HunterSummary, ...]
    roots: tuple[RootSummary, ...]
    events: tuple[EventLine, ...]
    nodes_up: int
    nodes_total: int


def render(view: DevnetView) -> RenderableType:
    """The whole screen."""
    return Group(
        _header(view),
        _miners(view.miners),
        Columns([_validators(view.validators), _hunters(view.hunters)], padding=(0, 2)),
        _events(view.events),
    )


def progress_line(view: DevnetView) -> str:
    """The same in one line, for output that is no terminal."""
    loss = f", held-out loss {view.heldout[-1]:.3f}" if view.heldout else ""
    return f"round {view.round}/{view.rounds}, epoch {view.epoch}/{view.epochs}{loss}, {_roots_text(view.roots)}"


def to_svg(view: DevnetView, *, width: int = 118) -> str:
    """A picture of the screen. The same view gives the same bytes."""
    console = Console(
        record=True, file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor"
    )
    console.print(render(view))
    return console.export_svg(title=view.title, unique_id=_SVG_ID)


def sparkline(values: Sequence[float]) -> str:
    """One bar a value, the lowest bar for the smallest of them."""
    if not values:
        return ""
    low, high = min(values), max(values)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round((value - low) * scale)] for value in values)


def show_tokens(units: Units) -> str:
    """Base units as tokens with two decimals, rounded towards zero; ``·`` for nothing."""
    if units == 0:
        return "·"
    cents = abs(units) * 100 // UNITS_PER_TOKEN
    sign = "-" if units < 0 else ""
    return f"{sign}{cents // 100:,}.{cents % 100:02d}"


def short_address(address: Address) -> str:
    """Enough of an address to tell it from the others on the screen."""
    return f"{address[:8]}…{address[-4:]}"


def _header(view: DevnetView) -> RenderableType:
    left = f" {view.phase_left_s} s" if view.phase_left_s is not None else ""
    first = Text.assemble(
        ("round ", "dim"), f"{view.round}/{view.rounds}", ("   epoch ", "dim"), f"{view.epoch}/{view.epochs}",
        ("   phase ", "dim"), f"{view.phase}{left}", ("   time ", "dim"), _clock(view.elapsed_s),
        ("   processes ", "dim"), (f"{view.nodes_up}/{view.nodes_total}", _full(view.nodes_up, view.nodes_total)),
    )  # fmt: skip
    second = Text.assemble(("held-out loss ", "dim"), *_loss(view.heldout))
    last = view.roots[-1] if view.roots else None
    third = Text.assemble(
        ("state roots   ", "dim"),
        (_roots_text(view.roots), _full(last.nodes_agreeing, last.nodes_total) if last else "dim"),
        (f"   0x{last.root.hex()[:16]}… at round {last.round}" if last else "", "dim"),
    )
    return Panel(
        Group(first, second, third), title=view.title, title_align="left", border_style="blue"
    )


def _loss(heldout: Sequence[float]) -> list[str | tuple[str, str]]:
    if not heldout:
        return [("not measured yet", "dim")]
    fall = 1 - heldout[-1] / heldout[0] if heldout[0] else 0.0
    return [
        f"{heldout[0]:.3f} ",
        (sparkline(heldout), "cyan"),
        f" {heldout[-1]:.3f}",
        (f"  {-fall:+.1%}", "green" if fall > 0 else "yellow"),
    ]


def _miners(miners: Sequence[MinerSummary]) -> RenderableType:
    table = _table(
        "miner",
        "behaviour",
        ">rating",
        ">μ",
        ">weight",
        ">earned",
        ">claimed",
        ">slashed",
        "status",
    )
    for miner in miners:
        table.add_row(
            short_address(miner.address),
            Text(miner.behaviour, "green" if miner.behaviour == HONEST else "yellow"),
            _number(miner.rating, "{:.1f}"),
            _number(miner.mu, "{:+.3f}"),
            f"{miner.weight:,}" if miner.weight else "·",
            show_tokens(miner.earned),
            show_tokens(miner.claimed),
            Text(show_tokens(miner.slashed), "bold red" if miner.slashed else ""),
            miner.status,
        )
    return table


def _validators(validators: Sequence[ValidatorSummary]) -> RenderableType:
    table = _table("validator", ">agreement", ">earned", ">lost")
    for validator in validators:
        honest = validator.behaviour == HONEST
        table.add_row(
            Text(short_address(validator.address), "" if honest else "yellow"),
            _number(validator.weight_agreement, "{:.1%}"),
            show_tokens(validator.earned),
            Text(show_tokens(validator.slashed), "bold red" if validator.slashed else ""),
        )
    return table


def _hunters(hunters: Sequence[HunterSummary]) -> RenderableType:
    table = _table("hunter", ">proofs", ">bounty")
    for hunter in hunters:
        table.add_row(
            short_address(hunter.address), str(hunter.proofs or "·"), show_tokens(hunter.bounty)
        )
    return table


def _events(events: Sequence[EventLine]) -> RenderableType:
    lines = [
        Text(event.text, _EVENT_STYLES.get(event.kind, ""), no_wrap=True, overflow="ellipsis")
        for event in events[-MOST_EVENTS:]
    ]
    return Panel(
        Group(*lines) if lines else Text("nothing yet", "dim"),
        title="events",
        title_align="left",
        border_style="dim",
    )


def _table(*columns: str) -> Table:
    """A leading ``>`` aligns a column to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    return table


def _roots_text(roots: Sequence[RootSummary]) -> str:
    if not roots:
        return "no root finalised yet"
    whole = sum(1 for root in roots if root.nodes_agreeing == root.nodes_total)
    return f"{roots[-1].nodes_agreeing}/{roots[-1].nodes_total} nodes agree ({whole} of {len(roots)} rounds in full)"


def _number(value: float | None, form: str) -> str:
    return "·" if value is None else form.format(value)


def _full(part: int, whole: int) -> str:
    return "green" if part == whole else "bold red"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
