"""What happens in a run, as lines to read: one for what matters, none for what always happens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    BountyPaid,
    ChallengeExpired,
    Claimed,
    Convicted,
    EpochVoided,
    Event,
    Excluded,
    Fined,
    LeafChallenged,
    MissingRevealPenalised,
    PauseEnded,
    PauseStarted,
    RootFinalised,
    SettlementFinalised,
    SettlementPosted,
    SettlementStruck,
    TermsAnnounced,
    VoterFined,
)
from protocol.ids import Round, Units
from syntience.devnet.game_story import GameStory
from syntience.devnet.names import Names
from syntience.table import EventLine, show_tokens

_FAULTS = {
    Fault.EQUIVOCATION: "equivocation",
    Fault.WRONG_SPEC: "another spec",
    Fault.WRONG_DATA: "wrong data",
    Fault.LOCAL_STATE: "a local state out of line",
    Fault.BAD_ENCODING: "a chunk that no encoder writes",
    Fault.NATIVE_COMPUTATION: "work that was not done",
    Fault.COMPUTATION: "a wrong computation",
    Fault.STATE_ROOT: "a wrong state root",
}
_Verdict = (
    Convicted | BountyPaid | Fined | SettlementStruck | LeafChallenged | ChallengeExpired | Excluded
)
_Warning = EpochVoided | MissingRevealPenalised | PauseStarted | PauseEnded


def tell(
    events: Sequence[Event],
    names: Names,
    *,
    accepted: Mapping[Round, tuple[int, int]],
    games: GameStory,
) -> list[EventLine]:
    """The lines for some new events, in their order.

    Args:
        events: as they stand on chain.
        names: of whom they speak.
        accepted: by round, how many submissions a majority of validators holds, and how many were
            committed; needed where a root was finalised.
        games: tells the games' moves.
    """
    lines = []
    told = {event.tx_hash for event in events if isinstance(event, VoterFined)}
    for event in events:
        if isinstance(event, Fined) and event.tx_hash in told:
            continue  # the game's own line says why
        line = games.tell(event) or _line(event, names, accepted)
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
        case TermsAnnounced() if event.from_epoch > 1:
            text = f"announced: spec 0x{event.terms.spec_hash.hex()[:12]}… from epoch {event.from_epoch} on"
            return EventLine(kind="info", text=text)
        case (
            Convicted()
            | BountyPaid()
            | Fined()
            | SettlementStruck()
            | LeafChallenged()
            | ChallengeExpired()
            | Excluded()
        ):
            return EventLine(kind="verdict", text=_verdict(event, names))
        case EpochVoided() | MissingRevealPenalised() | PauseStarted() | PauseEnded():
            return EventLine(kind="warning", text=_warning(event, names))
        case _:
            return None


def _verdict(event: _Verdict, names: Names) -> str:
    match event:
        case Convicted():
            return (
                f"{_FAULTS.get(event.kind, 'fault')} of {names.of(event.offender)} in round {event.round} proven: "
                f"{show_tokens(event.taken)} SYN slashed, {show_tokens(event.bounty)} held for {names.of(event.hunter)}"
            )
        case BountyPaid():
            return (
                f"{names.of(event.hunter)} got the bounty of {show_tokens(event.amount)} SYN "
                f"for {names.of(event.offender)} in round {event.round}"
            )
        case Fined():
            return (
                f"{names.of(event.account)} missed a duty and lost {show_tokens(event.taken)} SYN"
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


def _warning(event: _Warning, names: Names) -> str:
    match event:
        case PauseStarted():
            return "the run is paused: its clocks stand still"
        case PauseEnded():
            return f"the run goes on; pauses took {event.total_s:,} s in all"
        case EpochVoided():
            return f"epoch {event.epoch} is void: its pot rolls over"
        case MissingRevealPenalised():
            taken = show_tokens(event.taken)
            return f"epoch {event.epoch}: {names.of(event.account)} did not reveal and lost {taken} SYN"
