"""Games for tests: positions and events that are made up but of the right form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from ledger.contracts.disputes import LevelKind, Position, Turn
from ledger.event_types import Event, EventT, GameOpened, Moved
from node.games import Claim
from protocol.ids import ZERO32, Hash32, Round
from protocol.merkle import MerkleTree
from tests.specs import some_hash
from tests.subnet.stepped import key_named

_T = TypeVar("_T")
MINER, HUNTER, JUDGE = (key_named(name).address for name in ("miner", "hunter", "judge"))
GAME, CLAIM = some_hash("game"), some_hash("claim")
START = Position(
    judge=JUDGE,
    challenger=HUNTER,
    defendant=MINER,
    fault=6,
    round=Round(2),
    claim=CLAIM,
    level=0,
    kind=LevelKind.COMMITTED,
    entered=True,
    depth=2,
    lists=1,
    count=4,
    index=0,
    node=some_hash("trace root"),
    roots=(some_hash("trace root"), ZERO32, ZERO32, ZERO32),
    picks=(0, 0, 0, 0),
    leaves=(ZERO32,) * 4,
)


class FakeEvents:
    """Stored events; stands in for an event reader."""

    def __init__(self, *events: Event) -> None:
        self._events = list(events)

    def add(self, *events: Event) -> None:
        self._events += events

    def events(self, kind: type[EventT], **_: object) -> list[EventT]:
        return [event for event in self._events if type(event) is kind]


def place(block: int, index: int = 0) -> dict[str, object]:
    """Where an event stands."""
    return {"block": block, "log_index": index, "tx_hash": some_hash(f"tx {block}/{index}")}


def opened(block: int = 10, game: Hash32 = GAME) -> GameOpened:
    return GameOpened(
        game=game,
        defendant=MINER,
        challenger=HUNTER,
        commitment=some_hash("commitment"),
        **place(block),  # type: ignore[arg-type]
    )


def moved(
    block: int, turn: Turn, *, position: Position = START, game: Hash32 = GAME, last: int = 70
) -> Moved:
    return Moved(
        game=game,
        position=position,
        turn=turn,
        last_block=last,
        **place(block, 1),  # type: ignore[arg-type]
    )


def claim(steps: int, *, wrong_from: int | None = None) -> Claim:
    """A round's leaves; from step `wrong_from` on they are others."""
    word = [
        b"right" if wrong_from is None or step < wrong_from else b"wrong"
        for step in range(steps + 2)
    ]
    leaves = [(word[step] + bytes([step])).ljust(64, b".") for step in range(steps + 2)]
    return Claim(steps=tuple(leaves[:-1]), encode=leaves[-1])


def entered(position: Position, level: int, tree: MerkleTree) -> Position:
    """A position at the root of a level."""
    roots = (*position.roots[:level], tree.root, *position.roots[level + 1 :])
    return replace(
        position,
        level=level,
        entered=True,
        depth=tree.depth,
        count=len(tree.leaves),
        index=0,
        node=tree.root,
        roots=roots,
    )


def picked(position: Position, child: int, nodes: Sequence[Hash32], down: int) -> Position:
    """A position after a pick; at a leaf it is noted, as the contract does."""
    after = replace(
        position,
        depth=position.depth - down,
        index=(position.index << down) | child,
        node=nodes[child],
    )
    if after.depth:
        return after
    level = after.level
    return replace(
        after,
        picks=(*after.picks[:level], after.index, *after.picks[level + 1 :]),
        leaves=(*after.leaves[:level], after.node, *after.leaves[level + 1 :]),
        level=level + 1,
        entered=False,
        index=0,
    )
