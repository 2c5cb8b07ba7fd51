"""Binary32 arithmetic against others, bit by bit: Python's twin against glibc and numpy, the contracts against the twin.

Then how far the published functions are from the true values. Exits with 1 on any difference.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from ledger.connection import Connection
from scripts.bench.figures import Figure, table, write_json
from scripts.bench.float32_evm import BATCH, Harness
from scripts.bench.float32_operations import OPERATIONS, Operation, Results
from scripts.bench.float32_vectors import Words, vectors
from syntience.anvil import Anvil, AnvilOptions

_EXPLICIT = {"silu'": 2.0**-24}
"""Where a function crosses zero, no error is small beside it: such are told in places of one."""
_MOST_ERROR = {"exp": 1.0, "log": 1.0, "sigmoid": 2.0, "silu": 2.5, "silu'": 4.0, "rsqrt": 1.5}


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
    places = np.maximum(places, _EXPLICIT.get(operation.name, 0.0))
    judged = np.isfinite(x) & np.isfinite(true) & np.isfinite(found)
    return float((np.abs(found - true) / places)[judged].max())


def main() -> None:
    """Compares, prints the figures, and ends with status 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--vectors", type=int, default=10_000_000, help="of each operation, for the twin"
    )
    parser.add_argument("--evm", type=int, default=200_000, help="of each operation, on chain")
    parser.add_argument(
        "--functions", type=int, default=500_000, help="of each function, for its error"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    figures = [
        *_twin(options.vectors, options.seed, options.workers),
        *_errors(options.functions, options.seed),
        *asyncio.run(_chain(options.evm, options.seed)),
    ]
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _twin(count: int, seed: int, workers: int) -> Iterator[Figure]:
    checked = [operation for operation in OPERATIONS if operation.oracle is not None]
    places = [OPERATIONS.index(operation) for operation in checked]
    with ProcessPoolExecutor(workers) as pool:
        for operation, seen in zip(
            checked,
            pool.map(_one_twin, places, [count] * len(places), [seed] * len(places)),
            strict=True,
        ):
            name = f"{operation.name}: Python = glibc, numpy"
            print(f"  {name}: {seen:,}", flush=True)
            yield Figure(name=name, value=seen, goal=count, unit="vectors", at_least=True)


def _one_twin(place: int, count: int, seed: int) -> int:
    return against_oracle(OPERATIONS[place], count, seed)


def _errors(count: int, seed: int) -> Iterator[Figure]:
    for operation in OPERATIONS:
        if operation.real is None:
            continue
        worst = max(error_of(operation, part) for part in vectors(count, operation.operands, seed))
        goal = _MOST_ERROR[operation.name]
        unit = "places of 1" if operation.name in _EXPLICIT else "ulp"
        yield Figure(name=f"{operation.name}: largest error", value=worst, goal=goal, unit=unit)


async def _chain(count: int, seed: int) -> list[Figure]:
    """The contracts against the twin, on an anvil of its own."""
    harness = Harness.compiled()
    found = []
    with tempfile.TemporaryDirectory(prefix="syntience-float32-") as folder:
        options = AnvilOptions(block_time_s=None, accounts=1)
        async with (
            Anvil.start(log_file=Path(folder) / "anvil.log", options=options) as anvil,
            await Connection.open(anvil.rpc_url, timeout_s=120) as connection,
        ):
            await connection.request("anvil_setCode", harness.placing())
            for number, operation in enumerate(OPERATIONS):
                seen = 0
                for part in vectors(count, operation.operands, seed):
                    for start in range(0, len(part), BATCH):
                        operands = part[start : start + BATCH]
                        answer = await connection.request(
                            "eth_call", harness.asking(number, operands)
                        )
                        compare(
                            operation,
                            operands,
                            harness.answered(str(answer)),
                            operation.computed(operands),
                        )
                    seen += len(part)
                name = f"{operation.name}: Solidity = Python"
                print(f"  {name}: {seen:,}", flush=True)
                found.append(
                    Figure(name=name, value=seen, goal=count, unit="vectors", at_least=True)
                )
    return found


if __name__ == "__main__":
    main()
