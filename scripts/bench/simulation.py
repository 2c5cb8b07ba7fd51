"""What the scoring rules cost: ratings of 256 peers beside OpenSkill's own, and 1,000 rounds of the laboratory with as many."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from openskill.models import PlackettLuce

from protocol.ids import Address, to_address
from scoring.rating import Rating, improvement_floor, prior, rate
from scripts.bench.figures import Figure, table, write_json
from syntience.lab.catalogue import scenario_named
from syntience.lab.run import run_scenario
from syntience.lab.scenario import RULES

PEERS = 256
REPEATS = 20


def main() -> None:
    """Measures, prints, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    figures = [*_ratings(), *_rounds()]
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _ratings() -> Iterator[Figure]:
    scores, ratings = _field()
    null = prior(RULES)
    ours = _best(lambda: rate(scores, ratings, null, RULES))
    model = PlackettLuce(
        mu=RULES.rating_mu, sigma=RULES.rating_sigma, beta=RULES.rating_beta, tau=RULES.rating_tau
    )
    teams = [[model.rating(mu=each.mu, sigma=each.sigma)] for each in (*ratings.values(), null)]
    results = [*scores.values(), improvement_floor(scores.values())]
    ranks = [float(sum(other > result for other in results)) for result in results]
    theirs = _best(lambda: model.rate(teams, ranks=ranks))
    print(f"ratings of {PEERS} peers: {ours:.2f} ms, OpenSkill {theirs:.2f} ms")
    yield Figure(name=f"ratings of {PEERS} peers", value=ours, goal=50, unit="ms")
    yield Figure(name="ratings / OpenSkill", value=ours / theirs, goal=1, unit="")


def _rounds() -> Iterator[Figure]:
    scenario = scenario_named("crowd")
    start, processor = time.perf_counter(), time.process_time()
    run_scenario(scenario, seeds=1)
    taken, worked = time.perf_counter() - start, time.process_time() - processor
    print(f"{scenario.rounds} rounds: {worked:.1f} s of one processor, {taken:.1f} s on the wall")
    # On one thread: what the wall's clock shows beyond it is what other programs took.
    yield Figure(name=f"{scenario.rounds} rounds of {PEERS} peers", value=worked, goal=60, unit="s")


def _field() -> tuple[dict[Address, float], dict[Address, Rating]]:
    rng = np.random.default_rng(1)
    peers = [to_address(number.to_bytes(20, "big")) for number in range(1, PEERS + 1)]
    scores = dict(zip(peers, rng.normal(0.05, 0.012, PEERS).tolist(), strict=True))
    beliefs = zip(rng.normal(25, 5, PEERS).tolist(), rng.uniform(1, 8, PEERS).tolist(), strict=True)
    ratings = {
        peer: Rating(mu=mu, sigma=sigma) for peer, (mu, sigma) in zip(peers, beliefs, strict=True)
    }
    return scores, ratings


def _best(work: Callable[[], object]) -> float:
    """The shortest of several runs, in milliseconds."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


if __name__ == "__main__":
    main()
