"""What happens in a run, as lines to read: one for what matters, none for what always happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ledger.contracts.faults import Fault
from ledger.event_types import (
    ChallengeExpired,
    Claimed,
    EpochVoided,
    Event,
    Excluded,
    FaultProven,
    LeafChallenged,
    MissingRevealPenalised,
    RootFinalised,
    SettlementFinalised,
    SettlementPosted,
    SettlementStruck,
)
from protocol.ids import Address, Round, Units
from syntience.devnet.players import Player
from syntience.table import EventLine, short_address, show_tokens

_FAULTS = {Fault.EQUIVOCATION: "equivocation", Fault.WRONG_DATA: "wrong data"}


class Names:
    """Players by any of their addresses."""

    def __init__(self, players: Iterable[Player]) -> None:
        self._names: dict[Address, str] = {}
        for player in players:
            name = player.name if player.is_honest else f"{player.name} ({player.behaviour})"
            self._names |= {player.account: name, player.operator: name}

    def of(self, address: Address) -> str:
        """The player's name; a stranger's short address."""
        return self._names.get(address, short_address(address))


def tell(
    events: Sequence[Event], names: Names, *, accepted: Mapping[Round, tuple[int, int]]
) -> list[EventLine]:
    """The lines for some new events, in their order.

    Args:
        events: as they stand on chain.
        names: of whom they speak.
        accepted: by round, how many submissions a majority of validators holds, and how many were
            committed; needed where a root was finalised.
    """
    lines = []
    for event in events:
        line = _line(event, names, accepted)
        if line is not None:
            lines.append(line)
    claims = [event for event in events if isinstance(event, Claimed)]
    if claims:
        total = Units(sum(event.amount for event in claims))
        lines.append(
            EventLine(kind="reward", text=f"{len(claims)} claimed {show_tokens(total)} SYN in all")
        )
    return lines


def _line(
    event: Event, names: Names, accepted: Mapping[Round, tuple[int, int]]
) -> EventLine | None:
    match event:
        case RootFinalised():
            held, committed = accepted.get(event.round, (0, 0))
            text = f"round {event.round}: {held} of {committed} submissions held by a majority"
            return EventLine(kind="info", text=f"{text}, model 0x{event.root.hex()[:12]}…")
        case SettlementPosted():
            return EventLine(
                kind="info",
                text=f"epoch {event.epoch}: {names.of(event.poster)} posted the settlement",
            )
        case SettlementFinalised():
            amount = show_tokens(event.amount)
            return EventLine(kind="reward", text=f"epoch {event.epoch} settled: {amount} SYN")
        case Excluded() if event.faults > 1:
            return None  # it was out already
        case (
            FaultProven() | SettlementStruck() | LeafChallenged() | ChallengeExpired() | Excluded()
        ):
            return EventLine(kind="verdict", text=_verdict(event, names))
        case EpochVoided() | MissingRevealPenalised():
            return EventLine(kind="warning", text=_warning(event, names))
        case _:
            return None


def _verdict(
    event: FaultProven | SettlementStruck | LeafChallenged | ChallengeExpired | Excluded,
    names: Names,
) -> str:
    match event:
        case FaultProven():
            return (
                f"{_FAULTS.get(event.kind, 'fault')} of {names.of(event.miner)} in round {event.round} proven: "
                f"{show_tokens(event.slashed)} SYN slashed, {show_tokens(event.bounty)} to {names.of(event.hunter)}"
            )
        case Excluded():
            return f"{names.of(event.account)} is excluded from the next epoch on"
        case LeafChallenged():
            return (
                f"epoch {event.epoch}: {names.of(event.challenger)} challenges leaf {event.index}"
            )
        case SettlementStruck():
            return f"epoch {event.epoch}: the settlement was struck, {show_tokens(event.burned)} SYN burned"
        case ChallengeExpired():
            return f"{names.of(event.hunter)} lost a bond of {show_tokens(event.bond)} SYN: no proof in time"


def _warning(event: EpochVoided | MissingRevealPenalised, names: Names) -> str:
    match event:
        case EpochVoided():
            return f"epoch {event.epoch} is void: its pot rolls over"
        case MissingRevealPenalised():
            taken = show_tokens(event.taken)
            return f"epoch {event.epoch}: {names.of(event.account)} did not reveal and lost {taken} SYN"
