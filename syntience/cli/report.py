"""`syntience report`: what nodes kept of their rounds, as a picture, as JSON, for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from syntience.curves.homes import TrainingReport

app = typer.Typer(help="Draw what a run's nodes kept of it.", no_args_is_help=True)

_PICTURE = Path("training.png")


@app.callback()
def _group() -> None:
    """Draw what a run's nodes kept of it."""


@app.command("training")
def report_training(
    homes: Annotated[
        list[Path],
        typer.Argument(
            metavar="HOME…",
            help="The --state folder of a miner or validator, or a folder of several, such as a kept devnet's.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The picture, .png or .svg; training.png by default, if nothing else is asked for.",
        ),
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Every round in numbers.")
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option("--tensorboard", metavar="DIR", help="Event files, a folder for each node."),
    ] = None,
) -> None:
    """Show how training went: losses, learning rate, compression error, bytes and speed, round by round.

    Reads only what the nodes wrote, also while they run.
    """
    from syntience.curves.homes import read_report
    from syntience.curves.tensorboard import write_report
    from syntience.files import write_atomically

    report = read_report(homes)
    if out is not None or (json is None and tensorboard is None):
        _draw(report, out or _PICTURE)
    if json is not None:
        write_atomically(json, report.to_json().encode())
        typer.echo(f"numbers       {json}")
    if tensorboard is not None:
        write_report(report, tensorboard)
        typer.echo(f"event files   {tensorboard} (tensorboard --logdir {tensorboard})")


def _draw(report: TrainingReport, path: Path) -> None:
    from syntience.errors import ExtraMissing

    try:
        from syntience.curves.picture import save_picture
    except ImportError as error:
        raise ExtraMissing(
            "drawing needs matplotlib", "install it: pip install 'syntience[curves]'"
        ) from error
    save_picture(report, path)
    typer.echo(f"picture       {path}")
