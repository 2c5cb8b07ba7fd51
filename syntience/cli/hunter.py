"""`syntience hunter`: the hunter's process."""

from __future__ import annotations

import typer

from syntience.cli.options import (
    AllowPrivatePeersOption,
    AuditsOption,
    BehaviourOption,
    ConfigOption,
    ConfirmationsOption,
    DataOption,
    DisputesOption,
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

app = typer.Typer(help="Hunt: prove frauds for their bounties.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Hunt: prove frauds for their bounties."""


@app.command("run")
def run_hunter(
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
    disputes: DisputesOption = False,
    audits: AuditsOption = 1,
    log_level: LogLevelOption = None,
    log_json: LogJsonOption = None,
    config: ConfigOption = None,
) -> None:
    """Hunt in a run until stopped. Needs no slot; its key holds the tokens for its bonds and gets the bounties."""
    run_job(
        context,
        "hunter",
        last_epoch=last_epoch,
        behaviour=behaviour,
        disputes=disputes,
        audits=audits,
    )
