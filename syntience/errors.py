"""Everything that can go wrong in the shell, one tree.

    OperatorError  ConfigError, DataMissing, DownloadFailed, PortInUse, ToolMissing, ExtraMissing, ChildFailed,
                   UnwritableOutput, StakingRefused, RequestRefused, GovernanceRefused, HuntingRefused, RoleMismatch
    SyntienceError Interrupted

The command line turns each into one line and an exit status (`syntience.cli.app`).
"""

from __future__ import annotations

import signal
from pathlib import Path

from protocol.errors import OperatorError, SyntienceError


class ConfigError(OperatorError):
    """A flag, an environment variable or a line of the configuration file is missing or wrong."""


class DataMissing(OperatorError):
    """A text or data set is not there, or holds nothing that can be used."""


class DownloadFailed(OperatorError):
    """The package index did not serve what is needed, or served something else."""


class PortInUse(OperatorError):
    """Another process listens on the port already."""

    def __init__(self, host: str, port: int, *, flag: str) -> None:
        super().__init__(
            f"port {port} on {host} is in use",
            f"stop the process that listens there, or choose another port with {flag}",
        )
        self.port = port


class ToolMissing(OperatorError):
    """A program that this command starts is not installed."""


class ExtraMissing(OperatorError):
    """An optional package that the command needs is not installed."""


class UnwritableOutput(OperatorError):
    """A file that the command is to write cannot be written."""


class StakingRefused(OperatorError):
    """What is asked for can't be done with this account, key or amount; nothing was sent."""


class GovernanceRefused(OperatorError):
    """What is asked for is not this key's to do, or not now; nothing was sent."""


class HuntingRefused(OperatorError):
    """There is no such evidence, or it would be refused, or there is no bond for it; nothing was sent."""


class RequestRefused(OperatorError):
    """What is asked for can't be asked for on chain; nothing was sent."""


class RoleMismatch(OperatorError):
    """The key that a role was started with does not do that work in this run."""


class ChildFailed(OperatorError):
    """A process that we started ended for good although it should run.

    Attributes:
        name: the process, as the supervisor calls it.
        exit_code: its exit status, negative for a signal.
        tail: the last lines of its log.
    """

    def __init__(
        self, name: str, *, exit_code: int, reason: str, log_file: Path, tail: tuple[str, ...]
    ) -> None:
        super().__init__(f"{name} {reason}", f"see its log {log_file}")
        self.name = name
        self.exit_code = exit_code
        self.tail = tail


class Interrupted(SyntienceError):
    """The operator or the system asked us to stop; everything was closed in order."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number
