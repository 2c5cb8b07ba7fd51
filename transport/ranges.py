"""HTTP byte ranges (RFC 9110, section 14), the single kind that a download needs."""

from __future__ import annotations

import re

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})", re.ASCII)


class Unsatisfiable(Exception):
    """The range lies outside the blob: answer 416."""


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Reads a Range header.

    Returns:
        The half-open interval [start, stop), or None where the whole is to be sent: no header, or
        one that the RFC lets a server ignore (several ranges, other units, malformed).

    Raises:
        Unsatisfiable: well-formed, but no byte of the blob is in it.
    """
    match = _RANGE.fullmatch(header or "")
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, stop = max(0, size - int(match[2])), size
        if int(match[2]) == 0 or size == 0:
            raise Unsatisfiable
        return start, stop
    start = int(match[1])
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise Unsatisfiable
    stop = min(size, int(match[2]) + 1) if match[2] else size
    return start, stop


def parse_content_range(header: str) -> tuple[int, int, int] | None:
    """Reads a Content-Range header: [start, stop) and the whole size; None if malformed."""
    match = _CONTENT_RANGE.fullmatch(header)
    if not match:
        return None
    start, last, size = (int(text) for text in match.groups())
    return (start, last + 1, size) if start <= last < size else None
