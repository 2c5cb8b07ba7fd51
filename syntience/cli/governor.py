"""`syntience governor`: what the governor of a run may do, and that anyone may end a pause that lasts too long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from syntience.cli.options import (
    layers_of,
    takes_account_options,
)
from syntience.cli.owner import address_of, say, with_owner

app = typer.Typer(
    help="Pause a run, announce other terms; --keystore is the governor's key.",
    no_args_is_help=True,
)


@app.command("pause")
@takes_account_options
def stop(
    context: typer.Context,
) -> None:
    """Stop the run's clocks: every window and every exit at once, for a bounded time."""
    from syntience.governing import pause

    halt = with_owner(layers_of(context), pause)
    say("paused", f"since {halt.since}")
    say("at most", f"{halt.most_s:,} s; then anyone can end it")


@app.command("resume")
@takes_account_options
def go_on(
    context: typer.Context,
) -> None:
    """Let the clocks go on; any key may once a pause has lasted as long as it may."""
    from syntience.governing import resume

    after = with_owner(layers_of(context), resume)
    say("resumed", f"pauses took {after.total_s:,} s in all")


@app.command("announce")
@takes_account_options
def announce_terms(
    context: typer.Context,
    spec: Annotated[
        Path,
        typer.Option("--spec", metavar="FILE", help="The new spec, or a run file that has it."),
    ],
    from_epoch: Annotated[
        int | None,
        typer.Option(
            "--from-epoch", metavar="N", min=1, help="When it starts; by default as soon as may be."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="ADDRESS",
            help="The contract that decides games about a computation; by default the present one.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Also write the run file that nodes need from then on."
        ),
    ] = None,
) -> None:
    """Announce that the run goes by another spec from an epoch on. Who does not like it can leave before."""
    from ledger.runs import load_run_file, write_run_file
    from protocol.ids import Epoch
    from syntience.deployment import load_spec
    from syntience.files import require_writable
    from syntience.governing import announce

    new = load_spec(spec)
    if out is not None:
        require_writable(out)
    named = None if judge is None else address_of(judge, "--judge")
    first = None if from_epoch is None else Epoch(from_epoch)
    layers = layers_of(context)
    terms = with_owner(layers, lambda owner: announce(owner, new, from_epoch=first, judge=named))
    if out is not None:
        write_run_file(out, replace(load_run_file(layers.path("run")), spec=new))
    say("announced", f"spec 0x{terms.spec_hash.hex()} from epoch {terms.from_epoch} on")
    say("judge", terms.judge)


@app.command("withdraw")
@takes_account_options
def take_back(
    context: typer.Context,
) -> None:
    """Take back the terms announced last, unless they are those of this epoch or the next."""
    from syntience.governing import withdraw_announced

    from_epoch, spec_hash = with_owner(layers_of(context), withdraw_announced)
    say("withdrawn", f"spec 0x{spec_hash.hex()}, which was to start with epoch {from_epoch}")
