"""Games about computations, and the votes of committees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ledger.contracts.committee import Ruling
from ledger.contracts.disputes import GameOutcome, Position, Turn
from ledger.event_types.base import Event
from protocol.ids import Address, Epoch, Hash32, Round, Slot, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOpened(Event):
    """A game against `defendant`; `Moved` told its position just before."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    defendant: Address
    challenger: Address
    commitment: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved(Event):
    """The game stands here now; `turn` has until block `last_block` of the run's clock (0: no clock runs)."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    position: Position
    turn: Turn
    last_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPosted(Event):
    """All nodes some levels below `node`, from the left. Good for every game; empty if another game showed them."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    node: Hash32
    children: tuple[Hash32, ...]
    last_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelEntered(Event):
    """The root of a level of a claim, for every game that comes this way."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    path: Hash32
    root: Hash32
    preimage: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding(Event):
    """The judge was asked and takes its time."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOver(Event):
    """The end; what of the bond went to neither side was burned."""

    CONTRACT: ClassVar[str] = "Disputes"

    game: Hash32
    defendant: Address
    challenger: Address
    outcome: GameOutcome
    to_defendant: Units
    to_challenger: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteOpened(Event):
    """The validators of `epoch` vote on a game. Deadlines are blocks of the run's clock, inclusive."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    defendant: Address
    round: Round
    epoch: Epoch
    commit_deadline: int
    reveal_deadline: int
    total_stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCommitted(Event):
    """A validator committed to its vote."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    commitment: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRevealed(Event):
    """A validator's vote, with its stake."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    guilty: bool
    stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteClosed(Event):
    """What came of a vote; amounts are stakes."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    ruling: Ruling
    guilty: Units
    not_guilty: Units
    total_stake: Units


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterFined(Event):
    """A validator was silent, or voted against the majority (`dissent`)."""

    CONTRACT: ClassVar[str] = "Committee"

    game: Hash32
    account: Address
    slot: Slot
    dissent: bool
    taken: Units
