"""Where settings come from: flags win over the environment, which wins over the TOML file.

Each setting has one name in three spellings: `--rpc-url`, `SYNTIENCE_RPC_URL` and `rpc_url` in the file. A role's own table in
the file (`[miner]`, `[validator]`, `[hunter]`) wins over the file's top level. A secret can also lie in a file of its own
(`SYNTIENCE_PASSWORD_FILE`), and never shows.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from syntience.errors import ConfigError

PREFIX = "SYNTIENCE_"
ROLES = ("miner", "validator", "hunter")
_SWITCH_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "0": False,
    "false": False,
    "no": False,
    "": False,
}
_SETTINGS = frozenset(
    {
        "run",
        "rpc_url",
        "rpc_url_file",
        "keystore",
        "password_file",
        "state",
        "data",
        "start",
        "listen_host",
        "listen_port",
        "public_endpoint",
        "metrics_host",
        "metrics_port",
        "tensorboard",
        "log_level",
        "log_json",
        "allow_private_peers",
        "confirmations",
        "operator_keystore",
        "operator_password_file",
    }
)


@dataclass(frozen=True, slots=True)
class Secret:
    """A string that is never printed by accident."""

    _value: str

    def reveal(self) -> str:
        """The string itself."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The three sources of settings.

    Attributes:
        flags: what the command line gave; None stands for not given.
        file: the configuration file with the role's table laid over its top level.
        folder: where the file lies; its relative paths start there.
    """

    flags: Mapping[str, object]
    environment: Mapping[str, str]
    file: Mapping[str, object]
    folder: Path

    def has(self, name: str) -> bool:
        """True if any layer gives the setting."""
        return self._find(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a default it must be given somewhere."""
        value = self._find(name)
        if value is None:
            if default is None:
                raise ConfigError(f"{_spoken(name)} is not set", how_to_give(name))
            return default
        if not isinstance(value, str | Path):
            raise ConfigError(f"{_spoken(name)} must be text, not {value!r}", how_to_give(name))
        return str(value)

    def path(self, name: str, default: Path | None = None) -> Path:
        """A path; one from the file is relative to the file's folder."""
        path = Path(self.text(name, str(default) if default else None)).expanduser()
        return self.folder / path if self._comes_from_file(name) else path

    def integer(self, name: str, *, low: int, high: int, default: int) -> int:
        """A whole number within bounds, or the default."""
        number = self.optional_integer(name, low=low, high=high)
        return default if number is None else number

    def optional_integer(self, name: str, *, low: int, high: int) -> int | None:
        """A whole number within bounds, or None if it isn't given."""
        value = self._find(name)
        if value is None:
            return None
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ConfigError(
                f"{_spoken(name)} must be a number from {low} to {high}, not {value!r}",
                how_to_give(name),
            )
        return number

    def switch(self, name: str) -> bool:
        """On or off, off by default."""
        value = self._find(name)
        if isinstance(value, str):
            value = _SWITCH_WORDS.get(value.lower(), value)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise ConfigError(
            f"{_spoken(name)} must be true or false, not {value!r}", how_to_give(name)
        )

    def secret(self, name: str) -> Secret | None:
        """A secret by itself or in a file that `<name>_file` names; at most one of the two on each layer."""
        for layer in (self.flags, _upper(self.environment), self.file):
            direct, path = layer.get(name), layer.get(f"{name}_file")
            if direct is not None and path is not None:
                raise ConfigError(f"both {name} and {name}_file are set", "keep one of them")
            if direct is not None:
                return Secret(str(direct))
            if path is not None:
                base = self.folder if layer is self.file else Path()
                return _read_secret(name, base / Path(str(path)).expanduser())
        return None

    def _find(self, name: str) -> object:
        given = self.flags.get(name)
        if given is None:
            given = self.environment.get(PREFIX + name.upper())
        return self.file.get(name) if given is None else given

    def _comes_from_file(self, name: str) -> bool:
        above = self.flags.get(name) is None and PREFIX + name.upper() not in self.environment
        return above and name in self.file


def read_layers(
    flags: Mapping[str, object], environment: Mapping[str, str], *, role: str | None = None
) -> Layers:
    """Reads the configuration file that `--config` or SYNTIENCE_CONFIG names, if any.

    Raises:
        ConfigError: the file can't be read, or holds a setting that doesn't exist.
    """
    named = flags.get("config") or environment.get(PREFIX + "CONFIG")
    if not named:
        return Layers(flags=flags, environment=environment, file={}, folder=Path())
    path = Path(str(named)).expanduser()
    document = _read_toml(path)
    tables = {name: _table(path, name, document.pop(name)) for name in ROLES if name in document}
    for table in (document, *tables.values()):
        unknown = sorted(table.keys() - _SETTINGS)
        if unknown:
            raise ConfigError(
                f"{path}: there is no setting `{unknown[0]}`",
                f"known are {', '.join(sorted(_SETTINGS))}",
            )
    own = tables.get(role or "", {})
    return Layers(
        flags=flags, environment=environment, file={**document, **own}, folder=path.parent
    )


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(
            f"can't read the configuration file {path} ({error.strerror})",
            "give the right path with --config",
        ) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not TOML ({error})", "mend that line") from error


def _table(path: Path, name: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: `{name}` is not a table", f"write it as [{name}]")
    return value


def _read_secret(name: str, path: Path) -> Secret:
    try:
        return Secret(path.read_text().rstrip("\r\n"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ConfigError(
            f"can't read the {name.replace('_', ' ')} from {path} ({reason})", f"mend {name}_file"
        ) from error


def _upper(environment: Mapping[str, str]) -> dict[str, object]:
    """Our variables by their setting's name."""
    return {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }


def _spoken(name: str) -> str:
    return "the " + name.replace("_", " ").replace("rpc url", "RPC URL")


def how_to_give(name: str) -> str:
    """The three ways to give a setting, as a fix to print."""
    flag = name.replace("_", "-")
    return f"give --{flag}, {PREFIX}{name.upper()}, or `{name}` in the configuration file"
