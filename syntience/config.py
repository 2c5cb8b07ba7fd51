"""The settings of each kind of command, read once from their layers and then passed on in small slices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from syntience.errors import ConfigError
from syntience.layers import Layers, Secret, how_to_give

DEFAULT_LISTEN_PORT = 7700
HIGHEST_PORT = 65_535
MOST_CONFIRMATIONS = 1_000
_LEVELS = ("debug", "info", "warning", "error")
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How much is logged, and whether as JSON."""

    level: str = "info"
    as_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """What a command with one key needs.

    Attributes:
        rpc_url: a secret, because providers put their keys into it.
        password: of the keystore; None if it was not given, so that it may be asked for.
    """

    run_file: Path
    rpc_url: Secret
    keystore: Path
    password: Secret | None
    logs: LogSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSettings(OperatorSettings):
    """What a command that signs, sends and ends needs besides: where its transactions are kept until they are through."""

    state_dir: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(OperatorSettings):
    """What a role that keeps running needs besides.

    Attributes:
        state_dir: the node's own state, which it must find again after a restart.
        data_dir: the prepared data set; None fetches it from the run's validators into `state_dir`.
        start_dir: the model of round 1, where the run starts from a checkpoint; None fetches it from the run's validators.
        public_endpoint: under which others should reach our server, to compare with what is registered; None where it
            can't be told from the host that we listen on.
        metrics_port: None serves no metrics.
        tensorboard: where event files go; None writes none.
        allow_private_peers: fetch from private addresses too, as a devnet must.
        confirmations: blocks that must follow an event before the node acts on it.
    """

    state_dir: Path
    data_dir: Path | None
    start_dir: Path | None
    listen_host: str
    listen_port: int
    public_endpoint: str | None
    metrics_host: str
    metrics_port: int | None
    tensorboard: Path | None
    allow_private_peers: bool
    confirmations: int


def operator_settings(layers: Layers) -> OperatorSettings:
    """Settings of a command that signs with one key and ends."""
    return OperatorSettings(
        run_file=layers.path("run"),
        rpc_url=rpc_url_of(layers),
        keystore=layers.path("keystore"),
        password=layers.secret("password"),
        logs=log_settings(layers),
    )


def account_settings(layers: Layers) -> AccountSettings:
    """Settings of a command that sends transactions; by default it keeps them in a folder beside the key file."""
    operator = operator_settings(layers)
    return AccountSettings(
        run_file=operator.run_file,
        rpc_url=operator.rpc_url,
        keystore=operator.keystore,
        password=operator.password,
        logs=operator.logs,
        state_dir=layers.path("state", operator.keystore.parent / "state"),
    )


def node_settings(layers: Layers) -> NodeSettings:
    """Settings of a role; `read_layers` has laid the role's own table over the rest."""
    operator = operator_settings(layers)
    host = layers.text("listen_host", "127.0.0.1")
    port = layers.integer("listen_port", low=1, high=HIGHEST_PORT, default=DEFAULT_LISTEN_PORT)
    return NodeSettings(
        run_file=operator.run_file,
        rpc_url=operator.rpc_url,
        keystore=operator.keystore,
        password=operator.password,
        logs=operator.logs,
        state_dir=layers.path("state"),
        data_dir=layers.path("data") if layers.has("data") else None,
        start_dir=layers.path("start") if layers.has("start") else None,
        listen_host=host,
        listen_port=port,
        public_endpoint=_public_endpoint(layers, host, port),
        metrics_host=layers.text("metrics_host", "127.0.0.1"),
        metrics_port=layers.optional_integer("metrics_port", low=1, high=HIGHEST_PORT),
        tensorboard=layers.path("tensorboard") if layers.has("tensorboard") else None,
        allow_private_peers=layers.switch("allow_private_peers"),
        confirmations=layers.integer("confirmations", low=0, high=MOST_CONFIRMATIONS, default=0),
    )


def log_settings(layers: Layers) -> LogSettings:
    """How to log."""
    level = layers.text("log_level", "info").lower()
    if level not in _LEVELS:
        raise ConfigError(f"there is no log level {level!r}", f"choose one of {', '.join(_LEVELS)}")
    return LogSettings(level=level, as_json=layers.switch("log_json"))


def describe(settings: OperatorSettings) -> dict[str, str]:
    """Every setting as text, secrets as ``***``."""
    return {field.name: str(getattr(settings, field.name)) for field in fields(settings)}


def rpc_url_of(layers: Layers) -> Secret:
    """The node of the chain, a secret because providers put their keys into it."""
    url = layers.secret("rpc_url")
    if url is None:
        raise ConfigError("the RPC URL is not set", how_to_give("rpc_url"))
    if urlsplit(url.reveal()).scheme not in ("http", "https"):
        raise ConfigError("the RPC URL is no http or https address", how_to_give("rpc_url"))
    return url


def _public_endpoint(layers: Layers, host: str, port: int) -> str | None:
    if layers.has("public_endpoint"):
        return checked_endpoint(layers.text("public_endpoint"))
    if host in _WILDCARDS:
        return None
    shown = f"[{host}]" if ":" in host else host
    return checked_endpoint(f"http://{shown}:{port}")


def checked_endpoint(text: str) -> str:
    """An address under which others reach a node, in its plain form.

    Raises:
        ConfigError: no such address.
    """
    endpoint = text.rstrip("/")
    try:
        parts = urlsplit(endpoint)
        plain = parts.port != 0 and not (parts.username or parts.path or parts.query)
    except ValueError:
        parts, plain = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ConfigError(
            f"the public endpoint {endpoint!r} is no plain http address",
            "write it as http://HOST:PORT, as others reach this machine",
        )
    return endpoint
