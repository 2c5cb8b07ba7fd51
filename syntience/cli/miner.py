"""`syntience miner`: the miner's process."""

from __future__ import annotations

import typer

from syntience.cli.options import (
    AllowPrivatePeersOption,
    BehaviourOption,
    ConfigOption,
    ConfirmationsOption,
    DataOption,
    KeystoreOption,
    LastEpochOption,
    ListenHostOption,
    ListenPortOption,
    LogJsonOption,
    LogLevelOption,
    MetricsPortOption,
    PasswordFileOption,
    PublicEndpointOption,
    RpcUrlOption,
    RunOption,
    StateOption,
)
from syntience.cli.role import run_job

app = typer.Typer(
    help="Mine: train on assigned text and publish what was learnt.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Mine: train on assigned text and publish what was learnt."""


@app.command("run")
def run_miner(
    context: typer.Context,
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    state: StateOption = None,
    data: DataOption = None,
    listen_host: ListenHostOption = None,
    listen_port: ListenPortOption = None,
    public_endpoint: PublicEndpointOption = None,
    metrics_port: MetricsPortOption = None,
    allow_private_peers: AllowPrivatePeersOption = None,
    confirmations: ConfirmationsOption = None,
    last_epoch: LastEpochOption = None,
    behaviour: BehaviourOption = "honest",
    log_level: LogLevelOption = None,
    log_json: LogJsonOption = None,
    config: ConfigOption = None,
) -> None:
    """Mine in a run until stopped. Needs a slot: see `syntience stake deposit`."""
    run_job(context, "miner", last_epoch=last_epoch, behaviour=behaviour)
