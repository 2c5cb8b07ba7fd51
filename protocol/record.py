"""Frozen dataclasses to canonical JSON and back, for the documents that are hashed as a whole.

Supported field types: int, bool, str, `Hash32` (hex without prefix), `Address`, another such
dataclass, a union of several whose fields tell them apart, and tuples of those. Decoding is strict: unknown, missing or mistyped
fields are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TypeVar, get_args, get_origin, get_type_hints

from protocol.canonical import Json
from protocol.errors import Rejected
from protocol.ids import Address, Hash32, to_address, to_hash32

_Record = TypeVar("_Record")


def to_json(record: object) -> dict[str, Json]:
    """Field by field, nested records included."""
    if not is_dataclass(record) or isinstance(record, type):
        raise TypeError(f"not a record: {type(record).__name__}")
    return {field.name: _encode(getattr(record, field.name)) for field in fields(record)}


def from_json(kind: type[_Record], value: Json) -> _Record:
    """Strict inverse of `to_json`; raises `Rejected` naming the field."""
    hints = _hints(kind)
    if not isinstance(value, Mapping):
        raise Rejected(f"{kind.__name__}: expected an object")
    missing, unknown = hints.keys() - value.keys(), value.keys() - hints.keys()
    if missing or unknown:
        raise Rejected(
            f"{kind.__name__}: missing {sorted(missing) or 'nothing'}, "
            f"unknown {sorted(unknown) or 'nothing'}"
        )
    return kind(
        **{
            name: _decode(hint, value[name], f"{kind.__name__}.{name}")
            for name, hint in hints.items()
        }
    )


def closest(kinds: Sequence[type[_Record]], value: Json) -> type[_Record]:
    """The record among several whose fields are those of `value`, or nearly: `from_json` then says what is wrong."""
    named = value.keys() if isinstance(value, Mapping) else frozenset[str]()
    return min(kinds, key=lambda kind: len(_hints(kind).keys() ^ named))


def _hints(kind: type[object]) -> dict[str, object]:
    return get_type_hints(kind)


def _encode(value: object) -> Json:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return to_json(value)


def _decode(hint: object, value: Json, where: str) -> object:
    if hint is Hash32 or hint is Address:
        if not isinstance(value, str):
            raise Rejected(f"{where}: expected a hex string")
        return to_hash32(value) if hint is Hash32 else to_address(value)
    base = getattr(hint, "__supertype__", hint)
    if get_origin(base) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise Rejected(f"{where}: expected a list")
        return tuple(_decode(get_args(base)[0], item, where) for item in value)
    if isinstance(base, UnionType):
        return from_json(closest(get_args(base), value), value)
    if isinstance(base, type) and is_dataclass(base):
        return from_json(base, value)
    if not isinstance(base, type) or type(value) is not base:
        raise Rejected(f"{where}: expected {getattr(base, '__name__', base)}")
    return value
