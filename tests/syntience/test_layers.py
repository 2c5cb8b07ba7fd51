"""Flags over environment over file, and what is said about wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from syntience.config import NodeSettings, describe, log_settings, node_settings, operator_settings
from syntience.errors import ConfigError
from syntience.layers import Layers, Secret, read_layers

CONFIG = """
run = "run.json"
rpc_url = "http://file:1"
keystore = "/keys/shared.json"
state = "state"
listen_port = 7001
password_file = "password"

[miner]
state = "miner-state"
listen_port = 7002
log_json = true
"""
FLAGS: dict[str, object] = {
    "run": Path("r"),
    "rpc_url": "http://h:1",
    "keystore": Path("k"),
    "state": Path("s"),
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text("from the file\n")
    file = tmp_path / "config.toml"
    file.write_text(CONFIG)
    return file


def node(
    flags: dict[str, object] | None = None, environment: dict[str, str] | None = None
) -> NodeSettings:
    return node_settings(read_layers({**FLAGS, **(flags or {})}, environment or {}))


def test_layers__every_source__flag_wins_over_environment_over_role_s_table_over_top(
    config: Path,
) -> None:
    flags: dict[str, object] = {"config": config}
    settings = node_settings(read_layers(flags, {}, role="miner"))
    assert settings.listen_port == 7002
    assert node_settings(read_layers(flags, {}, role="validator")).listen_port == 7001
    environment = {"SYNTIENCE_LISTEN_PORT": "7003"}
    assert node_settings(read_layers(flags, environment, role="miner")).listen_port == 7003
    flags["listen_port"] = 7004
    assert node_settings(read_layers(flags, environment, role="miner")).listen_port == 7004


def test_layers__paths_of_the_file__are_relative_to_it(config: Path) -> None:
    settings = node_settings(read_layers({"config": config, "data": Path("d")}, {}, role="miner"))
    assert settings.run_file == config.parent / "run.json"
    assert settings.state_dir == config.parent / "miner-state"
    assert settings.keystore == Path("/keys/shared.json")
    assert settings.data_dir == Path("d")
    assert settings.logs.as_json
    assert settings.password == Secret("from the file")


def test_layers__config_named_by_the_environment__is_read(config: Path) -> None:
    layers = read_layers({}, {"SYNTIENCE_CONFIG": str(config)})
    assert operator_settings(layers).rpc_url.reveal() == "http://file:1"


def test_node_settings__little_given__has_safe_defaults() -> None:
    settings = node()
    assert (settings.listen_host, settings.listen_port) == ("127.0.0.1", 7700)
    assert settings.public_endpoint == "http://127.0.0.1:7700"
    assert settings.data_dir is None
    assert settings.confirmations == 0
    assert settings.metrics_port is None
    assert settings.tensorboard is None
    assert node({"tensorboard": Path("events")}).tensorboard == Path("events")
    assert settings.password is None
    assert not settings.allow_private_peers


def test_secret__however_printed__is_stars() -> None:
    settings = node({"rpc_url": "https://host/KEY"}, {"SYNTIENCE_PASSWORD": "hunter2"})
    assert settings.password == Secret("hunter2")
    shown = f"{settings} {settings!r} {describe(settings)} {settings.password}"
    assert "hunter2" not in shown
    assert "KEY" not in shown
    assert describe(settings)["password"] == "***"


def test_secret__two_on_one_layer__is_refused_and_a_higher_layer_wins(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("from a file\r\n")
    both = {"SYNTIENCE_PASSWORD": "a", "SYNTIENCE_PASSWORD_FILE": str(file)}
    with pytest.raises(ConfigError, match="both password and password_file are set"):
        node({}, both)
    settings = node({"password_file": file}, {"SYNTIENCE_PASSWORD": "a"})
    assert settings.password == Secret("from a file")


def test_secret__rpc_url_in_a_file__is_read(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://host/key\n")
    flags = {**FLAGS, "rpc_url": None}
    settings = node_settings(read_layers(flags, {"SYNTIENCE_RPC_URL_FILE": str(tmp_path / "url")}))
    assert settings.rpc_url.reveal() == "https://host/key"


def test_secret__unreadable_file__says_so_without_its_content(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"can't read the password from .* \(No such file or directory\)"
    ):
        node({"password_file": tmp_path / "none"})


@pytest.mark.parametrize("name", ["run", "rpc_url", "keystore", "state"])
def test_missing__required_setting__names_all_three_ways(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node({name: None})
    flag = name.replace("_", "-")
    assert caught.value.fix == (
        f"give --{flag}, SYNTIENCE_{name.upper()}, or `{name}` in the configuration file"
    )


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"listen_port": "many"}, "listen port must be a number from 1 to 65535, not 'many'"),
        ({"listen_port": 0}, "not 0"),
        ({"listen_port": 65536}, "not 65536"),
        ({"listen_port": True}, "not True"),
        ({"metrics_port": "-1"}, "metrics port must be a number"),
        ({"allow_private_peers": "maybe"}, "must be true or false"),
        ({"listen_host": 3}, "must be text"),
        ({"log_level": "loud"}, "no log level 'loud'"),
        ({"rpc_url": "ws://h"}, "no http or https address"),
        ({"rpc_url": "localhost:8545"}, "no http or https address"),
        ({"public_endpoint": "h:1"}, "no plain http address"),
        ({"public_endpoint": "http://u:p@h:1"}, "no plain http address"),
        ({"public_endpoint": "http://h:1/path"}, "no plain http address"),
    ],
)
def test_wrong__value__is_one_line_with_a_fix(flags: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node(flags)
    assert complaint in str(caught.value)
    assert caught.value.fix
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "value"),
    [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("no", False), ("", False)],
)
def test_switch__words__are_understood(word: str, value: bool) -> None:
    assert node({}, {"SYNTIENCE_ALLOW_PRIVATE_PEERS": word}).allow_private_peers is value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("listen_prt = 1", "no setting `listen_prt`"),
        ("[miner]\nspeed = 1", "no setting `speed`"),
        ("[trainer]\nspeed = 1", "no setting `trainer`"),
        ("password = 'x'", "no setting `password`"),
        ("miner = 1", "`miner` is not a table"),
        ("listen_port = ", "is not TOML"),
    ],
)
def test_file__mistakes__are_named(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_layers({"config": file}, {}, role="miner")
    assert complaint in str(caught.value)
    assert str(file) in str(caught.value)


def test_file__missing__says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't read the configuration file .*--config"):
        read_layers({"config": tmp_path / "none"}, {})


def test_public_endpoint__every_address_of_the_machine__is_unknown_unless_given() -> None:
    assert node({"listen_host": "0.0.0.0"}).public_endpoint is None
    given = node({"listen_host": "0.0.0.0", "public_endpoint": "http://h:1"})
    assert given.public_endpoint == "http://h:1"


def test_public_endpoint__ipv6__is_bracketed() -> None:
    assert node({"listen_host": "::1"}).public_endpoint == "http://[::1]:7700"
    assert (
        node({"public_endpoint": "https://node.example/"}).public_endpoint == "https://node.example"
    )


def test_log_settings__nothing_given__is_info_in_plain_text() -> None:
    layers = Layers(flags={}, environment={}, file={}, folder=Path())
    assert (log_settings(layers).level, log_settings(layers).as_json) == ("info", False)
