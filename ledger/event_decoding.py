"""From the logs of a chain to the records of `ledger.event_types`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import cast

from ledger import event_types
from ledger.abi import AbiValue, contract_abi
from ledger.contracts.base import Values
from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Turn, position_from_abi
from ledger.contracts.epochs import terms_from_abi
from ledger.contracts.registry import Role
from ledger.contracts.requests import item_from_abi, opening_from_abi, submission_from_abi
from ledger.contracts.verdicts import Fault
from ledger.errors import Undecodable
from ledger.event_types import Event
from ledger.transactions import LogRecord
from protocol.beacon import Purpose
from protocol.ids import Hash32, Units
from protocol.settlement import SumNode


def decode_event(contract: str, log: LogRecord) -> Event | None:
    """The typed event of a log; None for events that no node needs (EIP-712's, the token's)."""
    kind = event_kinds().get((contract, log.topics[0])) if log.topics else None
    if kind is None:
        return None
    interface = contract_abi(contract).events[log.topics[0]]
    values = interface.decode_event(log.topics[1:], log.data)
    arguments = {_field(name): _typed(_field(name), value) for name, value in values.items()}
    try:
        return cast(Callable[..., Event], kind)(
            block=log.block, log_index=log.index, tx_hash=log.tx_hash, **arguments
        )
    except TypeError as error:
        raise Undecodable(f"event {contract}.{interface.name} has other fields: {error}") from error


@cache
def event_kinds() -> Mapping[tuple[str, bytes], type[Event]]:
    """The class of each event, by contract and topic."""
    return {
        (contract, topic): kind
        for kind in all_events()
        for contract in (kind.CONTRACT, *kind.ALSO)
        for topic, interface in contract_abi(contract).events.items()
        if interface.name == kind.__name__
    }


def all_events() -> list[type[Event]]:
    """Every event class. Not by ``__subclasses__``: that also has the slotless drafts that `dataclass` replaces."""
    kinds = [item for item in vars(event_types).values() if isinstance(item, type)]
    return [kind for kind in kinds if issubclass(kind, Event) and kind is not Event]


def field_names(kind: type[Event]) -> list[str]:
    """An event's own fields, without where it stands."""
    return [
        item.name for item in fields(kind) if item.name not in ("block", "log_index", "tx_hash")
    ]


_KINDS: dict[str, Callable[[int], int]] = {
    "role": Role,
    "kind": Fault,
    "purpose": Purpose,
    "turn": Turn,
    "outcome": GameOutcome,
    "ruling": Ruling,
}
_RECORDS: dict[str, Callable[[Values], object]] = {
    "children": lambda values: tuple(values.hash(place) for place in range(len(values))),
    "item": item_from_abi,
    "opening": opening_from_abi,
    "position": position_from_abi,
    "submission": submission_from_abi,
    "terms": terms_from_abi,
}


def _field(name: str) -> str:
    """Snake case of an argument's name."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return "sender" if snake == "from" else snake


def _typed(field: str, value: AbiValue) -> object:
    if field in _KINDS and isinstance(value, int):
        try:
            return _KINDS[field](value)
        except ValueError as error:
            raise Undecodable(f"event field {field} has the unknown value {value}") from error
    if field in _RECORDS and isinstance(value, tuple):
        return _RECORDS[field](Values(value))
    if isinstance(value, tuple):
        digest, weight, amount = value
        if isinstance(digest, bytes) and isinstance(weight, int) and isinstance(amount, int):
            return SumNode(hash=Hash32(digest), w=weight, amount=Units(amount))
        raise Undecodable(f"event field {field} is no node of a settlement tree")
    return value
