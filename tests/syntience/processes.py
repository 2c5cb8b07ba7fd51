"""Roles as processes, for tests that watch their logs and stop them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.syntience.town import Town

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running role."""

    child: subprocess.Popen[bytes]
    log: Path

    def until(self, pattern: str, *, patience_s: float = _PATIENCE_S) -> re.Match[str]:
        """Waits until its log has a line like this."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.log.read_text()):
                return found
            if self.child.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"no {pattern!r} in:\n{self.log.read_text()}")

    def stop(self) -> int:
        """Asks it to stop; returns its exit status."""
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(30)


def role_command(town: Town, role: str, key: str, *more: str) -> list[str]:
    """A role's command line; it listens where `Town.deposit` registers the same key."""
    place = ["--state", str(town.folder / f"state-{key}"), "--listen-port", str(town.port(key))]
    return [role, "run", *town.options(key), *place, "--data", str(town.data), *more]


def by_torchrun(processes: int) -> tuple[str, ...]:
    """The program in so many processes on this machine.

    Without the dashes torchrun takes `--run` for the beginning of an option of its own.
    """
    options = ("--standalone", "--nproc-per-node", str(processes))
    return (sys.executable, "-m", "torch.distributed.run", *options, "-m", "--", "syntience")


@contextmanager
def started(town: Town, *arguments: str, crew: int | None = None) -> Iterator[Process]:
    """Runs the command in a process of its own, or by torchrun in so many."""
    log = town.folder / f"log-{time.monotonic_ns()}.txt"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [*(by_torchrun(crew) if crew else (sys.executable, "-m", "syntience")), *arguments],
            stdout=out,
            stderr=out,
        )
    try:
        yield Process(child=child, log=log)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
