"""Log lines: one event each, whatever strangers put into them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from syntience.config import LogSettings
from syntience.layers import Secret
from syntience.logging import configure_logging


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Catches the log; the root logger is as before afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_plain__extras__follow_as_pairs(stream: io.StringIO) -> None:
    configure_logging(LogSettings(), stream=stream)
    logging.getLogger("miner.loop").info(
        "trained",
        extra={
            "round": 3,
            "loss": 5.4321987,
            "root": b"\x01\x02",
            "note": "a b",
            "key": Secret("k"),
        },
    )
    line = stream.getvalue()
    assert line.endswith(
        'info    miner.loop: trained round=3 loss=5.4322 root=0102 note="a b" key=***\n'
    )
    assert line[10] == "T"
    assert line[23] == "Z"


def test_plain__hostile_text__stays_on_one_line(stream: io.StringIO) -> None:
    configure_logging(LogSettings(), stream=stream)
    logging.getLogger("x").warning(
        "peer says %s", "hi\n2026 info fake: line\x1b[31m", extra={"p": "a\nb"}
    )
    assert stream.getvalue().count("\n") == 1
    assert r"hi\n2026 info fake: line\x1b[31m p=a\nb" in stream.getvalue()


def test_plain__exception__is_indented_below(stream: io.StringIO) -> None:
    configure_logging(LogSettings(), stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("x").exception("failed")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("error   x: failed")
    assert lines[-1] == "    ValueError: boom"
    assert all(line.startswith("    ") for line in lines[1:])


def test_json__event_with_exception__is_one_object(stream: io.StringIO) -> None:
    configure_logging(LogSettings(as_json=True), stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("x").exception("failed\nbadly", extra={"round": 3, "root": b"\xff"})
    event = json.loads(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
    assert event["message"] == "failed\nbadly"
    assert (event["level"], event["logger"], event["round"], event["root"]) == (
        "error",
        "x",
        3,
        "ff",
    )
    assert event["traceback"].endswith("ValueError: boom")


def test_level__lower_events__are_dropped_and_chatty_libraries_hushed(stream: io.StringIO) -> None:
    configure_logging(LogSettings(level="debug"), stream=io.StringIO())
    configure_logging(LogSettings(level="info"), stream=stream)
    logging.getLogger("x").debug("no")
    logging.getLogger("aiohttp.access").info("no")
    logging.getLogger("x").info("yes")
    assert stream.getvalue().endswith("x: yes\n")
    assert stream.getvalue().count("\n") == 1
