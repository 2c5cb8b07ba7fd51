"""Runs a scenario under some seeds, each with its twin, and says what holds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from protocol.errors import OperatorError
from protocol.ids import UNITS_PER_TOKEN
from syntience.lab.claims import Finding
from syntience.lab.history import EpochRow, History
from syntience.lab.mechanism import Mechanism
from syntience.lab.scenario import HONEST, MECHANISM, WORLDS, Scenario
from syntience.lab.subnet import Subnet, seed_of
from syntience.lab.world import World

_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One seed's run and what it showed."""

    seed: int
    history: History
    findings: Sequence[Finding]

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(finding.holds for finding in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A scenario's runs."""

    scenario: Scenario
    trials: Sequence[Trial]

    @property
    def holds(self) -> bool:
        """Whether every claim does under every seed."""
        return all(trial.holds for trial in self.trials)

    def to_json(self) -> bytes:
        """Everything in numbers; the same scenario and seeds give the same bytes."""
        scenario = self.scenario
        document = {
            "holds": self.holds,
            "rounds": scenario.rounds,
            "rounds_per_epoch": scenario.rounds_per_epoch,
            "scenario": scenario.name,
            "trials": [_trial_json(trial) for trial in self.trials],
            "world": scenario.world,
        }
        return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def resized(
    scenario: Scenario,
    *,
    rounds: int | None = None,
    peers: int | None = None,
    world: str | None = None,
) -> Scenario:
    """With another length, number of honest peers, or world; the twin too. Raises `OperatorError`."""
    if world is not None and world not in WORLDS:
        raise OperatorError(f"there is no world {world!r}", f"choose one of {', '.join(WORLDS)}")
    rounds = rounds or scenario.rounds
    if rounds < 2 * scenario.rounds_per_epoch:
        least = 2 * scenario.rounds_per_epoch
        raise OperatorError(f"{rounds} rounds are too few", f"{scenario.name} needs {least}")
    twin = scenario.twin
    return replace(
        scenario,
        rounds=rounds,
        world=world or scenario.world,
        peers=tuple(
            replace(group, count=peers) if peers and group.name == HONEST else group
            for group in scenario.peers
        ),
        twin=twin and resized(twin, rounds=rounds, peers=peers, world=world),
    )


def run_scenario(
    scenario: Scenario, *, seeds: int, jobs: int = 1, dataset: Path | None = None
) -> Outcome:
    """Runs seeds 0 … seeds - 1.

    Args:
        jobs: processes.
        dataset: folder of the prepared data set, for scenarios that train.
    """
    one = partial(run_trial, scenario, dataset)
    if jobs == 1 or seeds == 1:
        return Outcome(scenario=scenario, trials=[one(seed) for seed in range(seeds)])
    with ProcessPoolExecutor(min(jobs, seeds), mp_context=get_context("spawn")) as pool:
        return Outcome(scenario=scenario, trials=list(pool.map(one, range(seeds))))


def run_trial(scenario: Scenario, dataset: Path | None, seed: int) -> Trial:
    """One seed, and its twin where there is one: under the same beacons."""
    history = _played(scenario, dataset, scenario.name, seed)
    twin = _played(scenario.twin, dataset, scenario.name, seed) if scenario.twin else None
    return Trial(
        seed=seed,
        history=history,
        findings=[claim.judge(history, twin) for claim in scenario.claims],
    )


def _played(scenario: Scenario, dataset: Path | None, label: str, number: int) -> History:
    seed = seed_of(label, number)
    world: World
    if scenario.world == MECHANISM:
        world = Mechanism(scenario)
    else:
        # Training needs torch, which takes seconds to load.
        from syntience.lab.school import School
        from training.dataset import TokenDataset
        from training.threads import pin_threads

        assert dataset is not None
        pin_threads(1)
        world = School(scenario, TokenDataset.open(dataset), seed)
    return Subnet(scenario, world, seed).run()


def _trial_json(trial: Trial) -> dict[str, object]:
    history = trial.history
    return {
        "epochs": [_epoch_json(row, history) for row in history.epochs],
        "findings": [
            {
                "claim": finding.claim,
                "figure": _number(finding.figure),
                "holds": finding.holds,
                "target": finding.target,
            }
            for finding in trial.findings
        ],
        "seed": trial.seed,
    }


def _epoch_json(row: EpochRow, history: History) -> dict[str, object]:
    """Lists by group, in the order of its members. Pay in tokens."""
    accounts = {**history.miners, **history.validators}
    return {
        "epoch": row.epoch,
        "heldout": None if row.heldout is None else _number(row.heldout),
        "mu": {
            group: [_number(row.standings[a].mu) for a in members]
            for group, members in history.miners.items()
        },
        "pay": {
            group: [_number(row.pay.get(a, 0) / UNITS_PER_TOKEN) for a in members]
            for group, members in accounts.items()
        },
        "rating": {
            group: [_number(row.standings[a].ordinal) for a in members]
            for group, members in history.miners.items()
        },
        "round": row.round,
    }


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return round(value, _DIGITS) if math.isfinite(value) else None
