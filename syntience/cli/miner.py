"""`syntience miner`: the miner's process."""

from __future__ import annotations

import os
from functools import partial

import typer

from miner.settings import SAVE_EVERY_S, TrainingSettings
from syntience.cli.options import (
    BehaviourOption,
    CheckpointActivationsOption,
    LastEpochOption,
    SaveEveryOption,
    takes_curves_options,
)
from syntience.cli.role import run_job
from syntience.crew import started_by_torchrun, work_in_crew

app = typer.Typer(
    help="Mine: train on assigned text and publish what was learnt.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Mine: train on assigned text and publish what was learnt."""


@app.command("run")
@takes_curves_options
def run_miner(
    context: typer.Context,
    last_epoch: LastEpochOption = None,
    behaviour: BehaviourOption = "honest",
    save_every: SaveEveryOption = SAVE_EVERY_S,
    checkpoint_activations: CheckpointActivationsOption = False,
) -> None:
    """Mine in a run until stopped. Needs a slot: see `syntience stake deposit`."""
    training = TrainingSettings(
        save_every_s=save_every, checkpoint_activations=checkpoint_activations
    )
    run = partial(
        run_job,
        context,
        "miner",
        last_epoch=last_epoch,
        behaviour=behaviour,
        training=training,
    )
    if started_by_torchrun(os.environ):
        work_in_crew(os.environ, lambda crew: run(crew=crew))
    else:
        run()
