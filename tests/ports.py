"""Ports for tests that start servers: never one that another test process takes meanwhile."""

from __future__ import annotations

import itertools
import os
import socket

# Below the ports that the system gives out by itself (from 32768 on), a range for each process that runs tests.
_FIRST, _RANGE = 12_000, 1_500
_WORKER = int("".join(filter(str.isdigit, os.environ.get("PYTEST_XDIST_WORKER", ""))) or 0)
_next = itertools.cycle(range(_FIRST + _WORKER * _RANGE, _FIRST + (_WORKER + 1) * _RANGE))


def free_port() -> int:
    """A port of this process's range that nobody listens on."""
    for port in itertools.islice(_next, _RANGE):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no port is free from {_FIRST + _WORKER * _RANGE} on")
