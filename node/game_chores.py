"""What games leave to anybody: a turn that ran out of time, a vote to be closed, voters to be fined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import Turn
from ledger.event_types import VoteClosed, VoteOpened, VoteRevealed, VoterFined
from ledger.events import EventReader
from node.chores import Chore, ChoreKind
from node.games import Game
from protocol.ids import Epoch, Hash32, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """A vote on a game.

    Attributes:
        reveal_deadline: last block to reveal; closed after it.
        ruling: pending until it is closed.
        revealed: guilty or not, by slot.
        fined: the slots that paid already.
    """

    epoch: Epoch
    reveal_deadline: int
    ruling: Ruling
    revealed: Mapping[Slot, bool]
    fined: frozenset[Slot]

    def to_fine(self, validators: frozenset[Slot]) -> list[Slot]:
        """The slots that were silent or voted against the majority, and have not paid yet."""
        if self.ruling is Ruling.PENDING:
            return []
        dissent = {Ruling.GUILTY: False, Ruling.NOT_GUILTY: True}.get(self.ruling)
        wrong = {slot for slot, guilty in self.revealed.items() if guilty is dissent}
        silent = validators - self.revealed.keys()
        return sorted((silent | wrong) - self.fined)


def ballots_of(events: EventReader) -> dict[Hash32, Ballot]:
    """Every vote, by game."""
    rulings = {event.game: event.ruling for event in events.events(VoteClosed)}
    revealed: dict[Hash32, dict[Slot, bool]] = {}
    for event in events.events(VoteRevealed):
        revealed.setdefault(event.game, {})[event.slot] = event.guilty
    fined: dict[Hash32, set[Slot]] = {}
    for fine in events.events(VoterFined):
        fined.setdefault(fine.game, set()).add(fine.slot)
    return {
        vote.game: Ballot(
            epoch=vote.epoch,
            reveal_deadline=vote.reveal_deadline,
            ruling=rulings.get(vote.game, Ruling.PENDING),
            revealed=revealed.get(vote.game, {}),
            fined=frozenset(fined.get(vote.game, set())),
        )
        for vote in events.events(VoteOpened)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class GameFacts:
    """All games and votes, and who sat in each vote's epoch. `block` and `time` by the run's clock."""

    games: Sequence[Game]
    ballots: Mapping[Hash32, Ballot]
    validators: Mapping[Epoch, frozenset[Slot]]
    block: int
    time: int


def game_chores(facts: GameFacts) -> Iterator[Chore]:
    """All chores about games that could be done now."""
    for game in facts.games:
        ballot = facts.ballots.get(game.id)
        if game.over is None and game.last_block:
            yield from _chore(facts, ChoreKind.RESOLVE_GAME, game, after=game.last_block)
        if ballot is None:
            continue
        if game.turn is Turn.JUDGE_DECIDES:
            yield from _chore(facts, ChoreKind.CLOSE_VOTE, game, after=ballot.reveal_deadline)
        for slot in ballot.to_fine(facts.validators.get(ballot.epoch, frozenset())):
            yield from _chore(
                facts, ChoreKind.FINE_VOTER, game, after=ballot.reveal_deadline, detail=slot
            )


def _chore(
    facts: GameFacts, kind: ChoreKind, game: Game, *, after: int, detail: int = 0
) -> Iterator[Chore]:
    """The chore, if the block `after` which it can be done is past; so long it has been open at least."""
    if facts.block > after:
        yield Chore(
            kind=kind,
            number=game.round,
            detail=detail,
            opened=facts.time - (facts.block - after),
            game=game.id,
        )
