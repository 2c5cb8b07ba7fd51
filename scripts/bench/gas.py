"""Gas of real transactions, beside what was promised and what others pay (`scripts/bench/gas --help`).

Receipts count what `forge snapshot` leaves out: the transaction's own cost and its calldata. The state is that of a run
that has gone on for a while: slots are used again, receivers hold tokens already. Exits with 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ledger.contracts.registry import Role
from protocol.ids import Units
from scripts.bench.evidence import a_bitmap, objective_faults
from scripts.bench.figures import Figure, table, write_json
from scripts.bench.money import settling, slashing, staking
from scripts.bench.play import games
from scripts.bench.requests import data_requests
from scripts.bench.scale import claim_cost, epoch_cost, growth, per_transaction, warm_up
from scripts.bench.stage import opened
from scripts.bench.subnet import MOST_MINERS, SPENDERS, TOKEN, Subnet, measured_spec

_GENESIS_IN_S = 100_000
_VALIDATORS = 4
_FEW = 16


async def measure(sizes: list[int]) -> list[tuple[str, list[Figure]]]:
    """All figures, by part."""
    async with _small() as subnet:
        money = [*await staking(subnet), *await slashing(subnet), *await settling(subnet)]
        faults = [*await objective_faults(subnet), await a_bitmap(subnet)]
        disputes = [*await games(subnet), *await data_requests(subnet)]
    async with _small() as subnet:
        costs = [await epoch_cost(subnet, size) for size in sizes]
        each = [figure for cost in costs for figure in per_transaction(cost)]
        each.append(await claim_cost(subnet))
        each.append(await a_bitmap(subnet))
    return [
        ("Stakes and pay", money),
        ("Faults that one transaction proves, slash included", faults),
        ("Games, and requests for data", disputes),
        ("What carries something of every miner", each),
        (f"An epoch of two rounds, {_VALIDATORS} validators", growth(costs)),
    ]


@asynccontextmanager
async def _small() -> AsyncIterator[Subnet]:
    """A small subnet that has gone on for a while, on a chain of its own."""
    async with opened(measured_spec(int(time.time()) + _GENESIS_IN_S)) as stage:
        subnet = Subnet(stage=stage)
        await subnet.fund([stage.deployer], Units(TOKEN), SPENDERS)
        await subnet.add(Role.VALIDATOR, _VALIDATORS)
        await subnet.add(Role.MINER, _FEW)
        await warm_up(subnet)
        yield subnet


def main() -> None:
    """Measure, print, and say by the exit status whether all goals hold."""
    parser = argparse.ArgumentParser(prog="scripts/bench/gas", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--miners",
        type=lambda text: sorted({int(part) for part in text.split(",")}),
        default=[16, 256, MOST_MINERS],
        help=f"sizes of the subnet for the second part, from {_FEW} to {MOST_MINERS}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    arguments = parser.parse_args()
    started = time.monotonic()
    parts = asyncio.run(measure(arguments.miners))
    for title, figures in parts:
        print(f"\n{title}\n{table(figures)}")
    everything = [figure for _, figures in parts for figure in figures]
    if arguments.json:
        write_json(arguments.json, everything)
    missed = [figure.name for figure in everything if not figure.holds]
    print(f"\n{len(everything)} figures in {time.monotonic() - started:.0f} s")
    if missed:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
