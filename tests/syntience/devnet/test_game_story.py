"""Games, in lines to read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Position, Turn
from ledger.event_types import (
    Committed,
    Deciding,
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
from protocol.ids import Epoch, Round, Slot, Units
from syntience.devnet.game_story import GameStory
from syntience.devnet.names import Names
from tests.node.games import GAME, START
from tests.specs import SPEC, some_hash, tokens
from tests.syntience.devnet.stage import CHEAT, FIRST, HUNTER, PLAYERS, SECOND

AT: Any = {"block": 1, "log_index": 0, "tx_hash": some_hash("tx")}
INNER = replace(SPEC.inner, steps=4, trace_every=2)
BEGUN = replace(START, defendant=CHEAT.account, challenger=HUNTER.account)
BOTH: Any = {"game": GAME, "defendant": CHEAT.account, "challenger": HUNTER.account}


def moved(turn: Turn, position: Position) -> Moved:
    return Moved(game=GAME, position=position, turn=turn, last_block=70, **AT)


def told(*events: Event) -> list[str]:
    story = GameStory(Names(PLAYERS), INNER)
    return [line.text for line in map(story.tell, events) if line is not None]


def test_story__a_game_from_start_to_end__is_one_line_a_move() -> None:
    inside = replace(BEGUN, level=1, entered=False, picks=(2, 0, 0, 0))
    assert told(
        moved(Turn.DEFENDANT_POSTS, BEGUN),
        GameOpened(commitment=some_hash("m"), **BOTH, **AT),
        ListPosted(game=GAME, node=START.node, children=(some_hash("n"),) * 4, last_block=9, **AT),
        moved(Turn.DEFENDANT_ENTERS, inside),
        moved(Turn.DEFENDANT_POSTS, replace(inside, entered=True)),
        ListPosted(game=GAME, node=START.node, children=(some_hash("n"),) * 2, last_block=9, **AT),
        moved(Turn.CHALLENGER_PROVES, replace(inside, level=2, picks=(2, 1, 0, 0))),
        Deciding(game=GAME, **AT),
    ) == [
        "hunter-1 disputes the work of miner-2 (wrong-data) in round 2: a game opens",
        "miner-2 (wrong-data) shows its trace: 4 hashes",
        "hunter-1 disputes interval 2 of miner-2 (wrong-data)",
        "miner-2 (wrong-data) shows the states of one interval: 2 hashes",
        "the game about miner-2 (wrong-data) came down to inner step 4",
    ]


def test_story__the_last_interval_and_the_first_leaf__have_names() -> None:
    assert told(
        moved(Turn.CHALLENGER_PROVES, replace(BEGUN, level=1, picks=(3, 0, 0, 0))),
        moved(Turn.CHALLENGER_PROVES, replace(BEGUN, level=1, picks=(0, 0, 0, 0))),
    ) == [
        "the game about miner-2 (wrong-data) came down to what was sent",
        "the game about miner-2 (wrong-data) came down to its start",
    ]


def test_story__votes_and_ends__say_who_and_how_much() -> None:
    stake: Any = {"guilty": tokens(6), "not_guilty": tokens(4), "total_stake": tokens(10)}
    ends = (GameOutcome.CHALLENGER_WON, GameOutcome.DEFENDANT_WON, GameOutcome.UNDECIDED)
    assert told(
        VoteOpened(
            game=GAME, defendant=CHEAT.account, round=Round(2), epoch=Epoch(1), commit_deadline=60,
            reveal_deadline=75, total_stake=tokens(10), **AT,
        ),
        VoteRevealed(game=GAME, account=FIRST.account, slot=Slot(0), guilty=True, stake=tokens(6), **AT),
        VoteRevealed(game=GAME, account=SECOND.account, slot=Slot(1), guilty=False, stake=tokens(4), **AT),
        *(VoteClosed(game=GAME, ruling=ruling, **stake, **AT) for ruling in list(Ruling)[1:]),
        *(
            GameOver(outcome=end, to_defendant=tokens(0.3), to_challenger=Units(0), **BOTH, **AT)
            for end in ends
        ),
        VoterFined(game=GAME, account=SECOND.account, slot=Slot(1), dissent=True, taken=tokens(20), **AT),
        VoterFined(game=GAME, account=FIRST.account, slot=Slot(0), dissent=False, taken=tokens(20), **AT),
    ) == [
        "the validators vote on miner-2 (wrong-data) until block 75",
        "validator-1 votes guilty",
        "validator-2 votes not guilty",
        "guilty, by 6.00 of 10.00 SYN",
        "not guilty, by 4.00 of 10.00 SYN",
        "no majority of the 10.00 SYN: nothing is proven",
        "hunter-1 won the game against miner-2 (wrong-data)",
        "miner-2 (wrong-data) won: the bond of hunter-1 is gone, 0.30 SYN of it to the winner",
        "the game of hunter-1 against miner-2 (wrong-data) ends undecided",
        "validator-2 voted against the committee and lost 20.00 SYN",
        "validator-1 did not vote and lost 20.00 SYN",
    ]  # fmt: skip


def test_story__anything_else__is_not_its_business() -> None:
    commit = Committed(round=Round(1), operator=CHEAT.operator, digest=some_hash("d"), **AT)
    assert told(commit) == []
