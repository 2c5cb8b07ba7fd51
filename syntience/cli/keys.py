"""`syntience keys`: the key files with which owners and operators sign."""

from __future__ import annotations

import typer

from syntience.cli.options import (
    ConfigOption,
    KeystoreOption,
    PasswordFileOption,
    layers_of,
    obtain_password,
)

app = typer.Typer(help="Make and look at key files.", no_args_is_help=True)


@app.command("new")
def new_key(
    context: typer.Context,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    config: ConfigOption = None,
) -> None:
    """Make a key in a new, encrypted key file and print its address.

    Keep a copy of the file and its password: nobody can restore them.
    """
    from ledger.keys import create_key_file

    layers = layers_of(context)
    path = layers.path("keystore")
    password = obtain_password(layers.secret("password"), confirm=True)
    typer.echo(create_key_file(path, password))


@app.command("show")
def show_key(
    context: typer.Context, keystore: KeystoreOption = None, config: ConfigOption = None
) -> None:
    """Print the address of a key file; needs no password."""
    from ledger.keys import key_file_address

    typer.echo(key_file_address(layers_of(context).path("keystore")))
