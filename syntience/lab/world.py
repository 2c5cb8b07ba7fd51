"""The door between a subnet and what its peers do: numbers in one world, training in the other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from protocol.beacon import Draw
from protocol.ids import Address, Hash32, Round
from scoring.checks import Fault
from scoring.evaluation import Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Beacons:
    """The two beacons of a round."""

    round: Round
    assignment: Hash32
    evaluation: Hash32


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedIn:
    """What lies before the validators after the publish deadline.

    Attributes:
        accepted: whose work is in order.
        faults: what is visibly wrong, by miner.
        payload_roots: of every payload that was seen.
    """

    accepted: tuple[Address, ...]
    faults: Mapping[Address, tuple[Fault, ...]]
    payload_roots: Mapping[Address, Hash32]


class World(Protocol):
    """What the peers do in a round and what it does to losses."""

    def work(self, beacons: Beacons) -> HandedIn:
        """Everybody's work of a round."""
        ...

    def examine(
        self, peers: Sequence[Address], selected: Sequence[Address], draw: Draw
    ) -> tuple[Evaluation, ...]:
        """One validator's exam of the round, on samples of its draw."""
        ...

    def copies(self, evaluations: Sequence[Evaluation]) -> Collection[Address]:
        """Who is taken for a copy among the evaluated."""
        ...

    def apply(self, selected: Sequence[Address]) -> None:
        """The outer step with the selected updates; the round is over."""
        ...

    def heldout(self) -> float | None:
        """Loss of the agreed model, where there is one."""
        ...
