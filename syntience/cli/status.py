"""`syntience status`: where a run and an account in it stand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    ConfigOption,
    KeystoreOption,
    RpcUrlOption,
    RunOption,
    layers_of,
)
from syntience.cli.owner import address_of, say

if TYPE_CHECKING:
    from protocol.ids import Units
    from syntience.status import AccountStatus, RunStatus

_AMOUNTS = (
    "stake",
    "unbonding",
    "earned",
    "claimed",
    "slashed",
    "refunds",
    "bonds",
    "tokens",
    "native_wei",
)
"""Written as decimal strings in base units: JSON numbers lose digits above 2^53."""


def show_status(
    context: typer.Context,
    account: Annotated[
        str | None,
        typer.Option(
            "--account", metavar="ADDRESS", help="Whose; by default that of --keystore, if given."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, amounts as strings in base units.")
    ] = False,
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    keystore: KeystoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Show a run's round, epoch and settlements, and an account's slot, stake and rewards. Needs no password."""
    from ledger.keys import key_file_address
    from syntience.config import log_settings, rpc_url_of
    from syntience.logging import configure_logging
    from syntience.signals import run_interruptible
    from syntience.status import read_status

    layers = layers_of(context)
    configure_logging(log_settings(layers))
    key = None
    if account is not None:
        key = address_of(account, "--account")
    elif layers.has("keystore"):
        key = key_file_address(layers.path("keystore"))
    status = run_interruptible(read_status(layers.path("run"), rpc_url_of(layers), key=key))
    if as_json:
        typer.echo(json.dumps(_plain(status), indent=2))
        return
    for name, value in _lines(status):
        say(name, value)


def _lines(status: RunStatus) -> Iterator[tuple[str, str]]:
    from syntience.amounts import exact_tokens

    yield "run", f"0x{status.run.hex()} on chain {status.chain_id}, block {status.block}"
    yield "round", f"{status.round}, epoch {status.epoch}"
    yield "phase", f"{status.phase}, {status.phase_ends_in_s:,} s more"
    if status.paused_s is not None:
        yield "paused", f"for {status.paused_s:,} s; the clocks stand still"
    for terms in status.announced:
        whose = "the run file's" if terms.is_ours else f"another spec, 0x{terms.spec_hash.hex()}"
        yield "announced", f"from epoch {terms.from_epoch} on {whose}; judge {terms.judge}"
    windows = ", ".join(f"{phase} {length} s" for phase, length in status.windows_s.items())
    yield "windows", f"{windows}; {status.rounds_per_epoch} rounds an epoch"
    least = (f"{role} {exact_tokens(stake)}" for role, stake in status.min_stakes.items())
    yield "stakes", f"at least {', '.join(least)} tokens"
    if status.root is not None:
        yield "model", f"root {status.root.hex()[:16]} at the start of round {status.root_round}"
    yield "nodes", f"{status.miners} miners, {status.validators} validators"
    yield (
        "settled",
        _listed(status.settled) + (f"; void {_listed(status.void)}" if status.void else ""),
    )
    if status.account is not None:
        yield from _account_lines(status.account, status.time)


def _account_lines(account: AccountStatus, time: int) -> Iterator[tuple[str, str]]:
    from syntience.amounts import exact_tokens

    def shown(amount: Units) -> str:
        return f"{exact_tokens(amount)} tokens"

    yield "account", account.account
    if account.slot is not None:
        yield (
            "slot",
            f"{account.role} {account.slot}"
            + (" until this epoch ends" if account.role == "none" else ""),
        )
    elif account.starts is not None:
        yield "slot", f"{account.role} from epoch {account.starts} on"
    else:
        yield "slot", "none"
    if account.operator is not None:
        yield "operator", f"{account.operator} at {account.endpoint}"
        yield "payout", account.payout
    yield "stake", shown(account.stake)
    if account.unbonding:
        left_s = max(0, account.unlock_time + 1 - time)
        yield "unbonding", f"{shown(account.unbonding)}, locked for {left_s:,} s more"
    if account.games:
        yield "games", f"{account.games} open against it; no stake leaves before they are over"
    yield "earned", shown(account.earned)
    yield "claimed", shown(account.claimed)
    yield "slashed", f"{shown(account.slashed)}, {account.faults} faults proven"
    yield "waiting", f"{shown(account.refunds)} of refunds, {shown(account.bonds)} of bonds"
    yield "holds", f"{shown(account.tokens)}, {account.native_wei / 10**18:.6g} native"


def _listed(epochs: tuple[int, ...]) -> str:
    """Runs of epochs in short: ``1-4, 6``."""
    spans: list[list[int]] = []
    for epoch in epochs:
        if spans and spans[-1][1] == epoch - 1:
            spans[-1][1] = epoch
        else:
            spans.append([epoch, epoch])
    words = [str(low) if low == high else f"{low}-{high}" for low, high in spans]
    return "epochs " + ", ".join(words) if words else "no epoch yet"


def _plain(status: RunStatus) -> dict[str, object]:
    account = status.account
    return {
        **{field.name: _value(getattr(status, field.name)) for field in fields(status)},
        "min_stakes": {role: str(stake) for role, stake in status.min_stakes.items()},
        "announced": [
            {field.name: _value(getattr(terms, field.name)) for field in fields(terms)}
            for terms in status.announced
        ],
        "account": None
        if account is None
        else {
            field.name: str(getattr(account, field.name))
            if field.name in _AMOUNTS
            else getattr(account, field.name)
            for field in fields(account)
        },
    }


def _value(value: object) -> object:
    return "0x" + value.hex() if isinstance(value, bytes) else value
