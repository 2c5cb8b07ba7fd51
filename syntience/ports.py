"""TCP ports of this machine: a free one, or a clear word that one is taken."""

from __future__ import annotations

import errno
import socket

from syntience.errors import ConfigError, PortInUse


def free_port(host: str = "127.0.0.1") -> int:
    """A port that was free a moment ago. Another process may take it first, so callers retry."""
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def require_port(host: str, port: int, *, flag: str) -> None:
    """Checks that we may listen there.

    Raises:
        PortInUse: somebody else does.
        ConfigError: the host is not one of ours, or the port needs privileges.
    """
    with socket.socket(_family(host), socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(host, port, flag=flag) from error
            raise ConfigError(
                f"can't listen on {host}:{port} ({error.strerror or error})",
                f"choose another place with {flag}",
            ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
