"""What the chain shows of games, and where a bisection leads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.contracts.disputes import GameOutcome, Position, Turn
from ledger.event_types import Deciding, GameOver, ListPosted
from node.games import (
    Disputed,
    Part,
    disputed,
    first_difference,
    games_of,
    intervals,
    list_depth,
    listed_leaf,
    nodes_below,
    posted_list,
    siblings_up,
    tree_over,
)
from protocol.ids import Units
from protocol.merkle import MerkleTree, leaf_hash, verify_proof
from protocol.spec import InnerSpec
from tests.node.games import GAME, START, FakeEvents, claim, entered, moved, opened, picked, place
from tests.specs import SPEC, some_hash


def inner(steps: int, every: int) -> InnerSpec:
    return replace(SPEC.inner, steps=steps, trace_every=every)


def listed(block: int, tree: MerkleTree, position: Position) -> ListPosted:
    return ListPosted(
        game=GAME,
        node=position.node,
        children=nodes_below(tree, position),
        last_block=90,
        **place(block),  # type: ignore[arg-type]
    )


def games(*events: Any) -> list[tuple[Turn, int]]:
    return [(game.turn, game.last_block) for game in games_of(FakeEvents(*events))]  # type: ignore[arg-type]


def test_games_of__moves__tell_whose_turn_it_is() -> None:
    tree = tree_over(claim(2).trace(inner(2, 1)))
    start = entered(START, 0, tree)
    story: list[Any] = [opened(), moved(10, Turn.DEFENDANT_POSTS, position=start)]
    assert games(*story) == [(Turn.DEFENDANT_POSTS, 70)]
    story.append(listed(12, tree, start))
    assert games(*story) == [(Turn.CHALLENGER_PICKS, 90)]
    story.append(moved(14, Turn.CHALLENGER_PROVES, last=99))
    assert games(*story) == [(Turn.CHALLENGER_PROVES, 99)]
    story.append(Deciding(game=GAME, **place(15)))
    assert games(*story) == [(Turn.JUDGE_DECIDES, 0)]
    end = GameOver(
        game=GAME, defendant=START.defendant, challenger=START.challenger,
        outcome=GameOutcome.UNDECIDED, to_defendant=Units(1), to_challenger=Units(9), **place(60),
    )  # fmt: skip
    (game,) = games_of(FakeEvents(*story, end))  # type: ignore[arg-type]
    assert (game.turn, game.over) == (Turn.OVER, end)
    assert (game.defendant, game.challenger, game.round) == (
        START.defendant,
        START.challenger,
        START.round,
    )


def test_games_of__two_games__stay_apart() -> None:
    other = some_hash("other game")
    assert games(
        opened(), moved(10, Turn.DEFENDANT_POSTS), opened(11, other),
        moved(11, Turn.CHALLENGER_PICKS, game=other, last=71),
    ) == [(Turn.DEFENDANT_POSTS, 70), (Turn.CHALLENGER_PICKS, 71)]  # fmt: skip


@pytest.mark.parametrize(
    ("steps", "every", "found"),
    [
        (4, 1, [[1], [2], [3], [4]]),
        (5, 2, [[1, 2], [3, 4], [5]]),
        (3, 9, [[1, 2, 3]]),
    ],
)
def test_intervals__any_shape__cover_every_step_once(
    steps: int, every: int, found: list[list[int]]
) -> None:
    assert [list(span) for span in intervals(inner(steps, every))] == found


@pytest.mark.parametrize(
    ("picks", "what"),
    [
        ((0, 0), Disputed(part=Part.START)),
        ((1, 0), Disputed(part=Part.STEP, step=1)),
        ((1, 1), Disputed(part=Part.STEP, step=2)),
        ((2, 1), Disputed(part=Part.STEP, step=4)),
        ((3, 0), Disputed(part=Part.STEP, step=5)),
        ((4, 0), Disputed(part=Part.ENCODE)),
    ],
)
def test_disputed__picks__name_the_step(picks: tuple[int, int], what: Disputed) -> None:
    assert disputed(replace(START, picks=(*picks, 0, 0)), inner(5, 2)) == what


def test_first_difference__lists__is_the_first_or_none() -> None:
    same = [some_hash("a"), some_hash("b"), some_hash("c")]
    assert first_difference(same, same) is None
    assert first_difference(same, [same[0], some_hash("x"), some_hash("y")]) == 1


@given(st.integers(1, 90), st.integers(1, 90), st.data())
def test_bisection__honest_challenger__ends_at_the_first_wrong_step(
    steps: int, every: int, data: st.DataObject
) -> None:
    shape = inner(steps, every)
    wrong = data.draw(st.integers(1, steps + 1), label="first wrong leaf")
    mine, theirs = claim(steps), claim(steps, wrong_from=wrong)
    events = FakeEvents()
    position = entered(START, 0, theirs.level(START, shape))
    for level in range(2):
        if level == 1:
            what = disputed(position, shape)
            if what.part is not Part.STEP or len(intervals(shape)[position.picks[0] - 1]) == 1:
                break
            position = entered(position, 1, theirs.level(position, shape))
        while position.level == level:
            tree = theirs.level(position, shape)
            events.add(listed(20, tree, position))
            posted = posted_list(events, position)  # type: ignore[arg-type]
            assert posted is not None
            child = first_difference(nodes_below(mine.level(position, shape), position), posted)
            assert child is not None
            down = list_depth(position)
            proof = siblings_up(posted, child)
            assert verify_proof(
                root=position.node, leaf=posted[child], index=child, proof=proof, depth=down
            )
            position = picked(position, child, posted, down)
    found = disputed(position, shape)
    if wrong > steps:
        assert found == Disputed(part=Part.ENCODE)
    else:
        assert found == Disputed(part=Part.STEP, step=wrong)
        assert position.node == leaf_hash(theirs.steps[wrong])


def test_posted_list__of_another_width_or_empty__does_not_count() -> None:
    tree = tree_over(claim(2).trace(inner(2, 1)))
    start = entered(START, 0, tree)
    whole = listed(20, tree, start)
    narrow, empty = replace(whole, children=whole.children[:2]), replace(whole, children=())
    assert posted_list(FakeEvents(narrow, empty), start) is None  # type: ignore[arg-type]
    assert posted_list(FakeEvents(whole, empty), start) == whole.children  # type: ignore[arg-type]


def test_listed_leaf__two_lists_deep__is_shown_only_where_both_were_posted() -> None:
    tree = MerkleTree([some_hash(str(number)) for number in range(40)])
    root = entered(START, 0, tree)
    top = listed(20, tree, root)
    second = picked(root, 1, top.children, 5)
    below = listed(21, tree, second)
    events: Any = FakeEvents(top, below)
    assert listed_leaf(events, tree.root, depth=6, index=3) == tree.leaves[3]
    assert listed_leaf(events, tree.root, depth=6, index=4) is None
    assert listed_leaf(FakeEvents(), tree.root, depth=6, index=3) is None  # type: ignore[arg-type]
