"""Games about computations as the chain shows them, and what their shape means.

Level 0 of a game is the submission's trace: the start, the state after every n-th inner step, what was
sent. Level 1, where an interval has several inner steps, is the state after each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ledger.contracts.disputes import Position, Turn
from ledger.event_types import Deciding, GameOpened, GameOver, ListPosted, Moved
from ledger.events import EventReader
from protocol.ids import Address, Hash32, Round
from protocol.merkle import MerkleTree, leaf_hash
from protocol.spec import InnerSpec
from training.replay import trace_of

_Move = Moved | ListPosted | Deciding | GameOver
LIST_DEPTH = 5
"""Levels of a tree that one list opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """A game and whose turn it is, until block `last_block` of the run's clock (0: no clock runs)."""

    id: Hash32
    position: Position
    commitment: Hash32
    turn: Turn
    last_block: int
    over: GameOver | None

    @property
    def defendant(self) -> Address:
        """The miner whose work is disputed."""
        return self.position.defendant

    @property
    def challenger(self) -> Address:
        """Who disputes it."""
        return self.position.challenger

    @property
    def round(self) -> Round:
        """The round of the work."""
        return self.position.round


def games_of(events: EventReader) -> list[Game]:
    """Every game, in the order in which they were opened."""
    moves: dict[Hash32, list[_Move]] = {}
    found: list[_Move] = [
        *events.events(Moved),
        *events.events(ListPosted),
        *events.events(Deciding),
        *events.events(GameOver),
    ]
    for event in found:
        moves.setdefault(event.game, []).append(event)
    return [_game(opened, moves.get(opened.game, [])) for opened in events.events(GameOpened)]


def posted_list(events: EventReader, position: Position) -> tuple[Hash32, ...] | None:
    """The nodes below a game's disputed one, as anybody posted them in any game."""
    width = 1 << list_depth(position)
    for event in reversed(events.events(ListPosted)):
        if event.node == position.node and len(event.children) == width:
            return event.children
    return None


def listed_leaf(events: EventReader, root: Hash32, *, depth: int, index: int) -> Hash32 | None:
    """A leaf below a root of this depth, as posted lists show it; None if they don't."""
    node = root
    lists = {(each.node, len(each.children)): each.children for each in events.events(ListPosted)}
    while depth:
        down = min(LIST_DEPTH, depth)
        children = lists.get((node, 1 << down))
        if children is None:
            return None
        depth -= down
        node = children[(index >> depth) % (1 << down)]
    return node


def list_depth(position: Position) -> int:
    """Levels that the next list opens."""
    return min(LIST_DEPTH, position.depth)


class Part(Enum):
    """Which kind of leaf a game came down to."""

    START = auto()
    STEP = auto()
    ENCODE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disputed:
    """What a game came down to; of `STEP`, which inner step of the round, from 1 on."""

    part: Part
    step: int = 0


def intervals(inner: InnerSpec) -> list[range]:
    """The inner steps, from 1 on, of each interval of a trace."""
    every = inner.trace_every
    return [
        range(first, min(first + every, inner.steps + 1))
        for first in range(1, inner.steps + 1, every)
    ]


def disputed(position: Position, inner: InnerSpec) -> Disputed:
    """What a game that is bisected is about."""
    steps, interval = intervals(inner), position.picks[0]
    if interval == 0:
        return Disputed(part=Part.START)
    if interval > len(steps):
        return Disputed(part=Part.ENCODE)
    inside = position.picks[1] if len(steps[interval - 1]) > 1 else 0
    return Disputed(part=Part.STEP, step=steps[interval - 1][inside])


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """All leaves of a round as one side has them, 64 bytes each.

    Attributes:
        steps: by number of inner steps taken; the first is the start's.
        encode: what was sent.
    """

    steps: tuple[bytes, ...]
    encode: bytes

    def level(self, position: Position, inner: InnerSpec) -> MerkleTree:
        """The tree of the level that a game is descending."""
        if position.level == 0:
            return tree_over(self.trace(inner))
        return tree_over([self.steps[step] for step in intervals(inner)[position.picks[0] - 1]])

    def trace(self, inner: InnerSpec) -> tuple[bytes, ...]:
        """What a submission's trace shows of it."""
        return trace_of(self.steps, self.encode, trace_every=inner.trace_every)


def tree_over(leaves: Sequence[bytes]) -> MerkleTree:
    """The tree over leaves of 64 bytes."""
    return MerkleTree([leaf_hash(leaf) for leaf in leaves])


def nodes_below(tree: MerkleTree, position: Position) -> tuple[Hash32, ...]:
    """The list below a game's disputed node, in one side's tree of the level."""
    down = list_depth(position)
    return tree.nodes(position.depth - down, position.index << down, 1 << down)


def first_difference(mine: Sequence[Hash32], theirs: Sequence[Hash32]) -> int | None:
    """The first place at which two lists differ; None if they don't."""
    for place, (ours, posted) in enumerate(zip(mine, theirs, strict=True)):
        if ours != posted:
            return place
    return None


def siblings_up(nodes: Sequence[Hash32], place: int) -> tuple[Hash32, ...]:
    """From a node of a list up to the node above the whole list, bottom-up."""
    return MerkleTree(nodes).proof(place)


def _game(opened: GameOpened, moves: list[_Move]) -> Game:
    moves.sort(key=lambda event: (event.block, event.log_index))
    position = next(event.position for event in reversed(moves) if isinstance(event, Moved))
    turn, last_block, over = Turn.NONE, 0, None
    for event in moves:
        match event:
            case Moved():
                turn, last_block = event.turn, event.last_block
            case ListPosted():
                turn, last_block = Turn.CHALLENGER_PICKS, event.last_block
            case Deciding():
                turn, last_block = Turn.JUDGE_DECIDES, 0
            case GameOver():
                turn, last_block, over = Turn.OVER, 0, event
    return Game(
        id=opened.game,
        position=position,
        commitment=opened.commitment,
        turn=turn,
        last_block=last_block,
        over=over,
    )
