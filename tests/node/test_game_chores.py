"""What games leave to anybody, and from which block on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import Turn
from ledger.event_types import VoteClosed, VoteOpened, VoteRevealed, VoterFined
from node.chores import Chore, ChoreKind
from node.game_chores import Ballot, GameFacts, ballots_of, game_chores
from node.games import Game, games_of
from protocol.ids import Epoch, Slot, Units
from tests.node.games import GAME, MINER, START, FakeEvents, moved, opened, place

SEATS = frozenset(Slot(number) for number in range(3))
BALLOT = Ballot(
    epoch=Epoch(2), reveal_deadline=70, ruling=Ruling.PENDING, revealed={}, fined=frozenset()
)


def game(turn: Turn, last: int) -> Game:
    events: Any = FakeEvents(opened(), moved(10, turn, last=last))
    return games_of(events)[0]


def due(block: int, of: Game, ballot: Ballot | None = None) -> list[Chore]:
    facts = GameFacts(
        games=[of],
        ballots={} if ballot is None else {GAME: ballot},
        validators={Epoch(2): SEATS},
        block=block,
        time=1_000 + block,
    )
    return list(game_chores(facts))


@pytest.mark.parametrize("turn", [Turn.DEFENDANT_POSTS, Turn.CHALLENGER_PICKS])
def test_game_chores__a_turn_out_of_time__is_resolved_after_its_last_block(turn: Turn) -> None:
    assert due(70, game(turn, 70)) == []
    (chore,) = due(72, game(turn, 70))
    assert (chore.kind, chore.game, chore.opened) == (ChoreKind.RESOLVE_GAME, GAME, 1_070)


def test_game_chores__votes__are_closed_after_the_last_reveal() -> None:
    judging = game(Turn.JUDGE_DECIDES, 0)
    assert due(70, judging, BALLOT) == []
    assert [chore.kind for chore in due(71, judging, BALLOT)] == [ChoreKind.CLOSE_VOTE]


def test_game_chores__a_closed_vote__has_its_losers_fined_once_each() -> None:
    over = game(Turn.OVER, 0)
    ballot = replace(
        BALLOT, ruling=Ruling.GUILTY, revealed={Slot(0): True, Slot(1): False}, fined=frozenset()
    )
    chores = due(80, over, ballot)
    assert [(chore.kind, chore.detail) for chore in chores] == [
        (ChoreKind.FINE_VOTER, 1),
        (ChoreKind.FINE_VOTER, 2),
    ]
    assert len({chore.key for chore in chores}) == 2
    assert [
        chore.detail for chore in due(80, over, replace(ballot, fined=frozenset({Slot(1)})))
    ] == [2]


@pytest.mark.parametrize(
    ("ruling", "fined"),
    [
        (Ruling.PENDING, []),
        (Ruling.GUILTY, [1, 2]),
        (Ruling.NOT_GUILTY, [0, 2]),
        (Ruling.UNDECIDED, [2]),
    ],
)
def test_to_fine__every_ruling__is_silence_and_dissent(ruling: Ruling, fined: list[int]) -> None:
    ballot = replace(BALLOT, ruling=ruling, revealed={Slot(0): True, Slot(1): False})
    assert ballot.to_fine(SEATS) == fined


def test_ballots_of__events__are_put_together_by_game() -> None:
    at: Any = place(50)
    events: Any = FakeEvents(
        VoteOpened(
            game=GAME, defendant=MINER, round=START.round, epoch=Epoch(2), commit_deadline=60,
            reveal_deadline=70, total_stake=Units(9), **at,
        ),
        VoteRevealed(game=GAME, account=MINER, slot=Slot(1), guilty=True, stake=Units(3), **at),
        VoteClosed(
            game=GAME, ruling=Ruling.UNDECIDED, guilty=Units(3), not_guilty=Units(0),
            total_stake=Units(9), **at,
        ),
        VoterFined(game=GAME, account=MINER, slot=Slot(0), dissent=False, taken=Units(1), **at),
    )  # fmt: skip
    assert ballots_of(events) == {
        GAME: Ballot(
            epoch=Epoch(2),
            reveal_deadline=70,
            ruling=Ruling.UNDECIDED,
            revealed={Slot(1): True},
            fined=frozenset({Slot(0)}),
        )
    }
