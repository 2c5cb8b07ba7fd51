"""Games about computations, as lines to read."""

from __future__ import annotations

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Position, Turn
from ledger.event_types import (
    Event,
    GameOpened,
    GameOver,
    ListPosted,
    Moved,
    VoteClosed,
    VoteOpened,
    VoteRevealed,
    VoterFined,
)
from node.games import Part, disputed
from protocol.ids import Address, Hash32
from protocol.spec import InnerSpec
from syntience.devnet.names import Names
from syntience.table import EventLine, show_tokens


class GameStory:
    """Tells games move by move; remembers where each stands.

    Args:
        names: of whom it speaks.
        inner: what the steps of a round are.
    """

    def __init__(self, names: Names, inner: InnerSpec) -> None:
        self._names = names
        self._inner = inner
        self._positions: dict[Hash32, Position] = {}

    def tell(self, event: Event) -> EventLine | None:
        """The line for an event; None if it is not worth one, or about something else."""
        match event:
            case GameOpened():
                challenger, defendant = self._both(event.challenger, event.defendant)
                begun = self._positions.get(event.game)
                of = f" in round {begun.round}" if begun is not None else ""
                text = f"{challenger} disputes the work of {defendant}{of}: a game opens"
                return EventLine(kind="verdict", text=text)
            case Moved():
                self._positions[event.game] = event.position
                return self._moved(event)
            case ListPosted():
                position = self._positions.get(event.game)
                if position is None or not event.children:
                    return None
                what = "its trace" if position.level == 0 else "the states of one interval"
                text = f"{self._names.of(position.defendant)} shows {what}: {len(event.children)} hashes"
                return EventLine(kind="info", text=text)
            case VoteOpened():
                text = f"the validators vote on {self._names.of(event.defendant)} until block {event.reveal_deadline}"
                return EventLine(kind="verdict", text=text)
            case VoteRevealed():
                word = "guilty" if event.guilty else "not guilty"
                return EventLine(kind="info", text=f"{self._names.of(event.account)} votes {word}")
            case VoteClosed():
                return EventLine(kind="verdict", text=_closed(event))
            case GameOver():
                return EventLine(kind="verdict", text=self._over(event))
            case VoterFined():
                why = "voted against the committee" if event.dissent else "did not vote"
                text = (
                    f"{self._names.of(event.account)} {why} and lost {show_tokens(event.taken)} SYN"
                )
                return EventLine(kind="verdict", text=text)
            case _:
                return None

    def _moved(self, event: Moved) -> EventLine | None:
        position, defendant = event.position, self._names.of(event.position.defendant)
        if event.turn is Turn.CHALLENGER_PROVES:
            what = disputed(position, self._inner)
            where = {
                Part.START: "its start",
                Part.STEP: f"inner step {what.step}",
                Part.ENCODE: "what was sent",
            }[what.part]
            return EventLine(
                kind="verdict", text=f"the game about {defendant} came down to {where}"
            )
        if position.level == 1 and not position.entered:
            challenger = self._names.of(position.challenger)
            text = f"{challenger} disputes interval {position.picks[0]} of {defendant}"
            return EventLine(kind="info", text=text)
        return None

    def _over(self, event: GameOver) -> str:
        challenger, defendant = self._both(event.challenger, event.defendant)
        match event.outcome:
            case GameOutcome.CHALLENGER_WON:
                return f"{challenger} won the game against {defendant}"
            case GameOutcome.DEFENDANT_WON:
                got = show_tokens(event.to_defendant)
                return f"{defendant} won: the bond of {challenger} is gone, {got} SYN of it to the winner"
            case _:
                return f"the game of {challenger} against {defendant} ends undecided"

    def _both(self, challenger: Address, defendant: Address) -> tuple[str, str]:
        return self._names.of(challenger), self._names.of(defendant)


def _closed(event: VoteClosed) -> str:
    total = show_tokens(event.total_stake)
    match event.ruling:
        case Ruling.GUILTY:
            return f"guilty, by {show_tokens(event.guilty)} of {total} SYN"
        case Ruling.NOT_GUILTY:
            return f"not guilty, by {show_tokens(event.not_guilty)} of {total} SYN"
        case _:
            return f"no majority of the {total} SYN: nothing is proven"
