"""`syntience deploy`: founding a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from syntience.cli.options import (
    ConfigOption,
    KeystoreOption,
    PasswordFileOption,
    RpcUrlOption,
    layers_of,
    obtain_password,
)
from syntience.cli.owner import address_of, say


def deploy_run(
    context: typer.Context,
    spec: Annotated[
        Path,
        typer.Option(
            "--spec", metavar="FILE", help="The run's spec, or a run file to copy it from."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="The run file to write; it must not exist."),
    ],
    genesis_in: Annotated[
        int | None,
        typer.Option(
            "--genesis-in",
            metavar="SECONDS",
            min=1,
            help="When the first round starts, from now; else when the spec says.",
        ),
    ] = None,
    cap: Annotated[
        str | None,
        typer.Option(
            "--cap", metavar="TOKENS", help="The most that is ever minted; 10^9 by default."
        ),
    ] = None,
    allocation: Annotated[
        str | None,
        typer.Option(
            "--allocation",
            metavar="TOKENS",
            help="What the deployer gets at the start; 10^8 by default.",
        ),
    ] = None,
    governor: Annotated[
        str | None,
        typer.Option(
            "--governor",
            metavar="ADDRESS",
            help="Who may announce other terms, epochs ahead, and pause for a bounded time; nobody by default.",
        ),
    ] = None,
    rpc_url: RpcUrlOption = None,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    config: ConfigOption = None,
) -> None:
    """Deploy a run's contracts on any chain and write the run file, which is all that others need to join.

    Interrupted, it goes on with the same contracts when it is called again.
    """
    from ledger.keys import load_key_file
    from protocol.ids import ZERO_ADDRESS
    from syntience.amounts import exact_tokens, parse_tokens
    from syntience.config import log_settings, rpc_url_of
    from syntience.deployment import (
        DEFAULT_ALLOCATION,
        DEFAULT_CAP,
        Foundation,
        found,
        load_spec,
    )
    from syntience.logging import configure_logging
    from syntience.signals import run_interruptible

    layers = layers_of(context)
    url = rpc_url_of(layers)
    configure_logging(log_settings(layers))
    foundation = Foundation(
        spec=load_spec(spec),
        out=out,
        genesis_in_s=genesis_in,
        cap=DEFAULT_CAP if cap is None else parse_tokens(cap, flag="--cap"),
        allocation=DEFAULT_ALLOCATION
        if allocation is None
        else parse_tokens(allocation, flag="--allocation"),
        governor=ZERO_ADDRESS if governor is None else address_of(governor, "--governor"),
    )
    signer = load_key_file(layers.path("keystore"), obtain_password(layers.secret("password")))
    run_file = run_interruptible(found(foundation, rpc_url=url, signer=signer))
    say("run", "0x" + run_file.run.hex())
    say("run file", str(out))
    say("chain", f"{run_file.chain_id}, from block {run_file.deploy_block} on")
    say("genesis", str(run_file.spec.chain.genesis_time))
    say("governor", "nobody" if governor is None else foundation.governor)
    say("token", run_file.contracts.token)
    say("deployer", f"{signer.address} holds {exact_tokens(foundation.allocation)} tokens")
