"""Children with real processes: none outlives its parent, however that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from syntience.errors import ToolMissing, UnwritableOutput
from syntience.processes import describe_exit, log_tail, send_signal, spawn, stop

ENVIRONMENT = {"PATH": os.environ["PATH"]}
SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", code]


def is_alive(pid: int) -> bool:
    """True for a process that still runs (a zombie does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


async def until_line(log: Path, text: str) -> None:
    async with asyncio.timeout(20):
        while not any(text in line for line in log_tail(log)):
            await asyncio.sleep(0.02)


def until_gone(pid: int, timeout_s: float = 10) -> bool:
    deadline = time.monotonic() + timeout_s
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_alive(pid)


async def test_stop__a_polite_child__ends_on_sigterm(tmp_path: Path) -> None:
    child = await spawn(python(SLEEPER), log_file=tmp_path / "log", environment=ENVIRONMENT)
    await until_line(tmp_path / "log", "up")
    assert await stop(child) == -signal.SIGTERM


async def test_stop__a_child_that_ignores_sigterm__is_killed_after_the_grace(
    tmp_path: Path,
) -> None:
    child = await spawn(python(STUBBORN), log_file=tmp_path / "log", environment=ENVIRONMENT)
    await until_line(tmp_path / "log", "up")
    assert await stop(child, grace_s=0.2) == -signal.SIGKILL


async def test_stop__cancelled_while_it_waits__kills_at_once(tmp_path: Path) -> None:
    child = await spawn(python(STUBBORN), log_file=tmp_path / "log", environment=ENVIRONMENT)
    await until_line(tmp_path / "log", "up")
    stopping = asyncio.create_task(stop(child, grace_s=60))
    await asyncio.sleep(0.1)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    async with asyncio.timeout(5):
        assert await child.wait() == -signal.SIGKILL


async def test_stop__a_child_with_children__ends_the_whole_group(tmp_path: Path) -> None:
    family = f"import subprocess, sys; p = subprocess.Popen({python(SLEEPER)!r}); print('pid', p.pid, flush=True); p.wait()"
    child = await spawn(python(family), log_file=tmp_path / "log", environment=ENVIRONMENT)
    await until_line(tmp_path / "log", "pid")
    grandchild = next(
        int(line.split()[1]) for line in log_tail(tmp_path / "log") if line.startswith("pid")
    )
    await stop(child)
    assert until_gone(grandchild)


async def test_send_signal__after_the_end__does_nothing(tmp_path: Path) -> None:
    child = await spawn(python("pass"), log_file=tmp_path / "log", environment=ENVIRONMENT)
    await child.wait()
    send_signal(child, signal.SIGKILL)
    assert await stop(child) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel call exists on Linux only")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_spawn__parent_dies__child_dies_too(tmp_path: Path, how: signal.Signals) -> None:
    log, inner = tmp_path / "log", tmp_path / "inner"
    parent_code = f"""
import asyncio
from pathlib import Path
from syntience.processes import spawn
async def main():
    child = await spawn({python(STUBBORN)!r}, log_file=Path({str(inner)!r}), environment={{}})
    print("pid", child.pid, flush=True)
    await child.wait()
asyncio.run(main())
"""
    parent = await spawn(
        [sys.executable, "-c", parent_code],
        log_file=log,
        environment={**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    await until_line(log, "pid")
    await until_line(inner, "up")
    child = next(int(line.split()[1]) for line in log_tail(log) if line.startswith("pid"))
    assert is_alive(child)
    os.kill(parent.pid, how)
    await parent.wait()
    assert until_gone(child)


async def test_spawn__missing_program__says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="no-such-program"):
        await spawn(["/no-such-program"], log_file=tmp_path / "log", environment={})


async def test_spawn__log_in_a_file_s_place__says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UnwritableOutput, match="can't write the log"):
        await spawn(python("pass"), log_file=tmp_path / "taken" / "log", environment={})


async def test_spawn__again_with_one_log__appends(tmp_path: Path) -> None:
    for word in ("first", "second"):
        child = await spawn(python(f"print({word!r})"), log_file=tmp_path / "log", environment={})
        await child.wait()
    assert log_tail(tmp_path / "log") == ("first", "second")


def test_log_tail__long_log__keeps_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(f"line {i}" for i in range(100_000)) + "\n\n")
    assert log_tail(log, lines=2) == ("line 99998", "line 99999")
    assert log_tail(tmp_path / "none") == ()


def test_describe_exit__statuses_and_signals__are_words() -> None:
    assert describe_exit(3) == "ended with exit status 3"
    assert describe_exit(-9) == "was killed by SIGKILL"
    assert describe_exit(-200) == "was killed by signal 200"
