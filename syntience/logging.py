"""Structured logs: one event a line, `time level logger: message key=value …`, or the same as JSON.

Callers use the standard library alone: ``log.info("committed", extra={"round": 3})``. Line breaks and control characters
are escaped, because parts of a message may come from strangers.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from syntience.config import LogSettings

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_CHATTY = ("aiohttp", "asyncio", "urllib3", "web3", "sqlalchemy")


def configure_logging(settings: LogSettings, *, stream: TextIO | None = None) -> None:
    """Sets up the root logger of this process; a later call replaces an earlier one."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if settings.as_json else PlainLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, JsonLines | PlainLines):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(settings.level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class PlainLines(logging.Formatter):
    """For people. A traceback follows its event on indented lines."""

    def format(self, record: logging.LogRecord) -> str:
        """One event."""
        words = [
            _time(record),
            f"{record.levelname.lower():<7}",
            f"{record.name}:",
            escape(record.getMessage()),
            *(f"{name}={_plain_value(value)}" for name, value in _extras(record)),
        ]
        line = " ".join(words)
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {escape(part)}" for part in trace.splitlines())
        return line


class JsonLines(logging.Formatter):
    """For machines: one JSON object a line, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """One event."""
        event: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **dict(_extras(record)),
        }
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, default=str)


def escape(text: str) -> str:
    """The text with line breaks and control characters written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _extras(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    for name, value in record.__dict__.items():
        if name not in _STANDARD:
            yield name, value.hex() if isinstance(value, bytes) else value


def _plain_value(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else escape(str(value))
    return json.dumps(text) if " " in text or "=" in text or not text else text


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
