"""`syntience doctor`: what this machine lacks, before it matters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from syntience.cli.options import (
    ConfigOption,
    ListenHostOption,
    ListenPortOption,
    RpcUrlOption,
    RunOption,
    StateOption,
    layers_of,
)

_MARKS = {"ok": "ok   ", "warning": "warn ", "failure": "FAIL "}


def run_doctor(
    context: typer.Context,
    state: StateOption = None,
    listen_host: ListenHostOption = None,
    listen_port: ListenPortOption = None,
    rpc_url: RpcUrlOption = None,
    run: RunOption = None,
    config: ConfigOption = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="DIR", help="Where downloads are kept.")
    ] = None,
) -> None:
    """Check this machine: Python, packages, anvil, text, port, disk; with --rpc and --run the chain too.

    Changes nothing. Exit status 1 if something fails.
    """
    from syntience.config import DEFAULT_LISTEN_PORT, HIGHEST_PORT
    from syntience.corpus import default_cache_dir
    from syntience.doctor import Place, check_chain, examine
    from syntience.signals import run_interruptible

    layers = layers_of(context)
    findings = examine(
        Place(
            state_dir=layers.path("state", Path()),
            cache_dir=cache or default_cache_dir(os.environ),
            listen_host=layers.text("listen_host", "127.0.0.1"),
            listen_port=layers.integer(
                "listen_port", low=1, high=HIGHEST_PORT, default=DEFAULT_LISTEN_PORT
            ),
        )
    )
    url = layers.secret("rpc_url")
    if url is not None:
        run_file = layers.path("run") if layers.has("run") else None
        findings += (run_interruptible(check_chain(url.reveal(), run_file)),)
    for finding in findings:
        fix = f": {finding.fix}" if finding.fix else ""
        typer.echo(f"{_MARKS[finding.level.value]} {finding.name:<9} {finding.detail}{fix}")
    if any(finding.level.value == "failure" for finding in findings):
        raise typer.Exit(1)
