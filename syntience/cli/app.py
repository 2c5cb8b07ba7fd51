"""The program: its command groups, and how its errors become one line and an exit status.

Exit statuses: 0 done; 1 the operator must fix something; 2 wrong usage; 70 a fault of the program (with a traceback); 75 something
outside failed for now, the same call may succeed later; 128 + n stopped by signal n (130 is Ctrl-C).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Annotated

import typer

from protocol.errors import Bug, OperatorError, Retryable, SyntienceError
from syntience.cli import (
    data,
    deploy,
    devnet,
    doctor,
    governor,
    hunter,
    keys,
    lab,
    ledger,
    miner,
    model,
    report,
    rewards,
    score,
    spec,
    stake,
    status,
    validator,
)
from syntience.errors import Interrupted

EXIT_OPERATOR = 1
EXIT_BUG = 70
EXIT_RETRY = 75
EXIT_SIGNAL = 128
_DEBUG = "--debug"

app = typer.Typer(
    name="syntience",
    help="An open subnet that trains language models with strangers' computers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(keys.app, name="keys")
app.add_typer(data.app, name="data")
app.add_typer(model.app, name="model")
app.add_typer(stake.app, name="stake")
app.add_typer(rewards.app, name="rewards")
app.add_typer(governor.app, name="governor")
app.add_typer(miner.app, name="miner")
app.add_typer(validator.app, name="validator")
app.add_typer(hunter.app, name="hunter")
app.add_typer(devnet.app, name="devnet")
app.add_typer(lab.app, name="lab")
app.add_typer(ledger.app, name="ledger")
app.add_typer(report.app, name="report")
app.add_typer(score.app, name="score")
app.command("doctor")(doctor.run_doctor)
app.command("spec")(spec.make_spec)
app.command("deploy")(deploy.deploy_run)
app.command("status")(status.show_status)


def main() -> None:
    """Runs the command line of this process and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns the exit status. `--debug` may stand anywhere."""
    debug = _DEBUG in arguments
    try:
        app(args=[word for word in arguments if word != _DEBUG], prog_name="syntience")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return EXIT_SIGNAL + 2
    except Exception as error:  # noqa: BLE001 - the outermost place: everything must become an exit status
        return explain(error, debug=debug)
    return 0


def explain(error: Exception, *, debug: bool) -> int:
    """Prints an error as its kind deserves and returns the exit status."""
    cause = primary_cause(error)
    if isinstance(cause, Interrupted):
        return EXIT_SIGNAL + cause.signal_number
    known = isinstance(cause, SyntienceError) and not (
        isinstance(cause, Bug) and not isinstance(cause, OperatorError)
    )
    if debug or not known:
        traceback.print_exception(error)
    if not known:
        name = type(cause).__name__
        _say(f"a fault of the program ({name}: {cause}): please report it with the lines above")
        return EXIT_BUG
    _say(str(cause))
    return EXIT_RETRY if isinstance(cause, Retryable) else EXIT_OPERATOR


def primary_cause(error: BaseException) -> BaseException:
    """The error to report of a group of tasks: a fault of ours first, then what the operator must fix."""

    def rank(leaf: BaseException) -> int:
        if isinstance(leaf, OperatorError):
            return 1
        if isinstance(leaf, Bug) or not isinstance(leaf, SyntienceError):
            return 0
        return 2 if isinstance(leaf, Interrupted) else 3

    return min(_leaves(error), key=rank)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _say(message: str) -> None:
    typer.echo("error: " + " ".join(message.split()), err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"syntience {metadata.version('syntience')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and end."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option(_DEBUG, help="Show where an error comes from.")] = False,
) -> None:
    """Global options; `run` has read `--debug` already."""
