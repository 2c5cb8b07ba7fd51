"""What happened in one run of a scenario, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from protocol.ids import Address, Epoch, Round, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One peer's standing with the validators at the end of an epoch; means over the honest ones.

    Attributes:
        ordinal: of its rating.
        mu: its proof of computation.
        score: the peer score, 0 if it is worth nothing.
    """

    ordinal: float
    mu: float
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRow:
    """An epoch's end.

    Attributes:
        weights: consensus weight of each miner.
        pay: of each account, miners and validators alike, in base units.
        accepted: rounds of the epoch in which each miner was accepted.
        heldout: loss of the agreed model in nats per token; None where no model is trained.
    """

    epoch: Epoch
    round: Round
    weights: Mapping[Address, int]
    pay: Mapping[Address, Units]
    accepted: Mapping[Address, int]
    standings: Mapping[Address, Standing]
    heldout: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A whole run.

    Attributes:
        miners, validators: accounts by group.
    """

    miners: Mapping[str, tuple[Address, ...]]
    validators: Mapping[str, tuple[Address, ...]]
    epochs: Sequence[EpochRow]

    @property
    def last_half(self) -> Sequence[EpochRow]:
        """The epochs over which pay is judged."""
        return self.epochs[len(self.epochs) // 2 :]

    def pay(self, account: Address) -> int:
        """What an account earned in the last half, in base units."""
        return sum(row.pay.get(account, 0) for row in self.last_half)

    def pays(self, group: str) -> list[int]:
        """The same for each member of a group of miners or validators."""
        accounts = self.miners.get(group) or self.validators[group]
        return [self.pay(account) for account in accounts]

    def median_pay(self, groups: Iterable[str]) -> float:
        """The median over all members of the groups."""
        return float(median(pay for group in groups for pay in self.pays(group)))
