"""`syntience rewards`: collecting what was earned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    layers_of,
    takes_account_options,
)
from syntience.cli.owner import address_of, say, with_owner

if TYPE_CHECKING:
    from syntience.rewards import Collected
    from syntience.staking import Owner

app = typer.Typer(help="Collect rewards.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Collect rewards."""


@app.command("claim")
@takes_account_options
def claim(
    context: typer.Context,
    account: Annotated[
        str | None,
        typer.Option(
            "--account",
            metavar="ADDRESS",
            help="Whose; by default the account that --keystore is owner or operator of.",
        ),
    ] = None,
) -> None:
    """Pay out everything that an account has earned in settled epochs, and its refunds and released bonds.

    Any key may send this and pays for the gas; rewards go to the account's payout address. Running nodes claim by themselves.
    """
    from syntience.amounts import exact_tokens
    from syntience.config import account_settings
    from syntience.rewards import collect

    layers = layers_of(context)
    whose = None if account is None else address_of(account, "--account")
    events = account_settings(layers).state_dir

    async def act(owner: Owner) -> Collected:
        return await collect(owner, whose, events=events)

    collected = with_owner(layers, act)
    say("account", collected.account)
    if not collected.total:
        say("nothing", "to collect now: an epoch pays once it is settled (see `syntience status`)")
        return
    say("rewards", f"{exact_tokens(collected.rewards)} tokens, to {collected.payout}")
    say("refunds", f"{exact_tokens(collected.refunds)} tokens")
    say("bonds", f"{exact_tokens(collected.bonds)} tokens")
