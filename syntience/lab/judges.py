"""Validators of the laboratory: each keeps its own score book; what it reveals may be something else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from protocol.errors import OperatorError
from protocol.ids import Address, Slot
from scoring.weights import weight_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """What a validator knows when it fixes its weights.

    Attributes:
        honest: what its own score book says, u16 by miner slot.
        slots: who holds which miner slot.
        friends: miners that dishonest validators want to be paid.
        last: the consensus of the epoch before, the newest that anybody can know; zeros at first.
    """

    honest: tuple[int, ...]
    slots: Mapping[Slot, Address]
    friends: frozenset[Address]
    last: tuple[int, ...]


Judge = Callable[[Ballot], tuple[int, ...]]


def honest(ballot: Ballot) -> tuple[int, ...]:
    """What the book says."""
    return ballot.honest


def liar(ballot: Ballot) -> tuple[int, ...]:
    """The book's weights, but for its friends, who get as much again as all others together."""
    boosted = _boosted(ballot)
    return boosted if any(boosted) else ballot.honest


def clique(ballot: Ballot) -> tuple[int, ...]:
    """Everything to the friends, nothing to anybody else."""
    scores = dict.fromkeys(ballot.friends, 1.0)
    return weight_vector(scores, ballot.slots, slot_count=len(ballot.honest))


def weight_copier(ballot: Ballot) -> tuple[int, ...]:
    """The last consensus, brought to full weight; it never evaluates anybody."""
    scores = {miner: ballot.last[slot] ** 0.5 for slot, miner in ballot.slots.items()}
    return weight_vector(scores, ballot.slots, slot_count=len(ballot.honest))


def _boosted(ballot: Ballot) -> tuple[int, ...]:
    others = sum(w for slot, w in enumerate(ballot.honest) if not _is_friend(ballot, slot))
    squares = {
        miner: others / len(ballot.friends) if miner in ballot.friends else ballot.honest[slot]
        for slot, miner in ballot.slots.items()
    }
    scores = {miner: square**0.5 for miner, square in squares.items()}
    return weight_vector(scores, ballot.slots, slot_count=len(ballot.honest))


def _is_friend(ballot: Ballot, slot: int) -> bool:
    return ballot.slots.get(Slot(slot)) in ballot.friends


_KINDS: Mapping[str, Judge] = {
    "honest": honest,
    "liar": liar,
    "clique": clique,
    "weight-copier": weight_copier,
}
JUDGES: Sequence[str] = tuple(_KINDS)
"""Their names."""


def judge_named(kind: str) -> Judge:
    """Raises `OperatorError` for an unknown one."""
    try:
        return _KINDS[kind]
    except KeyError:
        raise OperatorError(
            f"unknown validator {kind!r}", f"choose one of {', '.join(_KINDS)}"
        ) from None
