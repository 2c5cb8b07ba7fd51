"""What the commands of the three roles share: read the settings, open the key, work until a signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from miner.settings import TrainingSettings
from syntience.cli.options import layers_of, obtain_password

if TYPE_CHECKING:
    from training.crew import Crew


def run_job(
    context: typer.Context,
    trade: str,
    *,
    last_epoch: int | None,
    behaviour: str,
    disputes: bool = False,
    audits: int = 1,
    training: TrainingSettings | None = None,
    crew: Crew | None = None,
) -> None:
    """Runs a role in this process until it is stopped or done."""
    from ledger.keys import load_key_file
    from protocol.ids import Epoch
    from syntience.config import node_settings
    from syntience.logging import configure_logging
    from syntience.signals import run_interruptible

    settings = node_settings(layers_of(context, role=trade))
    configure_logging(settings.logs)
    signer = load_key_file(settings.keystore, obtain_password(settings.password))

    # Only now: it takes seconds to import, and a mistyped password shall not.
    from syntience.roles import Job, Trade, run_role

    job = Job(
        trade=Trade(trade),
        behaviour=behaviour,
        disputes=disputes,
        audits=audits,
        training=training or TrainingSettings(),
        crew=crew,
        last_epoch=None if last_epoch is None else Epoch(last_epoch),
    )
    run_interruptible(run_role(job, settings, signer))
