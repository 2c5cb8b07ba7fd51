"""The local chain, with the real anvil."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from pathlib import Path

import aiohttp
import pytest

from syntience.anvil import Anvil, AnvilOptions
from syntience.errors import ChildFailed, PortInUse, ToolMissing
from syntience.processes import log_tail, spawn
from syntience.toolchain import find_anvil, platform_package, tool_version
from tests.syntience.test_processes import is_alive, until_gone, until_line

try:
    BINARY: Path | None = find_anvil()
except ToolMissing:
    BINARY = None
needs_anvil = pytest.mark.skipif(
    BINARY is None, reason="anvil is not installed (scripts/setup installs it)"
)
FIRST_ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


async def rpc(anvil: Anvil, method: str, *params: object) -> object:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    async with (
        aiohttp.ClientSession() as session,
        session.post(anvil.rpc_url, json=request) as response,
    ):
        return (await response.json())["result"]


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@needs_anvil
async def test_start__default__answers_with_funded_accounts_and_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    async with Anvil.start(log_file=tmp_path / "anvil.log") as anvil:
        assert await rpc(anvil, "eth_chainId") == hex(31337)
        assert len(anvil.accounts) == 10
        assert anvil.accounts[0].address == FIRST_ACCOUNT
        assert anvil.accounts[0].private_key.hex() not in repr(anvil.accounts[0])
        balance = await rpc(anvil, "eth_getBalance", FIRST_ACCOUNT, "latest")
        assert int(str(balance), 16) == 10**24
        assert anvil.is_running
        assert is_alive(anvil.pid)
    assert not anvil.is_running
    assert not is_alive(anvil.pid)


@needs_anvil
async def test_start__twice__takes_two_ports(tmp_path: Path) -> None:
    options = AnvilOptions(chain_id=99, block_time_s=None)
    async with (
        Anvil.start(log_file=tmp_path / "a.log", options=options) as a,
        Anvil.start(log_file=tmp_path / "b.log", options=options) as b,
    ):
        assert a.port != b.port
        assert await rpc(b, "eth_chainId") == hex(99)


@needs_anvil
async def test_start__state_file__carries_the_chain_over(tmp_path: Path) -> None:
    options = AnvilOptions(state_file=tmp_path / "state.json", block_time_s=None)
    log = tmp_path / "anvil.log"
    async with Anvil.start(log_file=log, options=options) as anvil:
        await rpc(anvil, "anvil_mine", hex(7))
    async with Anvil.start(log_file=log, options=options) as anvil:
        assert await rpc(anvil, "eth_blockNumber") == hex(7)


@needs_anvil
async def test_start__given_port_taken__says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use: .*--port"):
            async with Anvil.start(log_file=tmp_path / "log", options=AnvilOptions(port=port)):
                pass


@needs_anvil
async def test_start__free_port_snatched__tries_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            free = probe.getsockname()[1]
        ports = iter([taken.getsockname()[1], free])
        monkeypatch.setattr("syntience.anvil.free_port", lambda host: next(ports))
        async with Anvil.start(log_file=tmp_path / "log") as anvil:
            assert anvil.port == free


@needs_anvil
async def test_start__exception_in_the_block__stops_it(tmp_path: Path) -> None:
    pids = []

    async def fail() -> None:
        async with Anvil.start(log_file=tmp_path / "log") as anvil:
            pids.append(anvil.pid)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert [is_alive(pid) for pid in pids] == [False]


@needs_anvil
async def test_wait__anvil_killed__returns_and_names_the_log(tmp_path: Path) -> None:
    async with Anvil.start(log_file=tmp_path / "log") as anvil:
        os.kill(anvil.pid, signal.SIGKILL)
        assert await anvil.wait() == -signal.SIGKILL
        assert "(anvil) was killed by SIGKILL" in str(anvil.failure())
    assert until_gone(anvil.pid)


async def test_start__program_that_fails__shows_its_last_words(tmp_path: Path) -> None:
    broken = program(tmp_path / "anvil", "#!/bin/sh\necho no such hardfork >&2\nexit 3\n")
    with pytest.raises(ChildFailed, match=r"exit status 3 \(no such hardfork\)") as caught:
        async with Anvil.start(log_file=tmp_path / "log", binary=broken):
            pass
    assert caught.value.exit_code == 3


async def test_start__program_that_hangs__is_stopped_at_the_deadline(tmp_path: Path) -> None:
    hung = program(tmp_path / "anvil", "#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(ChildFailed, match="did not answer in time"):
        async with Anvil.start(
            log_file=tmp_path / "log", binary=hung, options=AnvilOptions(ready_timeout_s=0.3)
        ):
            pass


def test_find_anvil__nothing_installed__says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=r"not installed: run ./scripts/setup"):
        find_anvil(roots=[tmp_path], search_path=str(tmp_path))


def test_find_anvil__node_script_on_path__takes_the_platform_package_beside_it(
    tmp_path: Path,
) -> None:
    package = platform_package("anvil")
    assert package is not None
    scope = tmp_path / "lib" / "node_modules" / "@foundry-rs"
    script = program(scope / "anvil" / "bin.mjs", "#!/usr/bin/env node\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "anvil").symlink_to(script)
    with pytest.raises(ToolMissing):
        find_anvil(roots=[], search_path=str(tmp_path / "bin"))
    binary = program(scope / package / "bin" / "anvil", "\x7fELF")
    assert find_anvil(roots=[], search_path=str(tmp_path / "bin")) == binary


def test_find_anvil__given_path__is_taken_or_refused(tmp_path: Path) -> None:
    mine = program(tmp_path / "mine", "#!/bin/sh\n")
    assert find_anvil(given=mine) == mine
    with pytest.raises(ToolMissing, match="not an executable anvil"):
        find_anvil(given=tmp_path / "none")


def test_tool_version__a_program_that_fails__says_so(tmp_path: Path) -> None:
    good = program(tmp_path / "good", "#!/bin/sh\necho anvil 1.7.1\n")
    assert tool_version(good) == "anvil 1.7.1"
    with pytest.raises(ToolMissing, match="does not run"):
        tool_version(program(tmp_path / "bad", "#!/bin/sh\nexit 1\n"))


@pytest.mark.parametrize(
    ("system", "machine", "package"),
    [
        ("linux", "x86_64", "anvil-linux-amd64"),
        ("darwin", "arm64", "anvil-darwin-arm64"),
        ("linux", "riscv64", None),
    ],
)
def test_platform_package__machines__are_npm_names(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, package: str | None
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert platform_package("anvil") == package


@needs_anvil
@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ties a child's life to its parent's"
)
async def test_start__our_process_killed__the_chain_dies_too(tmp_path: Path) -> None:
    code = f"""
import asyncio
from pathlib import Path
from syntience.anvil import Anvil
async def main():
    async with Anvil.start(log_file=Path({str(tmp_path)!r}) / "anvil.log") as anvil:
        print("pid", anvil.pid, flush=True)
        await anvil.wait()
asyncio.run(main())
"""
    parent = await spawn(
        [sys.executable, "-c", code],
        log_file=tmp_path / "log",
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    await until_line(tmp_path / "log", "pid")
    pid = int(log_tail(tmp_path / "log")[-1].split()[1])
    assert is_alive(pid)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    assert until_gone(pid)
