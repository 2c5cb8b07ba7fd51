"""The devnet's table as text and as a picture."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from protocol.ids import Units
from syntience.display import Display
from syntience.table import (
    DevnetView,
    EventLine,
    progress_line,
    render,
    show_tokens,
    sparkline,
    to_svg,
)
from tests.specs import tokens
from tests.syntience.views import VIEW

EMPTY = replace(
    VIEW, round=0, epoch=0, phase="deploying", phase_left_s=None, heldout=(), miners=(), validators=(),
    hunters=(), roots=(), events=(),
)  # fmt: skip


def rendered(view: DevnetView = VIEW, *, width: int = 118) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    console.print(render(view))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_render__a_run_halfway__shows_all_that_matters() -> None:
    text = rendered()
    for part in (
        "round 5/9   epoch 2/3   phase train 7 s   time 1:23   processes 8/8",
        "6.930 █▆▄▃▁ 5.560  -19.8%",
        "7/8 nodes agree (1 of 2 rounds in full)",
        "copier",
        "61,234",
        "+0.012",
        "150.25",
        "50.00",
        "excluded",
        "98.7%",
        "wrong data: 0x0000…0004 lost 50 SYN [in round 2]",
    ):
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 118


def test_render__nothing_known_yet__still_stands() -> None:
    text = rendered(EMPTY)
    assert "phase deploying " in text
    assert "not measured yet" in text
    assert "no root finalised yet" in text
    assert "nothing yet" in text


def test_render__narrow_terminal__keeps_its_width() -> None:
    assert max(map(len, rendered(width=80).splitlines())) <= 80


def test_to_svg__same_view__same_bytes_of_well_formed_svg() -> None:
    svg = to_svg(VIEW)
    assert svg == to_svg(VIEW)
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "wrong-data" in svg


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([1.0], "▁"),
        ([2.0, 2.0], "▁▁"),
        ([8, 7, 6, 5, 4, 3, 2, 1], "█▇▆▅▄▃▂▁"),
        ([0, 100, 1], "▁█▁"),
    ],
)
def test_sparkline__values__are_scaled_between_their_extremes(
    values: list[float], bars: str
) -> None:
    assert sparkline(values) == bars


def test_show_tokens__amounts__are_rounded_towards_zero() -> None:
    assert show_tokens(Units(0)) == "·"
    assert show_tokens(Units(12345 * 10**17)) == "1,234.50"
    assert show_tokens(Units(tokens(1) - 1)) == "0.99"
    assert show_tokens(Units(1 - tokens(1))) == "-0.99"
    assert show_tokens(Units(1)) == "0.00"


def test_progress_line__a_run_halfway__is_one_line() -> None:
    assert progress_line(VIEW) == (
        "round 5/9, epoch 2/3, held-out loss 5.560, 7/8 nodes agree (1 of 2 rounds in full)"
    )
    assert progress_line(EMPTY) == "round 0/9, epoch 0/3, no root finalised yet"


def test_display__no_terminal__prints_each_change_once() -> None:
    console = Console(file=io.StringIO(), width=40, force_terminal=False)
    with Display(console) as display:
        display.update(VIEW)
        display.update(VIEW)
        display.update(
            replace(VIEW, round=6, events=(*VIEW.events, EventLine(kind="reward", text="paid [b]")))
        )
    assert isinstance(console.file, io.StringIO)
    assert [line.split(",")[0] for line in console.file.getvalue().splitlines()] == [
        "info: round 1: 4 submissions accepted",
        "verdict: wrong data: 0x0000…0004 lost 50 SYN [in round 2]",
        "round 5/9",
        "reward: paid [b]",
        "round 6/9",
    ]


def test_display__terminal__leaves_the_last_table_on_the_screen() -> None:
    console = Console(
        file=io.StringIO(), width=118, height=60, force_terminal=True, color_system=None
    )
    with Display(console) as display:
        display.update(replace(VIEW, round=4))
        display.update(VIEW)
    assert isinstance(console.file, io.StringIO)
    assert "round 5/9" in console.file.getvalue()
