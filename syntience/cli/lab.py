"""`syntience lab`: what the scoring rules pay for, tried on a simulated subnet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from syntience.lab.run import Outcome
    from syntience.lab.scenario import Scenario

app = typer.Typer(help="Try the scoring rules on a simulated subnet.", no_args_is_help=True)


@app.command("list")
def list_scenarios() -> None:
    """List the scenarios."""
    from rich.console import Console

    from syntience.lab.catalogue import SCENARIOS
    from syntience.lab.table import catalogue

    Console().print(catalogue(SCENARIOS.values()))


@app.command("run")
def run_scenarios(
    names: Annotated[
        list[str],
        typer.Argument(metavar="SCENARIO…", help="As `syntience lab list` names them, or `all`."),
    ],
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="How many; each scenario's own by default.")
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, help="Another length.")] = None,
    peers: Annotated[
        int | None, typer.Option("--peers", min=1, help="Another number of honest peers.")
    ] = None,
    world: Annotated[
        str | None,
        typer.Option("--world", help="mechanism or training; each scenario's own by default."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="A text, or a folder of texts, to train on; Shakespeare by default."
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Everything in numbers.")
    ] = None,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", metavar="FILE", help="Ratings and pay as a picture, .svg or .png."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Seeds run at once.")] = 1,
) -> None:
    """Run scenarios and show whether their claims hold; status 1 if one doesn't."""
    from rich.console import Console

    from syntience.lab.catalogue import SCENARIOS, scenario_named
    from syntience.lab.run import resized, run_scenario
    from syntience.lab.table import render

    wanted = [*SCENARIOS] if names == ["all"] else names
    scenarios = [
        resized(scenario_named(n), rounds=rounds, peers=peers, world=world) for n in wanted
    ]
    folder = _dataset(scenarios, data)
    console, holds = Console(), True
    for scenario in scenarios:
        outcome = run_scenario(scenario, seeds=seeds or scenario.seeds, jobs=jobs, dataset=folder)
        console.print(render(outcome))
        holds = holds and outcome.holds
        _write(outcome, json, svg, several=len(scenarios) > 1)
    raise typer.Exit(0 if holds else 1)


def _dataset(scenarios: list[Scenario], text: Path | None) -> Path | None:
    from syntience.corpus import default_cache_dir
    from syntience.lab.scenario import TRAINING

    if all(scenario.world != TRAINING for scenario in scenarios):
        return None
    from syntience.devnet.data import prepare_data
    from syntience.lab.school import TINY

    cache_dir = default_cache_dir(os.environ)
    return prepare_data(TINY, text, cache_dir=cache_dir, work=cache_dir / "lab")[0]


def _write(outcome: Outcome, json: Path | None, svg: Path | None, *, several: bool) -> None:
    from syntience.errors import ExtraMissing
    from syntience.files import write_atomically

    if json is not None:
        write_atomically(_own(json, outcome, several=several), outcome.to_json())
    if svg is None:
        return
    try:
        from syntience.lab.picture import save
    except ImportError as error:
        raise ExtraMissing(
            "drawing needs matplotlib", "install it: pip install 'syntience[curves]'"
        ) from error
    save(outcome, _own(svg, outcome, several=several))


def _own(path: Path, outcome: Outcome, *, several: bool) -> Path:
    """A file for each scenario where there are several: FILE-scenario.json."""
    return path.with_stem(f"{path.stem}-{outcome.scenario.name}") if several else path
