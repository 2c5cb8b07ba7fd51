"""What the commands that act with one key share: open it and the run, act, print. Imports what is heavy when it is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from syntience.cli.options import obtain_password

if TYPE_CHECKING:
    from protocol.ids import Address
    from protocol.ports import Signer
    from syntience.layers import Layers
    from syntience.staking import OperatorConsent, Owner

_Result = TypeVar("_Result")


def with_owner(layers: Layers, act: Callable[[Owner], Awaitable[_Result]]) -> _Result:
    """Opens the key and the run, acts, and closes both."""
    from ledger.keys import load_key_file
    from syntience.config import account_settings
    from syntience.logging import configure_logging
    from syntience.session import open_owner
    from syntience.signals import run_interruptible

    settings = account_settings(layers)
    configure_logging(settings.logs)
    signer = load_key_file(settings.keystore, obtain_password(settings.password))

    async def session() -> _Result:
        async with open_owner(
            run_file=settings.run_file,
            rpc_url=settings.rpc_url,
            state_dir=settings.state_dir,
            signer=signer,
        ) as owner:
            return await act(owner)

    return run_interruptible(session())


def named_operator(
    layers: Layers, operator: str | None, consent: str | None
) -> Signer | OperatorConsent | None:
    """The operator that the flags name: its opened key, or its address with a consent made elsewhere."""
    from ledger.keys import load_key_file
    from syntience.errors import ConfigError
    from syntience.staking import OperatorConsent

    address = None if operator is None else address_of(operator, "--operator")
    if address is None:
        if not layers.has("operator_keystore"):
            return None
        password = obtain_password(layers.secret("operator_password"), of_operator=True)
        return load_key_file(layers.path("operator_keystore"), password)
    if layers.has("operator_keystore"):
        raise ConfigError("the operator is given twice", "keep --operator or --operator-keystore")
    return OperatorConsent(operator=address, signature=_signature(consent))


async def consented(
    operator: Signer | OperatorConsent | None, owner: Owner
) -> OperatorConsent | None:
    """The operator with its consent to act for this owner."""
    from syntience.staking import OperatorConsent, consent_to

    if operator is None or isinstance(operator, OperatorConsent):
        return operator
    return await consent_to(owner.account, operator, owner.contracts, owner.run_file)


def address_of(text: str, flag: str) -> Address:
    """An address that was given with a flag."""
    from protocol.errors import Rejected
    from protocol.ids import to_address
    from syntience.errors import ConfigError

    try:
        return to_address(text)
    except Rejected as error:
        raise ConfigError(
            str(error), f"give {flag} an address such as 0x12…, 40 hex digits"
        ) from error


def say(name: str, value: str) -> None:
    """One line of a command's answer."""
    typer.echo(f"{name:<11}{value}")


def _signature(text: str | None) -> bytes:
    from syntience.errors import ConfigError

    try:
        raw = bytes.fromhex((text or "").removeprefix("0x"))
    except ValueError:
        raw = b""
    if len(raw) != 65:
        raise ConfigError(
            "an operator elsewhere must consent with 65 bytes in hex",
            "give --consent what `syntience stake consent` printed there",
        )
    return raw
