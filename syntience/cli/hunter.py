"""`syntience hunter`: the hunter's process, and what it does done by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    AuditsOption,
    BehaviourOption,
    ConfigOption,
    DisputesOption,
    LastEpochOption,
    StateOption,
    layers_of,
    takes_account_options,
    takes_node_options,
)
from syntience.cli.owner import address_of, say, with_owner
from syntience.cli.role import run_job

if TYPE_CHECKING:
    from ledger.contracts.verdicts import Fault
    from protocol.ids import Address, Round

app = typer.Typer(help="Hunt: prove frauds for their bounties.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Hunt: prove frauds for their bounties."""


@app.command("run")
@takes_node_options
def run_hunter(
    context: typer.Context,
    last_epoch: LastEpochOption = None,
    behaviour: BehaviourOption = "honest",
    disputes: DisputesOption = False,
    audits: AuditsOption = 1,
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


@app.command("evidence")
def show_evidence(
    context: typer.Context,
    miner: Annotated[str, typer.Option("--miner", metavar="ADDRESS", help="The accused account.")],
    round_: Annotated[int, typer.Option("--round", metavar="N", min=1, help="Of the fault.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="equivocation, wrong-spec, wrong-data, local-state or bad-encoding.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it.")],
    state: StateOption = None,
    config: ConfigOption = None,
) -> None:
    """Write evidence that a hunter's node found to a file, for `hunter prove` or for others to look at."""
    from hunter.evidence_json import to_bytes
    from protocol.ids import Round
    from syntience.files import require_writable, write_atomically
    from syntience.hunting import found_evidence

    accused, fault = address_of(miner, "--miner"), _kind(kind)
    folder = layers_of(context, role="hunter").path("state")
    require_writable(out)
    evidence = found_evidence(folder, miner=accused, round_=Round(round_), kind=fault)
    write_atomically(out, to_bytes(evidence) + b"\n")
    say("written", f"{fault.slug} of {accused} in round {round_}, to {out}")


@app.command("prove")
@takes_account_options
def prove_evidence(
    context: typer.Context,
    evidence: Annotated[Path, typer.Argument(metavar="EVIDENCE", help="A file of evidence.")],
) -> None:
    """Prove a fault by hand. --keystore is the key that pays gas and bond and gets the bounty; call it again if it was interrupted."""
    from syntience.amounts import exact_tokens
    from syntience.hunting import prove, read_evidence

    case = read_evidence(evidence)
    proof = with_owner(
        layers_of(context), lambda owner: prove(owner, case, lambda text: say("note", text))
    )
    verdict = proof.verdict
    say("proven", f"{proof.kind.slug} of {proof.miner} in round {proof.round}")
    if verdict.kind is not proof.kind:
        say("no bounty", f"a graver fault of that round is proven: {verdict.kind.slug}")
        return
    say("bounty", f"{exact_tokens(verdict.bounty)} tokens, held for {verdict.hunter}")
    say("payable", f"after block {verdict.payable_after} of the run's clock")


@app.command("withdraw")
@takes_account_options
def withdraw(
    context: typer.Context,
    bounty: Annotated[
        list[str] | None,
        typer.Option(
            "--bounty",
            metavar="MINER/ROUND",
            help="Also have the bounty for this miner and round paid. May be given often.",
        ),
    ] = None,
) -> None:
    """Take back the bonds that stand behind no challenge. A running hunter needs them; one that ends takes them by itself."""
    from syntience.amounts import exact_tokens
    from syntience.hunting import take_back

    proven = [_place(text) for text in bounty or []]
    takings = with_owner(layers_of(context), lambda owner: take_back(owner, proven))
    say("bonds", f"{exact_tokens(takings.bonds)} tokens")
    say("bounties", f"{exact_tokens(takings.bounties)} tokens")
    say("credit", f"{exact_tokens(takings.credit)} tokens")


def _kind(name: str) -> Fault:
    from hunter.evidence_json import kind_named
    from protocol.errors import Rejected
    from syntience.errors import ConfigError

    try:
        return kind_named(name)
    except Rejected as error:
        raise ConfigError(str(error), "give --kind one of these") from error


def _place(text: str) -> tuple[Address, Round]:
    from protocol.ids import Round
    from syntience.errors import ConfigError

    miner, _, number = text.partition("/")
    if not number.isdecimal():
        raise ConfigError(
            f"{text!r} names no miner and round", "give --bounty such as 0x12…/7, as `prove` said"
        )
    return address_of(miner, "--bounty"), Round(int(number))
