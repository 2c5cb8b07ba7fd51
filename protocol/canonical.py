"""The one canonical text encoding: JSON with sorted keys, no whitespace and no floats.

Whoever encodes the same value gets the same bytes, so a digest of them can be signed or registered.
Decoding is strict: only bytes that encode back to themselves are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from protocol.errors import Rejected

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"

MAX_DEPTH = 64
"""A document of ours nests a handful of levels; a parser's stack must not be the limit."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def dumps(value: Json) -> bytes:
    """Encodes to canonical UTF-8 bytes.

    Raises:
        TypeError: a float or another type without one canonical form.
    """
    _refuse_floats(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def loads(data: bytes) -> Json:
    """Decodes canonical bytes.

    Raises:
        Rejected: not JSON, or not in canonical form (spaces, key order, duplicates, floats).
    """
    if nesting(data) > MAX_DEPTH:
        raise Rejected(f"nested deeper than {MAX_DEPTH} levels")
    try:
        value: Json = json.loads(data)
        again = dumps(value)
    except (ValueError, TypeError, RecursionError) as error:
        raise Rejected(f"not canonical JSON: {error}") from error
    if again != data:
        raise Rejected("not in canonical form")
    return value


def nesting(data: bytes) -> int:
    """How deeply brackets nest, outside of strings; counted before a recursive parser sees them."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", data)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _refuse_floats(value: Json) -> None:
    if value is None or isinstance(value, bool | int | str):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"object keys are strings, not {type(key).__name__}")
            _refuse_floats(item)
    elif isinstance(value, Sequence):
        for item in value:
            _refuse_floats(item)
    else:
        raise TypeError(f"{type(value).__name__} has no canonical form; write decimals as strings")
