"""Starts processes, watches them, restarts the crashed and stops all of them.

A process that ends with one of the settled exit statuses (done, the operator must fix something, wrong usage) is not
started again, because it would end the same way. Any other end is a crash: it is started again after a growing delay,
until it has crashed more often than its budget allows within the budget's window.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from protocol.errors import Bug, OperatorError
from syntience.errors import ChildFailed
from syntience.processes import STOP_GRACE_S, describe_exit, log_tail, send_signal, spawn, stop

SETTLED_EXITS = frozenset({0, 1, 2})
"""Exit statuses of `syntience.cli` after which starting again changes nothing."""
ONE_THREAD: Mapping[str, str] = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
    "TOKENIZERS_PARALLELISM": "false",
}
"""One numeric thread: more collapse when processes share cores, and the bits of some kernels depend on it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """At most `budget` restarts within `window_s`; the delay doubles with each of them."""

    budget: int = 5
    window_s: float = 120.0
    first_delay_s: float = 0.5
    longest_delay_s: float = 15.0

    def delay_after(self, crashes: Sequence[float], now: float) -> float | None:
        """Seconds until the next start, None if the budget is spent.

        Args:
            crashes: times of all crashes, the one just seen included.
        """
        recent = sum(1 for crash in crashes if crash > now - self.window_s)
        if recent > self.budget:
            return None
        return min(self.longest_delay_s, self.first_delay_s * 2.0 ** max(0, recent - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """A process to run.

    Attributes:
        environment: the whole environment of the process; see `child_environment`.
        folder: its working directory, ours by default.
    """

    name: str
    command: tuple[str, ...]
    log_file: Path
    environment: Mapping[str, str] = field(repr=False)
    folder: Path | None = None
    restart: RestartPolicy = RestartPolicy()
    grace_s: float = STOP_GRACE_S


class ProcessState(Enum):
    """Where a supervised process stands."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "restarts soon"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """A process as the supervisor sees it; `exit_code` is that of its last end."""

    name: str
    state: ProcessState
    pid: int | None = None
    restarts: int = 0
    exit_code: int | None = None


@dataclass(slots=True)
class _Watched:
    spec: ProcessSpec
    status: ProcessStatus
    process: Process | None = None
    task: asyncio.Task[None] | None = None


def child_environment(
    inherited: Mapping[str, str], extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a role: ours without our own settings, one numeric thread, then `extra`."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("SYNTIENCE_")}
    return {**kept, **ONE_THREAD, "PYTHONUNBUFFERED": "1", **(extra or {})}


class Supervisor:
    """Runs processes while its `async with` block lasts; leaving the block stops them all."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: dict[str, _Watched] = {}
        self._failure: asyncio.Future[OperatorError] | None = None

    async def __aenter__(self) -> Self:
        self._failure = asyncio.get_running_loop().create_future()
        self._failure.add_done_callback(
            lambda future: future.exception()
        )  # nobody has to ask for it
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_all()

    def start(self, spec: ProcessSpec) -> None:
        """Starts a process and watches it. A name may be used again once its process has ended."""
        if self._failure is None:
            raise Bug("the supervisor is used outside its `async with` block")
        known = self._watched.get(spec.name)
        if known and known.task and not known.task.done():
            raise Bug(f"{spec.name} runs already")
        watched = _Watched(spec, ProcessStatus(name=spec.name, state=ProcessState.STARTING))
        self._watched[spec.name] = watched
        watched.task = asyncio.create_task(self._watch(watched), name=f"watch {spec.name}")
        watched.task.add_done_callback(self._on_watch_ended)

    async def stop(self, name: str) -> None:
        """Stops a process for good."""
        watched = self._watched[name]
        if watched.task is None or watched.task.done():
            return
        watched.task.cancel()
        await asyncio.gather(watched.task, return_exceptions=True)
        watched.status = replace(watched.status, state=ProcessState.STOPPED)

    async def stop_all(self) -> None:
        """Stops every process, all at once."""
        await asyncio.gather(*(self.stop(name) for name in self._watched))

    def signal(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a process, as an operator or the system might; nothing if it doesn't run."""
        process = self._watched[name].process
        if process is not None:
            send_signal(process, number)

    def status(self, name: str) -> ProcessStatus:
        """How a process does."""
        return self._watched[name].status

    def statuses(self) -> tuple[ProcessStatus, ...]:
        """All of them, in the order of their start."""
        return tuple(watched.status for watched in self._watched.values())

    async def wait_for_failure(self) -> OperatorError:
        """Returns as soon as a process has failed for good, with what to raise (mostly a `ChildFailed`)."""
        if self._failure is None:
            raise Bug("the supervisor is used outside its `async with` block")
        return await asyncio.shield(self._failure)

    async def wait_until_done(self, name: str) -> ProcessStatus:
        """Waits until a process is done, failed or stopped."""
        watched = self._watched[name]
        if watched.task is not None:
            await asyncio.wait([watched.task])
        return watched.status

    async def _watch(self, watched: _Watched) -> None:
        spec, crashes = watched.spec, list[float]()
        while True:
            try:
                exit_code = await self._run_once(watched)
            except OperatorError as error:
                self._fail(watched, error)
                return
            if exit_code == 0:
                watched.status = replace(watched.status, state=ProcessState.DONE)
                return
            crashes.append(self._clock())
            delay_s = spec.restart.delay_after(crashes, crashes[-1])
            if exit_code in SETTLED_EXITS or delay_s is None:
                self._fail(
                    watched, _failure(spec, exit_code, gave_up=exit_code not in SETTLED_EXITS)
                )
                return
            _log.warning(
                "%s %s, starts again in %.1f s", spec.name, describe_exit(exit_code), delay_s
            )
            watched.status = replace(watched.status, state=ProcessState.WAITING)
            await asyncio.sleep(delay_s)
            watched.status = replace(watched.status, restarts=watched.status.restarts + 1)

    async def _run_once(self, watched: _Watched) -> int:
        spec = watched.spec
        process = await spawn(
            spec.command, log_file=spec.log_file, environment=spec.environment, folder=spec.folder
        )
        watched.process = process
        watched.status = replace(watched.status, state=ProcessState.RUNNING, pid=process.pid)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await stop(process, grace_s=spec.grace_s)
            watched.process = None
            watched.status = replace(watched.status, pid=None, exit_code=process.returncode)

    def _fail(self, watched: _Watched, error: OperatorError) -> None:
        watched.status = replace(watched.status, state=ProcessState.FAILED)
        _log.error("%s", error)
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(error)

    def _on_watch_ended(self, task: asyncio.Task[None]) -> None:
        """A bug of ours in a watch must not look like a process that is fine."""
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failure is not None and not self._failure.done():
            self._failure.set_exception(error)


def _failure(spec: ProcessSpec, exit_code: int, *, gave_up: bool) -> ChildFailed:
    tail = log_tail(spec.log_file)
    reason = describe_exit(exit_code)
    if gave_up:
        reason += f" more than {spec.restart.budget} times within {spec.restart.window_s:g} s"
    if tail:
        reason += f" ({tail[-1]})"
    return ChildFailed(
        spec.name, exit_code=exit_code, reason=reason, log_file=spec.log_file, tail=tail
    )
