"""The supervisor with small real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from protocol.errors import Bug
from syntience.errors import ChildFailed, ToolMissing
from syntience.processes import log_tail
from syntience.supervisor import (
    ProcessSpec,
    ProcessState,
    RestartPolicy,
    Supervisor,
    child_environment,
)
from tests.syntience.test_processes import is_alive, python, until_gone, until_line

SLEEPER = "import os, time; print('up', os.getpid(), flush=True); time.sleep(60)"
FAST = RestartPolicy(budget=2, window_s=60, first_delay_s=0.02, longest_delay_s=0.05)


def spec(
    tmp_path: Path, code: str, *, name: str = "child", restart: RestartPolicy = FAST
) -> ProcessSpec:
    return ProcessSpec(
        name=name,
        command=tuple(python(code)),
        log_file=tmp_path / f"{name}.log",
        environment=child_environment({"PATH": os.environ["PATH"]}),
        restart=restart,
        grace_s=2,
    )


async def running(supervisor: Supervisor, name: str, *, other_than: int | None = None) -> int:
    async with asyncio.timeout(20):
        while True:
            status = supervisor.status(name)
            if status.state is ProcessState.RUNNING and status.pid not in (None, other_than):
                assert status.pid is not None
                return status.pid
            await asyncio.sleep(0.01)


async def test_watch__child_killed__is_started_again(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, SLEEPER))
        first = await running(supervisor, "child")
        os.kill(first, signal.SIGKILL)
        second = await running(supervisor, "child", other_than=first)
        assert supervisor.status("child").restarts == 1
        assert supervisor.status("child").exit_code == -signal.SIGKILL
        await until_line(tmp_path / "child.log", f"up {second}")
    assert until_gone(second)


async def test_watch__crashes_beyond_the_budget__fails_with_the_tail_of_its_log(
    tmp_path: Path,
) -> None:
    code = "print('out of luck'); raise SystemExit(70)"
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, code))
        async with asyncio.timeout(20):
            error = await supervisor.wait_for_failure()
        assert isinstance(error, ChildFailed)
        assert error.exit_code == 70
        assert error.tail == ("out of luck",) * 3
        assert "more than 2 times within 60 s (out of luck)" in str(error)
        assert "\n" not in str(error)
        assert supervisor.status("child").state is ProcessState.FAILED
        assert supervisor.status("child").restarts == 2


@pytest.mark.parametrize("status", [1, 2])
async def test_watch__operator_must_fix__is_not_started_again(tmp_path: Path, status: int) -> None:
    async with Supervisor() as supervisor:
        supervisor.start(
            spec(tmp_path, f"print('error: no stake: deposit some'); raise SystemExit({status})")
        )
        async with asyncio.timeout(20):
            error = await supervisor.wait_for_failure()
        assert "error: no stake: deposit some" in str(error)
        assert supervisor.status("child").restarts == 0


async def test_watch__clean_end__is_done_and_no_failure(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, "pass"))
        status = await supervisor.wait_until_done("child")
        assert (status.state, status.exit_code, status.pid) == (ProcessState.DONE, 0, None)
        waiting = asyncio.create_task(supervisor.wait_for_failure())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waiting.cancel()


async def test_start__missing_program__is_a_failure(tmp_path: Path) -> None:
    broken = ProcessSpec(name="x", command=("/no-such",), log_file=tmp_path / "log", environment={})
    async with Supervisor() as supervisor:
        supervisor.start(broken)
        async with asyncio.timeout(20):
            assert isinstance(await supervisor.wait_for_failure(), ToolMissing)


async def test_start__a_running_name__is_refused(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, SLEEPER))
        with pytest.raises(Bug, match="runs already"):
            supervisor.start(spec(tmp_path, SLEEPER))


async def test_start__a_stopped_name__runs_again(tmp_path: Path) -> None:
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, SLEEPER))
        first = await running(supervisor, "child")
        await supervisor.stop("child")
        assert supervisor.status("child").state is ProcessState.STOPPED
        assert not is_alive(first)
        supervisor.start(spec(tmp_path, SLEEPER))
        await running(supervisor, "child", other_than=first)


async def test_stop__while_waiting_for_a_restart__stays_stopped(tmp_path: Path) -> None:
    slow = RestartPolicy(budget=5, first_delay_s=30, longest_delay_s=30)
    async with Supervisor() as supervisor:
        supervisor.start(spec(tmp_path, "raise SystemExit(70)", restart=slow))
        async with asyncio.timeout(20):
            while supervisor.status("child").state is not ProcessState.WAITING:
                await asyncio.sleep(0.01)
        await supervisor.stop("child")
        assert supervisor.status("child").state is ProcessState.STOPPED


async def test_exit__an_exception_in_the_block__stops_every_child(tmp_path: Path) -> None:
    pids = []
    supervisor = Supervisor()

    async def fail() -> None:
        async with supervisor:
            for name in ("a", "b", "c"):
                supervisor.start(spec(tmp_path, SLEEPER, name=name))
                pids.append(await running(supervisor, name))
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await fail()
    assert [is_alive(pid) for pid in pids] == [False] * 3
    assert {status.state for status in supervisor.statuses()} == {ProcessState.STOPPED}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
async def test_parent__ends_by_any_signal__no_child_is_left(
    tmp_path: Path, number: signal.Signals
) -> None:
    if number is signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux can tie a child's life to its parent's")
    code = f"""
import asyncio
from pathlib import Path
from syntience.errors import Interrupted
from syntience.signals import run_interruptible
from syntience.supervisor import ProcessSpec, Supervisor
async def main():
    async with Supervisor() as supervisor:
        for name in "ab":
            supervisor.start(ProcessSpec(name=name, command={tuple(python(SLEEPER))!r},
                log_file=Path({str(tmp_path)!r}) / (name + ".log"), environment={{}}))
        await supervisor.wait_for_failure()
try:
    run_interruptible(main())
except Interrupted as stopped:
    print(stopped, flush=True)
    raise SystemExit(128 + stopped.signal_number)
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    logs = [tmp_path / "a.log", tmp_path / "b.log"]
    for log in logs:
        await until_line(log, "up")
    children = [int(log_tail(log)[-1].split()[1]) for log in logs]
    parent.send_signal(number)
    async with asyncio.timeout(20):
        output, _ = await parent.communicate()
    if number is signal.SIGKILL:
        assert parent.returncode == -signal.SIGKILL
    else:
        assert parent.returncode == 128 + number
        assert output.decode().strip() == f"stopped by {number.name}"
    assert all(until_gone(child) for child in children)


def test_delay_after__growing_number_of_crashes__doubles_up_to_its_limit_and_the_budget() -> None:
    policy = RestartPolicy(budget=4, window_s=100, first_delay_s=1, longest_delay_s=5)
    delays = [policy.delay_after([float(i) for i in range(n)], float(n)) for n in range(1, 6)]
    assert delays == [1, 2, 4, 5, None]


def test_delay_after__old_crashes__are_forgiven() -> None:
    policy = RestartPolicy(budget=1, window_s=10, first_delay_s=1)
    assert policy.delay_after([0.0, 5.0], 5.0) is None
    assert policy.delay_after([0.0, 11.0], 11.0) == 1


def test_child_environment__pins_threads_and_drops_our_own_settings() -> None:
    made = child_environment(
        {"PATH": "/bin", "SYNTIENCE_PASSWORD": "secret", "OMP_NUM_THREADS": "8"},
        {"MKL_CBWR": "AVX2"},
    )
    assert made["PATH"] == "/bin"
    assert made["MKL_CBWR"] == "AVX2"
    assert made["OMP_NUM_THREADS"] == made["MKL_NUM_THREADS"] == made["OPENBLAS_NUM_THREADS"] == "1"
    assert made["OMP_WAIT_POLICY"] == "passive"
    assert "SYNTIENCE_PASSWORD" not in made
