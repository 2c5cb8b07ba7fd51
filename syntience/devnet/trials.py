"""What was tried in a run and how it ended: false settlements, and games about computations."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome
from ledger.contracts.verdicts import Fault
from ledger.event_types import (
    Convicted,
    LeafChallenged,
    ListPosted,
    SettlementPosted,
    SettlementStruck,
    VoteClosed,
    VoteRevealed,
    VoterFined,
)
from ledger.events import EventReader
from node.games import Game, games_of
from node.settlements import Settlements
from protocol.ids import Address, Epoch, Hash32, Round, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """A settlement that somebody posted.

    Attributes:
        poster: the key that posted it.
        challenged: whether a leaf of it was.
        struck: whether it fell; then `bounty` and `burned` are what became of its bond.
        made_good: whether another one is final, with the root that the reveals give.
    """

    epoch: Epoch
    poster: Address
    bond: Units
    challenged: bool
    struck: bool
    bounty: Units
    burned: Units
    made_good: bool


async def postings(events: EventReader, settlements: Settlements) -> tuple[Posting, ...]:
    """Every settlement that was posted, oldest first."""
    struck = {(each.epoch, each.attempt): each for each in events.events(SettlementStruck)}
    challenged = {(each.epoch, each.attempt) for each in events.events(LeafChallenged)}
    found = []
    for post in events.events(SettlementPosted):
        fall = struck.get((post.epoch, post.attempt))
        found.append(
            Posting(
                epoch=post.epoch,
                poster=post.poster,
                bond=post.bond,
                challenged=(post.epoch, post.attempt) in challenged,
                struck=fall is not None,
                bounty=fall.bounty if fall else Units(0),
                burned=fall.burned if fall else Units(0),
                made_good=fall is not None and await settlements.final(post.epoch) is not None,
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A game about a miner's work.

    Attributes:
        lists: that were posted in it.
        ruling: of the committee; None if it never voted.
        guilty, not_guilty: who voted how.
        fined: who paid for a vote against the majority, or for none.
        taken, bounty: of the defendant's stake, as this round's verdict took and holds for the hunter.
        outcome: `NONE` while it is open.
    """

    game: Hash32
    defendant: Address
    challenger: Address
    round: Round
    lists: int
    ruling: Ruling | None
    guilty: frozenset[Address]
    not_guilty: frozenset[Address]
    fined: frozenset[Address]
    taken: Units
    bounty: Units
    outcome: GameOutcome
    to_defendant: Units
    to_challenger: Units

    @property
    def outvoted(self) -> frozenset[Address]:
        """Who voted against a majority."""
        return {Ruling.GUILTY: self.not_guilty, Ruling.NOT_GUILTY: self.guilty}.get(
            self.ruling or Ruling.PENDING, frozenset()
        )

    @property
    def unfined(self) -> bool:
        """Whether somebody who was outvoted has not paid yet."""
        return not self.outvoted <= self.fined


def trials(events: EventReader) -> tuple[Trial, ...]:
    """Every game, in the order in which they were opened."""
    return tuple(_trial(game, events) for game in games_of(events))


def _trial(game: Game, events: EventReader) -> Trial:
    votes = [vote for vote in events.events(VoteRevealed) if vote.game == game.id]
    rulings = [vote.ruling for vote in events.events(VoteClosed) if vote.game == game.id]
    verdicts = [
        verdict
        for verdict in events.events(Convicted, round_=game.round)
        if (verdict.offender, verdict.kind) == (game.defendant, Fault.NATIVE_COMPUTATION)
    ]
    over = game.over
    return Trial(
        game=game.id,
        defendant=game.defendant,
        challenger=game.challenger,
        round=game.round,
        lists=sum(event.game == game.id for event in events.events(ListPosted)),
        ruling=rulings[-1] if rulings else None,
        guilty=frozenset(vote.account for vote in votes if vote.guilty),
        not_guilty=frozenset(vote.account for vote in votes if not vote.guilty),
        fined=frozenset(fine.account for fine in events.events(VoterFined) if fine.game == game.id),
        taken=Units(sum(verdict.taken for verdict in verdicts)),
        bounty=Units(sum(verdict.bounty for verdict in verdicts)),
        outcome=over.outcome if over else GameOutcome.NONE,
        to_defendant=over.to_defendant if over else Units(0),
        to_challenger=over.to_challenger if over else Units(0),
    )
