"""`syntience validator`: the validator's process."""

from __future__ import annotations

import typer

from syntience.cli.options import (
    BehaviourOption,
    LastEpochOption,
    takes_curves_options,
)
from syntience.cli.role import run_job

app = typer.Typer(help="Validate: score the miners and keep the run going.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Validate: score the miners and keep the run going."""


@app.command("run")
@takes_curves_options
def run_validator(
    context: typer.Context,
    last_epoch: LastEpochOption = None,
    behaviour: BehaviourOption = "honest",
) -> None:
    """Validate a run until stopped. Needs a slot: see `syntience stake deposit`."""
    run_job(context, "validator", last_epoch=last_epoch, behaviour=behaviour)
