"""`syntience devnet`: a whole subnet on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from syntience.devnet.run import Finished

app = typer.Typer(help="A whole subnet on this machine.", no_args_is_help=True)

_DEFAULT_CHEATS = "copier,noise,equivocator,wrong-data"


@app.callback()
def _group() -> None:
    """A whole subnet on this machine."""


@app.command("run")
def run(
    miners: Annotated[int, typer.Option("--miners", help="Honest ones; cheats come on top.")] = 4,
    validators: Annotated[int, typer.Option("--validators", help="Validators.")] = 3,
    hunters: Annotated[int, typer.Option("--hunters", help="Bounty hunters.")] = 1,
    epochs: Annotated[int, typer.Option("--epochs", help="Epochs to run.")] = 3,
    rounds_per_epoch: Annotated[
        int, typer.Option("--rounds-per-epoch", help="Rounds in an epoch.")
    ] = 3,
    cheat: Annotated[
        str,
        typer.Option(
            "--cheat",
            metavar="KIND[,KIND…]",
            help="One more miner, validator or hunter of each kind that cheats, or none.",
        ),
    ] = _DEFAULT_CHEATS,
    disputes: Annotated[
        bool,
        typer.Option("--disputes", help="Hunters open games about work that they can't reproduce."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Fixes keys and the first weights.")] = 1,
    model: Annotated[str, typer.Option("--model", help="tiny, default or small.")] = "default",
    start: Annotated[
        Path | None,
        typer.Option(
            "--start",
            metavar="DIR",
            help="Fine-tune the model in this folder, with its tokenizer; --model still says how.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="PATH",
            help="Your own text: txt, md, jsonl or parquet, file or folder.",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PART.FIELD=VALUE",
            help="Another value of the run's spec, such as outer.rule=demo; may be repeated.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Where to write the report.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Where to draw the last table.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave run file, chain, keys and states behind.")
    ] = False,
    kill_every: Annotated[
        int | None,
        typer.Option(
            "--kill-every",
            metavar="SECONDS",
            help="SIGKILL an honest process about so often, to see it come back.",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work",
            metavar="DIR",
            help="Where runs have their folders; ~/.cache/syntience/devnet.",
        ),
    ] = None,
) -> None:
    """Start a chain, miners, validators and hunters, and watch them to the last reward.

    Ends with status 0 only if the run held what it promises.
    """
    from rich.console import Console

    from hunter.cheats import CHEATS as HUNTERS
    from miner.cheats import CHEATS as MINERS
    from syntience.corpus import default_cache_dir
    from syntience.devnet.run import run_devnet
    from syntience.devnet.settings import DevnetSettings, parse_cheats
    from syntience.display import Display
    from syntience.signals import run_interruptible
    from validator.cheats import CHEATS as VALIDATORS

    cheats = parse_cheats(cheat, (*MINERS, *VALIDATORS, *HUNTERS))
    cache_dir = default_cache_dir(os.environ)
    settings = DevnetSettings(
        miners=miners,
        validators=validators,
        hunters=hunters,
        epochs=epochs,
        rounds_per_epoch=rounds_per_epoch,
        cheats=tuple(kind for kind in cheats if kind in MINERS),
        rogue_validators=tuple(kind for kind in cheats if kind in VALIDATORS),
        rogue_hunters=tuple(kind for kind in cheats if kind in HUNTERS),
        disputes=disputes,
        seed=seed,
        model=model,
        changes=tuple(changes or ()),
        work=(work or cache_dir / "devnet").absolute(),
        start=start.absolute() if start else None,
        data=data,
        keep=keep,
        kill_every_s=kill_every,
        json=json,
        svg=svg,
    )
    with Display(Console()) as display:
        finished = run_interruptible(run_devnet(settings, cache_dir=cache_dir, display=display))
    _tell(finished)
    if not finished.ending.kept:
        raise typer.Exit(1)


def _tell(finished: Finished) -> None:
    """The verdict list, and where to look further."""
    for promise in finished.ending.promises:
        typer.echo(f"{'✓' if promise.holds else '✗'} {promise.text}")
    if finished.kept:
        typer.echo(f"everything is left in {finished.folder}")
        typer.echo(f"how training went: syntience report training {finished.folder}")
        guide = finished.folder / "go-on.txt"
        if guide.exists():
            typer.echo(f"how to go on and to join: {guide}")
