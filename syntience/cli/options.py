"""The options that several commands share.

A parameter is named as its setting, so that a command can hand `context.params` to `syntience.layers.read_layers`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from syntience.errors import ConfigError
from syntience.layers import Layers, Secret, read_layers

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML.")
]
RunOption = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="The run file.")]
RpcUrlOption = Annotated[
    str | None, typer.Option("--rpc-url", "--rpc", metavar="URL", help="A node of the chain.")
]
KeystoreOption = Annotated[
    Path | None, typer.Option("--keystore", metavar="FILE", help="The key file.")
]
PasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help="Holds the key file's password (else it is asked for).",
    ),
]
StateOption = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="The node's own state.")
]
AccountStateOption = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Keeps transactions until they are through; beside the key file by default.",
    ),
]
DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The prepared data set; fetched from the run's validators by default.",
    ),
]
StartOption = Annotated[
    Path | None,
    typer.Option(
        "--start",
        metavar="DIR",
        help="The model of round 1, of a run that starts from a checkpoint; fetched from the run's validators by default.",
    ),
]
ListenHostOption = Annotated[
    str | None,
    typer.Option(
        "--listen-host", metavar="HOST", help="Where to serve others; 127.0.0.1 by default."
    ),
]
ListenPortOption = Annotated[
    int | None,
    typer.Option("--listen-port", metavar="PORT", help="The port to serve on; 7700 by default."),
]
PublicEndpointOption = Annotated[
    str | None,
    typer.Option(
        "--public-endpoint",
        metavar="URL",
        help="How others reach this node, as registered on chain.",
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", metavar="PORT", help="Serves Prometheus metrics; off by default."
    ),
]
TensorboardOption = Annotated[
    Path | None,
    typer.Option(
        "--tensorboard",
        metavar="DIR",
        help="Writes TensorBoard event files of losses, rates, bytes and speed there; off by default.",
    ),
]
AllowPrivatePeersOption = Annotated[
    bool | None,
    typer.Option("--allow-private-peers", help="Fetch from private addresses too, as on a devnet."),
]
OperatorKeystoreOption = Annotated[
    Path | None,
    typer.Option(
        "--operator-keystore",
        metavar="FILE",
        help="The key file of the operator, the hot key that the node runs with.",
    ),
]
OperatorPasswordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--operator-password-file", metavar="FILE", help="Holds the operator key file's password."
    ),
]
OperatorAddressOption = Annotated[
    str | None,
    typer.Option(
        "--operator",
        metavar="ADDRESS",
        help="The operator's address, if its key file is elsewhere; needs --consent.",
    ),
]
ConsentOption = Annotated[
    str | None,
    typer.Option(
        "--consent", metavar="HEX", help="The operator's consent, from `syntience stake consent`."
    ),
]
ConfirmationsOption = Annotated[
    int | None,
    typer.Option(
        "--confirmations",
        metavar="BLOCKS",
        help="Blocks that must follow an event before the node acts on it; 0 by default.",
    ),
]
LastEpochOption = Annotated[
    int | None,
    typer.Option(
        "--last-epoch",
        metavar="N",
        min=1,
        help="End when this epoch is settled and paid; never by default.",
    ),
]
BehaviourOption = Annotated[
    str,
    typer.Option(
        "--behaviour",
        metavar="KIND",
        help="How it works; anything but honest is an experiment.",
    ),
]
SaveEveryOption = Annotated[
    float,
    typer.Option(
        "--save-every",
        metavar="SECONDS",
        min=0,
        help="Time between two savepoints of a round under way; 0 saves after each inner step.",
    ),
]
CheckpointActivationsOption = Annotated[
    bool,
    typer.Option(
        "--checkpoint-activations",
        help="Train with less memory, and slower; the result is the same.",
    ),
]
AuditsOption = Annotated[
    int,
    typer.Option("--audits", metavar="N", min=0, help="Accepted miners to recompute each round."),
]
DisputesOption = Annotated[
    bool,
    typer.Option(
        "--disputes",
        help="Open a game about work that can't be reproduced here; needs a machine like the miner's.",
    ),
]
LogLevelOption = Annotated[
    str | None, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
]
LogJsonOption = Annotated[bool | None, typer.Option("--log-json", help="Log as JSON lines.")]


_ACCOUNT_OPTIONS: Mapping[str, object] = {
    "run": RunOption,
    "rpc_url": RpcUrlOption,
    "keystore": KeystoreOption,
    "password_file": PasswordFileOption,
    "state": AccountStateOption,
    "config": ConfigOption,
}
_NODE_OPTIONS: Mapping[str, object] = {
    "run": RunOption,
    "rpc_url": RpcUrlOption,
    "keystore": KeystoreOption,
    "password_file": PasswordFileOption,
    "state": StateOption,
    "data": DataOption,
    "start": StartOption,
    "listen_host": ListenHostOption,
    "listen_port": ListenPortOption,
    "public_endpoint": PublicEndpointOption,
    "metrics_port": MetricsPortOption,
    "allow_private_peers": AllowPrivatePeersOption,
    "confirmations": ConfirmationsOption,
    "log_level": LogLevelOption,
    "log_json": LogJsonOption,
    "config": ConfigOption,
}


_CURVES_OPTIONS: Mapping[str, object] = {**_NODE_OPTIONS, "tensorboard": TensorboardOption}


def takes_account_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that acts with one key on one run: it reads these options by `layers_of` alone."""
    return _taking(_ACCOUNT_OPTIONS, command)


def takes_node_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that runs a node: it reads these options by `layers_of` alone."""
    return _taking(_NODE_OPTIONS, command)


def takes_curves_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command that runs a node which trains or evaluates: the options of `takes_node_options`, and what to make of its curves."""
    return _taking(_CURVES_OPTIONS, command)


def _taking(options: Mapping[str, object], command: Callable[..., None]) -> Callable[..., None]:
    """Adds options to a command's signature, where typer looks for them, and not to its arguments."""
    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]

    def run(**given: object) -> None:
        command(**{name: value for name, value in given.items() if name not in options})

    parameters = [*signature.parameters.values(), *added]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    return run


def layers_of(context: typer.Context, *, role: str | None = None) -> Layers:
    """The command's flags over the environment over the configuration file."""
    return read_layers(context.params, os.environ, role=role)


def obtain_password(
    given: Secret | None, *, confirm: bool = False, of_operator: bool = False
) -> str:
    """The password of the key file, or of the operator's: the given one, else asked for at the terminal.

    Raises:
        ConfigError: none was given and nobody can be asked.
    """
    if given is not None:
        return given.reveal()
    whose = "operator's key file" if of_operator else "key file"
    if not sys.stdin.isatty():
        prefix, variable = ("operator-", "OPERATOR_") if of_operator else ("", "")
        raise ConfigError(
            f"the {whose}'s password is not set",
            f"give --{prefix}password-file, SYNTIENCE_{variable}PASSWORD_FILE or SYNTIENCE_{variable}PASSWORD",
        )
    return str(
        typer.prompt(f"Password of the {whose}", hide_input=True, confirmation_prompt=confirm)
    )
