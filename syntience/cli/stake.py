"""`syntience stake`: what an owner does with its account in a run."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from syntience.cli.options import (
    ConfigOption,
    ConsentOption,
    KeystoreOption,
    OperatorAddressOption,
    OperatorKeystoreOption,
    OperatorPasswordFileOption,
    PasswordFileOption,
    RpcUrlOption,
    RunOption,
    layers_of,
    obtain_password,
    takes_account_options,
)
from syntience.cli.owner import address_of, consented, named_operator, say, with_owner

if TYPE_CHECKING:
    from protocol.ids import Address
    from syntience.staking import OperatorConsent, Owner

app = typer.Typer(
    help="Deposit and register, leave, withdraw; --keystore is the owner's key.",
    no_args_is_help=True,
)


class RoleName(StrEnum):
    """The roles that need a stake."""

    MINER = "miner"
    VALIDATOR = "validator"


@app.command("deposit")
@takes_account_options
def deposit(
    context: typer.Context,
    amount: Annotated[
        str,
        typer.Option(
            "--amount", metavar="TOKENS", help="How much to add to the stake; 0 only registers."
        ),
    ],
    role: Annotated[
        RoleName | None, typer.Option("--role", help="Needed for the first deposit.")
    ] = None,
    public_endpoint: Annotated[
        str | None,
        typer.Option(
            "--endpoint",
            "--public-endpoint",
            metavar="URL",
            help="How others reach the node; needed for the first deposit.",
        ),
    ] = None,
    operator_keystore: OperatorKeystoreOption = None,
    operator_password_file: OperatorPasswordFileOption = None,
    operator: OperatorAddressOption = None,
    consent: ConsentOption = None,
    payout: Annotated[
        str | None,
        typer.Option(
            "--payout", metavar="ADDRESS", help="Where rewards go; the account by default."
        ),
    ] = None,
) -> None:
    """Deposit stake and take a slot, which counts from the next epoch on.

    Without an operator the owner's own key does the node's work; better keep the owner's key away from the node.
    """
    from ledger.contracts.registry import Role
    from syntience.amounts import exact_tokens, parse_tokens
    from syntience.config import checked_endpoint
    from syntience.enrolment import Standing, Wish, enrol

    layers = layers_of(context)
    named = named_operator(layers, operator, consent)
    units = parse_tokens(amount, flag="--amount")
    payee = None if payout is None else address_of(payout, "--payout")
    endpoint = layers.text("public_endpoint", "")
    checked = checked_endpoint(endpoint) if endpoint else None

    async def act(owner: Owner) -> Standing:
        wish = Wish(
            amount=units,
            role=None if role is None else Role[role.name],
            operator=await consented(named, owner),
            endpoint=checked,
            payout=payee,
        )
        return await enrol(owner, wish)

    now = with_owner(layers, act)
    say("account", now.account)
    say("role", f"{now.role.name.lower()}, slot {now.slot} from epoch {now.from_epoch} on")
    say("operator", now.operator)
    say("endpoint", now.endpoint)
    say("payout", now.payout)
    say("deposited", f"{exact_tokens(now.deposited)} tokens")
    say("stake", f"{exact_tokens(now.active)} tokens")


@app.command("exit")
@takes_account_options
def leave(
    context: typer.Context,
) -> None:
    """Ask for the whole stake back. The slot ends with this epoch, the tokens can be withdrawn after the unbonding time."""
    from ledger.contracts.vault import Unbonding
    from syntience.amounts import exact_tokens
    from syntience.staking import exit_run

    async def act(owner: Owner) -> tuple[Unbonding, int]:
        await exit_run(owner)
        unbonding = await owner.contracts.vault.unbonding_of(owner.account)
        return unbonding, (await owner.contracts.epochs.now()).time

    unbonding, time = with_owner(layers_of(context), act)
    say("unbonding", f"{exact_tokens(unbonding.amount)} tokens")
    say("unlocks", f"in {max(0, unbonding.unlock_time - time + 1):,} s")


@app.command("withdraw")
@takes_account_options
def take_out(
    context: typer.Context,
) -> None:
    """Take out what was asked back and has waited long enough."""
    from syntience.amounts import exact_tokens
    from syntience.staking import withdraw

    say("withdrawn", f"{exact_tokens(with_owner(layers_of(context), withdraw))} tokens")


@app.command("set-endpoint")
@takes_account_options
def move(
    context: typer.Context,
    public_endpoint: Annotated[
        str,
        typer.Option("--endpoint", metavar="URL", help="How others reach the node from now on."),
    ],
) -> None:
    """Tell the run where the node serves; the owner's key or its operator's may."""
    from syntience.config import checked_endpoint
    from syntience.staking import set_endpoint

    endpoint = checked_endpoint(public_endpoint)
    say("account", with_owner(layers_of(context), lambda owner: set_endpoint(owner, endpoint)))
    say("endpoint", endpoint)


@app.command("rotate-operator")
@takes_account_options
def rotate(
    context: typer.Context,
    operator_keystore: OperatorKeystoreOption = None,
    operator_password_file: OperatorPasswordFileOption = None,
    operator: OperatorAddressOption = None,
    consent: ConsentOption = None,
) -> None:
    """Hand the node's work to another key, from the next round on. The old key never serves again."""
    from protocol.ids import Round
    from syntience.errors import ConfigError
    from syntience.staking import rotate_operator

    layers = layers_of(context)
    named = named_operator(layers, operator, consent)
    if named is None:
        raise ConfigError("there is no new operator", "give --operator-keystore")

    async def act(owner: Owner) -> tuple[Address, Round]:
        agreed = await consented(named, owner)
        assert agreed is not None
        return agreed.operator, await rotate_operator(owner, agreed)

    key, round_ = with_owner(layers, act)
    say("operator", f"{key} from round {round_} on")


@app.command("consent")
def agree(
    context: typer.Context,
    account: Annotated[
        str, typer.Option("--account", metavar="ADDRESS", help="The owner's account.")
    ],
    run: RunOption = None,
    rpc_url: RpcUrlOption = None,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    config: ConfigOption = None,
) -> None:
    """Print the consent of the operator key in --keystore to act for an account; its owner gives it to --consent.

    It is good for the account's next change of operator alone.
    """
    from ledger.connection import Connection
    from ledger.keys import load_key_file
    from ledger.runs import join, load_run_file
    from syntience.config import operator_settings
    from syntience.signals import run_interruptible
    from syntience.staking import consent_to

    settings = operator_settings(layers_of(context))
    owner = address_of(account, "--account")
    signer = load_key_file(settings.keystore, obtain_password(settings.password))
    run_file = load_run_file(settings.run_file)

    async def act() -> OperatorConsent:
        url = settings.rpc_url.reveal()
        async with await Connection.open(url, chain_id=run_file.chain_id) as connection:
            return await consent_to(owner, signer, await join(run_file, connection), run_file)

    typer.echo("0x" + run_interruptible(act()).signature.hex())
