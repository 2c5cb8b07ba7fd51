"""Binary32 arithmetic against others, bit by bit: Python's twin against glibc and numpy, the contracts against the twin.

Then how far the published functions are from the true values. Exits with 1 on any difference.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ledger.connection import Connection
from scripts.bench.figures import Figure, table, write_json
from scripts.bench.float32_evm import BATCH, Harness
from scripts.bench.float32_operations import OPERATIONS, Operation, Results
from scripts.bench.float32_vectors import Words, vectors
from syntience.anvil import Anvil, AnvilOptions

_FLOOR = {"silu": 2.0**-143, "silu'": 2.0**-24}
"""Places that count at least so much: x times a subnormal sigmoid, and where the derivative crosses zero."""
_MOST_ERROR = {"exp": 1.1, "log": 1.0, "sigmoid": 2.0, "silu": 2.5, "silu'": 4.0, "rsqrt": 1.5}


class Differs(AssertionError):
    """Two that must be equal are not; the message shows the first case."""


def compare(operation: Operation, operands: Words, left: Results, right: Results) -> None:
    """Raises Differs where results differ."""
    (places,) = np.nonzero(left != right)
    if len(places):
        first = places[0]
        words = " ".join(f"{word:08x}" for word in operands[first])
        raise Differs(
            f"{operation.name} of {words}: {left[first]:x} and {right[first]:x}; {len(places)} differ"
        )


def against_oracle(operation: Operation, count: int, seed: int) -> int:
    """Compares the twin with the oracle; returns how many vectors."""
    seen = 0
    for operands in vectors(count, operation.operands, seed):
        compare(operation, operands, operation.computed(operands), operation.expected(operands))
        seen += len(operands)
    return seen


def error_of(operation: Operation, operands: Words) -> float:
    """The largest error of a function on these operands, in units in the last place of the true value."""
    assert operation.real is not None
    with np.errstate(all="ignore"):
        x = operands[:, 0].copy().view(np.float32).astype(np.float64)
        true = operation.real(x)
        found = operation.computed(operands).astype(np.uint32).view(np.float32).astype(np.float64)
        _, exponents = np.frexp(true)
    places = np.ldexp(1.0, np.maximum(exponents - 24, -149))
    places = np.maximum(places, _FLOOR.get(operation.name, 0.0))
    judged = np.isfinite(x) & np.isfinite(true) & np.isfinite(found)
    return float((np.abs(found - true) / places)[judged].max())


def main() -> None:
    """Compares, prints the figures, and ends with status 1 if something differs."""
    names = [operation.name for operation in OPERATIONS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--vectors", type=int, default=10_000_000, help="of each, for Python's twin"
    )
    parser.add_argument("--functions", type=int, default=500_000, help="of each, for its error")
    parser.add_argument("--evm", type=int, default=200_000, help="of each, on chain")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    chosen = [operation for operation in OPERATIONS if operation.name in options.only]
    figures = []
    for operation in chosen:
        if operation.real is None:
            seen = against_oracle(operation, options.vectors, options.seed)
            figures.append(
                _equal(f"{operation.name}: Python = glibc, numpy", seen, options.vectors)
            )
        else:
            figures.append(_error(operation, options.functions, options.seed))
    if options.evm:
        figures += asyncio.run(_chain(chosen, options.evm, options.seed))
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _equal(name: str, seen: int, goal: int) -> Figure:
    print(f"  {name}: {seen:,}", flush=True)
    return Figure(name=name, value=seen, goal=goal, unit="vectors", at_least=True)


def _error(operation: Operation, count: int, seed: int) -> Figure:
    worst = max(error_of(operation, part) for part in vectors(count, operation.operands, seed))
    print(f"  {operation.name}: largest error {worst:.3f} ulp", flush=True)
    goal = _MOST_ERROR[operation.name]
    return Figure(name=f"{operation.name}: largest error", value=worst, goal=goal, unit="ulp")


async def _chain(chosen: Sequence[Operation], count: int, seed: int) -> list[Figure]:
    """The contracts against the twin, on an anvil of its own."""
    harness = Harness.compiled()
    figures = []
    with tempfile.TemporaryDirectory(prefix="syntience-float32-") as folder:
        options = AnvilOptions(block_time_s=None, accounts=1)
        async with (
            Anvil.start(log_file=Path(folder) / "anvil.log", options=options) as anvil,
            await Connection.open(anvil.rpc_url, timeout_s=120) as connection,
        ):
            await connection.request("anvil_setCode", harness.placing())
            for operation in chosen:
                seen = 0
                for operands in vectors(count, operation.operands, seed, most=BATCH):
                    asked = harness.asking(OPERATIONS.index(operation), operands)
                    answer = harness.answered(str(await connection.request("eth_call", asked)))
                    compare(operation, operands, answer, operation.computed(operands))
                    seen += len(operands)
                figures.append(_equal(f"{operation.name}: Solidity = Python", seen, count))
    return figures


if __name__ == "__main__":
    main()
