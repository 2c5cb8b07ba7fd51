"""JSON values as a node sends them, and the few conversions that we need, each with a clear failure.

A node is a peer like any other: what it sends is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ledger.errors import RpcUnavailable
from protocol.ids import Address, Hash32, to_address

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def as_int(value: Json) -> int:
    """A JSON-RPC quantity (``0x…``)."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return int(value, 16)
        except ValueError:
            pass
    raise RpcUnavailable(f"the node sent {value!r} where a quantity belongs")


def as_bytes(value: Json) -> bytes:
    """JSON-RPC data (``0x…``)."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            pass
    raise RpcUnavailable(f"the node sent {value!r} where data belongs")


def as_hash(value: Json) -> Hash32:
    """JSON-RPC data of 32 bytes."""
    data = as_bytes(value)
    if len(data) != 32:
        raise RpcUnavailable(f"the node sent {len(data)} bytes where a hash belongs")
    return Hash32(data)


def as_address(value: Json) -> Address:
    """JSON-RPC data of 20 bytes, in EIP-55 form."""
    data = as_bytes(value)
    if len(data) != 20:
        raise RpcUnavailable(f"the node sent {len(data)} bytes where an address belongs")
    return to_address(data)


def as_record(value: Json) -> Mapping[str, Json]:
    """A JSON object."""
    if isinstance(value, Mapping):
        return value
    raise RpcUnavailable(f"the node sent {type(value).__name__} where an object belongs")


def as_list(value: Json) -> Sequence[Json]:
    """A JSON array."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    raise RpcUnavailable(f"the node sent {type(value).__name__} where a list belongs")


def field(record: Mapping[str, Json], name: str) -> Json:
    """A member that has to be there."""
    if name not in record:
        raise RpcUnavailable(f"the node left out {name!r}")
    return record[name]


def quantity(value: int) -> str:
    """An integer as a JSON-RPC quantity."""
    return hex(value)


def data(value: bytes) -> str:
    """Bytes as JSON-RPC data."""
    return "0x" + value.hex()
