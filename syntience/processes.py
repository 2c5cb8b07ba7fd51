"""Child processes that cannot outlive us: each in its own process group, its output in a log file.

A group of its own keeps the terminal's Ctrl-C from the child, so that the parent decides who stops first. On Linux the
kernel also kills the child when the parent dies in any way, SIGKILL included.

Footgun: the kernel ties that to the *thread* that started the child, so children are started from the main thread.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from syntience.errors import ToolMissing, UnwritableOutput

STOP_GRACE_S = 10.0
"""How long a child may take to stop after SIGTERM before it is killed."""
_PR_SET_PDEATHSIG = 1
_TAIL_BYTES = 16_384


async def spawn(
    command: Sequence[str],
    *,
    log_file: Path,
    environment: Mapping[str, str],
    folder: Path | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> Process:
    """Starts a child. Its stdout and stderr are appended to the log file; it has no stdin.

    Args:
        environment: the child's whole environment.
        folder: the child's working directory, ours by default.
        death_signal: what the kernel sends the child when we die (Linux).

    Raises:
        ToolMissing: the program is not there or not executable.
        UnwritableOutput: the log file can't be written.
    """
    log = _open_log(log_file)
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=log,
            stderr=STDOUT,
            env=dict(environment),
            cwd=folder,
            process_group=0,
            preexec_fn=_die_with_parent(death_signal),
        )
    except (FileNotFoundError, PermissionError) as error:
        raise ToolMissing(
            f"can't start {command[0]} ({error.strerror})", "run scripts/setup, or install it"
        ) from error
    finally:
        log.close()


async def stop(process: Process, *, grace_s: float = STOP_GRACE_S) -> int:
    """SIGTERM, then SIGKILL after the grace; returns the exit status. Cancelling it kills at once."""
    send_signal(process, signal.SIGTERM)
    try:
        async with asyncio.timeout(grace_s):
            return await process.wait()
    except TimeoutError:
        pass
    finally:
        send_signal(process, signal.SIGKILL)
    return await process.wait()


def send_signal(process: Process, number: signal.Signals) -> None:
    """To the child's whole group; nothing happens if the child has ended."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def describe_exit(exit_code: int) -> str:
    """How a process ended, in words."""
    if exit_code >= 0:
        return f"ended with exit status {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"was killed by {name}"


def log_tail(log_file: Path, *, lines: int = 20) -> tuple[str, ...]:
    """The last lines of a log, without its empty ones; nothing if there is no log."""
    try:
        with log_file.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(line for line in text.splitlines() if line.strip())[-lines:]


def _open_log(log_file: Path) -> BinaryIO:
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        return log_file.open("ab")
    except OSError as error:
        raise UnwritableOutput(
            f"can't write the log {log_file} ({error.strerror})",
            "choose a folder that this user may write",
        ) from error


def _die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """What the child runs between fork and exec, None where the system has no such call."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(
        None, use_errno=True
    ).prctl  # loaded before the fork: nothing may lock after it
    parent = os.getpid()

    def in_child() -> None:
        prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return in_child
