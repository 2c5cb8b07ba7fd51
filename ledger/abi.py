"""The contracts' interfaces, read from the JSON that ships in the package, and their binary encoding.

web3's contract objects are built at run time and untyped; here an interface is a frozen record, and every value that
crosses it has one of a few Python types (`AbiValue`). Addresses are EIP-55 strings on both sides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, TypeAlias, cast

from eth_abi import abi as eth_abi
from eth_abi.exceptions import DecodingError, EncodingError

from ledger.errors import Undecodable
from protocol.errors import Bug, OperatorError
from protocol.hashing import keccak256
from protocol.ids import Address, to_address

AbiValue: TypeAlias = "int | bool | str | bytes | tuple[AbiValue, ...]"

CONTRACT_NAMES = (
    "SynToken",
    "Registry",
    "StakeVault",
    "EpochManager",
    "BlockhashBeacon",
    "ScoreRegistry",
    "RewardsDistributor",
    "ObjectiveFaults",
    "Verdicts",
    "DataRequests",
    "Disputes",
    "Committee",
)
"""In the order in which they are deployed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument or result: its name, canonical type (tuples spelt out), and whether an event indexes it."""

    name: str
    type: str
    indexed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A function, event or error: name, parameters, results, and its keccak."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    topic: bytes

    @property
    def selector(self) -> bytes:
        """The first four bytes of the keccak: of a call's or an error's data."""
        return self.topic[:4]

    def encode_call(self, arguments: Sequence[AbiValue]) -> bytes:
        """Call data; raises `Bug` if the arguments don't fit."""
        return self.selector + encode([item.type for item in self.inputs], arguments)

    def decode_result(self, data: bytes) -> tuple[AbiValue, ...]:
        """A function's results; raises `Undecodable`."""
        return decode([item.type for item in self.outputs], data)

    def decode_error(self, data: bytes) -> dict[str, AbiValue]:
        """An error's arguments by name, from its data without the selector."""
        return _named(self.inputs, decode([item.type for item in self.inputs], data))

    def decode_event(self, topics: Sequence[bytes], data: bytes) -> dict[str, AbiValue]:
        """An event's arguments by name; `topics` without the first one."""
        indexed = [item for item in self.inputs if item.indexed]
        plain = [item for item in self.inputs if not item.indexed]
        if len(topics) != len(indexed):
            raise Undecodable(f"event {self.name}: {len(topics)} topics instead of {len(indexed)}")
        values = {
            item.name: decode([item.type], topic)[0]
            for item, topic in zip(indexed, topics, strict=True)
        }
        values |= _named(plain, decode([item.type for item in plain], data))
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractAbi:
    """A contract's functions by name, events by topic, errors by selector, and its creation code."""

    name: str
    functions: Mapping[str, Interface]
    events: Mapping[bytes, Interface]
    errors: Mapping[bytes, Interface]
    constructor: tuple[Parameter, ...]
    bytecode: bytes

    def function(self, name: str) -> Interface:
        """A function by name; a missing one means that code and packaged ABI have parted."""
        if name not in self.functions:
            raise Bug(f"the packaged ABI of {self.name} has no function {name}")
        return self.functions[name]

    def creation(self, arguments: Sequence[AbiValue]) -> bytes:
        """Data of the transaction that creates the contract."""
        return self.bytecode + encode([item.type for item in self.constructor], arguments)


def encode(types: Sequence[str], values: Sequence[AbiValue]) -> bytes:
    """``abi.encode``; raises `Bug` if a value does not fit its type."""
    if len(types) != len(values):
        raise Bug(f"{len(values)} values for {len(types)} types")
    try:
        return eth_abi.encode(types, values)
    except (EncodingError, TypeError, ValueError) as error:
        raise Bug(f"cannot encode {values!r} as {types}: {error}") from error


def decode(types: Sequence[str], data: bytes) -> tuple[AbiValue, ...]:
    """``abi.decode``, addresses as EIP-55 strings; raises `Undecodable`."""
    try:
        values = eth_abi.decode(types, data)
    except (DecodingError, ValueError, OverflowError) as error:
        raise Undecodable(f"cannot decode {len(data)} bytes as {types}: {error}") from error
    return tuple(_clean(value, kind) for value, kind in zip(values, types, strict=True))


@lru_cache(maxsize=1 << 12)
def checksummed(address: str) -> Address:
    """The EIP-55 form of an address; cached, because the same few addresses come again and again."""
    return to_address(address)


@cache
def contract_abi(name: str) -> ContractAbi:
    """The packaged interface of a contract."""
    path = resources.files("ledger") / "abi" / f"{name}.json"
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise OperatorError(
            f"the interface of {name} is not in the package",
            "build it with scripts/abi, or install again",
        ) from error
    return parse_abi(name, document["abi"], bytes.fromhex(document["bytecode"].removeprefix("0x")))


def parse_abi(
    name: str, entries: Sequence[Mapping[str, Any]], bytecode: bytes = b""
) -> ContractAbi:
    """Reads the compiler's ABI JSON."""
    parsed: dict[str, dict[bytes, Interface]] = {"function": {}, "event": {}, "error": {}}
    constructor: tuple[Parameter, ...] = ()
    for entry in entries:
        if entry["type"] == "constructor":
            constructor = _parameters(entry["inputs"])
        elif entry["type"] in parsed:
            interface = _interface(entry)
            key = interface.topic if entry["type"] == "event" else interface.selector
            parsed[entry["type"]][key] = interface
    functions: dict[str, Interface] = {}
    for interface in parsed["function"].values():
        if interface.name in functions:
            raise Bug(f"{name}.{interface.name} is overloaded; give each function its own name")
        functions[interface.name] = interface
    return ContractAbi(
        name=name,
        functions=functions,
        events=parsed["event"],
        errors=parsed["error"],
        constructor=constructor,
        bytecode=bytecode,
    )


def _interface(entry: Mapping[str, Any]) -> Interface:
    inputs = _parameters(entry["inputs"])
    signature = f"{entry['name']}({','.join(item.type for item in inputs)})"
    return Interface(
        name=entry["name"],
        inputs=inputs,
        outputs=_parameters(entry.get("outputs", ())),
        topic=keccak256(signature.encode()),
    )


def _parameters(entries: Sequence[Mapping[str, Any]]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=entry["name"],
            type=_canonical_type(entry),
            indexed=bool(entry.get("indexed", False)),
        )
        for entry in entries
    )


def _canonical_type(entry: Mapping[str, Any]) -> str:
    kind: str = entry["type"]
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(_canonical_type(part) for part in entry["components"])
    return f"({inner}){kind.removeprefix('tuple')}"


def _named(parameters: Sequence[Parameter], values: Sequence[AbiValue]) -> dict[str, AbiValue]:
    return {
        item.name or f"argument{position}": value
        for position, (item, value) in enumerate(zip(parameters, values, strict=True))
    }


def _clean(value: object, kind: str) -> AbiValue:
    """Checksums the addresses; eth_abi gives them in lower case."""
    if "address" not in kind:
        return cast(AbiValue, value)
    if kind == "address":
        return checksummed(cast(str, value))
    return _clean_nested(cast(Sequence[object], value), kind)


def _clean_nested(values: Sequence[object], kind: str) -> tuple[AbiValue, ...]:
    if kind.endswith("]"):
        element = kind[: kind.rindex("[")]
        return tuple(_clean(value, element) for value in values)
    return tuple(
        _clean(value, part) for value, part in zip(values, component_types(kind), strict=True)
    )


def component_types(kind: str) -> list[str]:
    """The types in a tuple's type such as ``(uint64,(bytes32,bool),address)``."""
    inner = kind[1:-1]
    parts, depth, start = [], 0, 0
    for position, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(inner[start:position])
            start = position + 1
    return [*parts, inner[start:]]
