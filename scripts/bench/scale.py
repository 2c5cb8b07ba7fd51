"""What an epoch costs as the subnet grows: each transaction, and all that the epoch takes together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.contracts.registry import Role
from protocol.ids import Epoch
from scripts.bench.figures import Figure
from scripts.bench.subnet import Subnet

_OWN = "EpochManager.commit"
_ATTEST = "EpochManager.attest"
_REVEAL = "ScoreRegistry.revealWeights"
_BIT_GAS = 4
"""A byte of calldata costs 16 gas, in an event 8, to hash and copy under 1: an eighth of it, rounded up."""
_REST_PER_CENT = 0.5
"""Amounts and sums have more or fewer zero bytes; nothing else may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCost:
    """An epoch at one size. `worst` and `total` are by function.

    Attributes:
        commit: of a miner that took part for a while; others use their places for the first time.
    """

    miners: int
    commit: int
    worst: dict[str, int]
    total: dict[str, int]

    @property
    def rest(self) -> int:
        """All but attestations and reveals."""
        return sum(gas for name, gas in self.total.items() if name not in (_OWN, _ATTEST, _REVEAL))

    @property
    def common(self) -> int:
        """All but the miners' own commits."""
        return sum(gas for name, gas in self.total.items() if name != _OWN)


async def warm_up(subnet: Subnet) -> None:
    """Plays until every place of every ring was used; none keeps more than the vault's stakes."""
    epochs = (await subnet.stage.read("StakeVault.epochsKnown")).integer(0)
    for _ in range(epochs + 4):
        await subnet.play_epoch()


async def epoch_cost(subnet: Subnet, miners: int) -> EpochCost:
    """Grows to so many miners and plays an epoch in the steady state."""
    await subnet.add(Role.MINER, miners - len(subnet.miners))
    await subnet.play_epoch()
    subnet.stage.spent.clear()
    await subnet.play_epoch()
    by_function: dict[str, list[int]] = defaultdict(list)
    for name, gas in subnet.stage.spent:
        by_function[name].append(gas)
    return EpochCost(
        miners=miners,
        commit=min(by_function[_OWN]),
        worst={name: max(gas) for name, gas in by_function.items()},
        total={name: sum(gas) for name, gas in by_function.items()},
    )


async def claim_cost(subnet: Subnet) -> Figure:
    """A first claim in the largest tree."""
    count = len(subnet.miners)
    claim = subnet.claim(Epoch(subnet.epoch - 1), count - 1)
    gas = (await subnet.stage.send_all([claim]))[0].gas_used
    return Figure(name=f"claim, first, {count} miners", value=gas, goal=92_000)


def per_transaction(cost: EpochCost) -> list[Figure]:
    """The dearest transaction of each kind that carries something of every miner."""
    size = f"{cost.miners} miners"
    return [
        Figure(
            name=f"commit, {size}",
            value=cost.commit,
            goal=32_000,
            anchors={"a bare overwrite": 28_900},
        ),
        Figure(
            name=f"attest, {size}",
            value=cost.worst[_ATTEST],
            goal=60_000,
            anchors={"a bare overwrite": 52_000},
        ),
        Figure(name=f"reveal, {size}", value=cost.worst[_REVEAL], goal=45_000 + 100 * cost.miners),
    ]


def growth(costs: Sequence[EpochCost]) -> list[Figure]:
    """What a further miner costs, and what it does not."""
    least, most = costs[0], costs[-1]
    more = most.miners - least.miners
    figures = [
        Figure(
            name=f"an epoch, {cost.miners} miners, without commits and claims", value=cost.common
        )
        for cost in costs
    ] + [
        Figure(name=f"of it neither attested nor revealed, {cost.miners} miners", value=cost.rest)
        for cost in costs
    ]
    if not more:
        return figures
    return [
        *figures,
        Figure(
            name="that part's growth",
            value=100 * (most.rest - least.rest) / least.rest,
            goal=_REST_PER_CENT,
            unit="%",
        ),
        Figure(
            name="a miner more in a reveal",
            value=(most.worst[_REVEAL] - least.worst[_REVEAL]) / more,
            goal=100,
        ),
        Figure(
            name="a miner more in an attestation",
            value=(most.worst[_ATTEST] - least.worst[_ATTEST]) / more,
            goal=_BIT_GAS,
        ),
    ]
