"""What every event has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from protocol.ids import Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Where an event stands on chain. `CONTRACT` names the interface that declares it, `ALSO` others that share it."""

    CONTRACT: ClassVar[str] = ""
    ALSO: ClassVar[tuple[str, ...]] = ()

    block: int
    log_index: int
    tx_hash: Hash32


EventT = TypeVar("EventT", bound=Event)
