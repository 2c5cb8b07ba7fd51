"""`syntience ledger`: the public data ledger of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from syntience.cli.options import ConfigOption, RpcUrlOption, RunOption, layers_of

app = typer.Typer(help="Check a copy of the public data ledger.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Check a copy of the public data ledger."""


@app.command("verify")
def verify_ledger(
    context: typer.Context,
    folder: Annotated[
        Path,
        typer.Option(
            "--folder", metavar="DIR", help="The copy: `ledger` in a validator's --state."
        ),
    ],
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    config: ConfigOption = None,
) -> None:
    """Check every byte of a copy, and with --rpc every line against the chain."""
    from syntience.ledger_check import check_ledger
    from syntience.signals import run_interruptible

    layers = layers_of(context)
    audit = run_interruptible(
        check_ledger(folder, run_file=layers.path("run"), rpc_url=layers.secret("rpc_url"))
    )
    typer.echo(f"{audit.entries} events, the last hash is {audit.head.hex()}")
    typer.echo(
        f"{len(audit.disclosures)} submissions disclosed, each signed and committed on chain"
    )
