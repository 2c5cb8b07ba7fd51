"""`syntience score`: recomputing what validators reported, and explaining it to miners."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    AllowPrivatePeersOption,
    ConfigOption,
    DataOption,
    RpcUrlOption,
    RunOption,
    layers_of,
)
from syntience.cli.owner import address_of, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.ids import Round
    from scoring.explain import Explanation
    from syntience.score_replay import Chain

app = typer.Typer(help="Recompute and explain scores.", no_args_is_help=True)
_DIFFERS = 1


@app.callback()
def _group() -> None:
    """Recompute and explain scores."""


@app.command("replay")
def replay(
    context: typer.Context,
    reports: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORT…",
            help="Report files; or the --state of a validator, or its URL, for all that it offers.",
        ),
    ],
    digest: Annotated[
        list[str] | None,
        typer.Option("--digest", metavar="HEX", help="Only the reports with these digests."),
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(
            "--rounds", metavar="FIRST-LAST", help="Only these rounds; a server needs it."
        ),
    ] = None,
    book: Annotated[
        Path | None,
        typer.Option("--book", metavar="FILE", help="The book before the first report."),
    ] = None,
    losses: Annotated[
        bool,
        typer.Option(
            "--losses",
            help="Recompute the losses too, from models, payloads and data; needs --run.",
        ),
    ] = False,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="PLACE",
            help="The state or URL of a node that has them, for reports from files.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", metavar="N", min=1, help="For the losses; as in the run's spec."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Losses with other bits differ, however close.")
    ] = False,
    run: RunOption = None,
    data: DataOption = None,
    allow_private_peers: AllowPrivatePeersOption = None,
    config: ConfigOption = None,
) -> None:
    """Recompute draws, ratings and weights of validators' reports, and with --losses what they measured; status 1 if anything differs."""
    from protocol.ids import to_hash32
    from syntience.score_session import ReplayWish, replay_wished
    from syntience.signals import run_interruptible

    layers = layers_of(context)
    wish = ReplayWish(
        places=tuple(reports),
        digests=tuple(map(to_hash32, digest or ())),
        rounds=None if rounds is None else _rounds_of(rounds),
        book=book,
        run_file=layers.path("run") if layers.has("run") else None,
        losses=losses,
        state=state,
        data=data,
        threads=threads,
        allow_private=bool(allow_private_peers),
    )
    chains = run_interruptible(replay_wished(wish))
    for chain in chains:
        _tell(chain)
    unequal = [check for chain in chains for check in chain.losses.values() if check.unequal]
    if any(chain.differences for chain in chains) or (exact and unequal):
        raise typer.Exit(_DIFFERS)


@app.command("explain")
def explain(
    context: typer.Context,
    miner: Annotated[str, typer.Option("--miner", metavar="ADDRESS", help="Whose score.")],
    epoch: Annotated[int, typer.Option("--epoch", metavar="N", min=1, help="In which epoch.")],
    source: Annotated[
        str,
        typer.Option("--from", metavar="PLACE", help="The state or the URL of a validator."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    allow_private_peers: AllowPrivatePeersOption = None,
    config: ConfigOption = None,
) -> None:
    """Say what each factor of a miner's score was, and what would have raised it; with --run and --rpc what it was paid."""
    from protocol.ids import Epoch
    from scoring.wording import in_words
    from syntience.score_explain import explain_miner
    from syntience.score_replay import open_source
    from syntience.signals import run_interruptible

    layers = layers_of(context)

    async def act() -> Explanation:
        async with open_source(source, allow_private=bool(allow_private_peers)) as opened:
            return await explain_miner(
                opened,
                address_of(miner, "--miner"),
                Epoch(epoch),
                run_file=layers.path("run") if layers.has("run") else None,
                rpc_url=layers.secret("rpc_url"),
            )

    found = run_interruptible(act())
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
        return
    for line in in_words(found):
        typer.echo(line)


def _tell(chain: Chain) -> None:
    """What came of one row of reports."""
    found = chain.replay
    typer.echo(f"{chain.validator}, from {chain.source}")
    say("rounds", f"{len(found.rounds)} of {len(chain.covers)} recomputed to equal bits")
    if found.epochs:
        say("weights", f"of epoch {_listed(found.epochs)} recomputed to equal bits")
    if chain.losses:
        say("losses", _losses_in_words(chain))
    if chain.without_model:
        say("no model", f"is kept of round {_listed(chain.without_model)}: losses not recomputed")
    for difference in chain.differences:
        say("differs", str(difference))


def _losses_in_words(chain: Chain) -> str:
    from syntience.score_losses import TOLERANCE

    checks = chain.losses.values()
    compared = sum(check.compared for check in checks)
    unequal = sum(len(check.unequal) for check in checks)
    told = f"{compared} of round {_listed(tuple(chain.losses))}"
    if not unequal:
        return f"{told}: all recomputed to equal bits"
    largest = max(check.largest for check in checks)
    return f"{told}: {unequal} with other bits, by at most {largest:.1e} of the loss; tolerance {TOLERANCE:.0e}"


def _listed(numbers: Sequence[int]) -> str:
    """1, 2 or 4 to 9."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _rounds_of(text: str) -> tuple[Round, ...]:
    """3-7 or 4."""
    from protocol.ids import Round
    from syntience.errors import ConfigError

    first, _, last = text.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()):
        raise ConfigError(f"--rounds {text!r} names no rounds", "such as --rounds 3-7")
    return tuple(Round(number) for number in range(int(first), int(last or first) + 1))
