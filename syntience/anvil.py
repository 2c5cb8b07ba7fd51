"""A local chain for devnets and tests: anvil as a child process that is ready when you get it and gone when you leave.

The hard fork is pinned, because anvil's newest one is ahead of what the compiler targets. Its ten funded accounts come
from a public mnemonic: they pay for a devnet and are worth nothing anywhere else.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from protocol.ids import Address, to_address
from syntience.errors import ChildFailed
from syntience.ports import free_port, require_port
from syntience.processes import describe_exit, log_tail, spawn, stop
from syntience.toolchain import find_anvil

HOST = "127.0.0.1"
HARD_FORK = "osaka"
_POLL_S = 0.05
_CALL_TIMEOUT_S = 2.0
_PORT_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnvilOptions:
    """How the chain runs.

    Attributes:
        port: 0 takes a free one.
        block_time_s: a block every so many seconds; None mines one per transaction.
        state_file: the chain is loaded from it and saved to it, every `state_interval_s` and at the end.
        genesis_time: unix time of the genesis block, None for now.
        ready_timeout_s: how long anvil may take to answer.
    """

    port: int = 0
    chain_id: int = 31337
    block_time_s: int | None = 1
    accounts: int = 10
    balance_ether: int = 1_000_000
    state_file: Path | None = None
    state_interval_s: int = 5
    genesis_time: int | None = None
    ready_timeout_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DevAccount:
    """A funded account of the local chain."""

    address: Address
    private_key: bytes = field(repr=False)


class Anvil:
    """A running local chain."""

    def __init__(
        self, process: Process, *, port: int, log_file: Path, accounts: tuple[DevAccount, ...]
    ) -> None:
        self._process = process
        self.port = port
        self.log_file = log_file
        self.accounts = accounts

    @property
    def rpc_url(self) -> str:
        """Where it answers JSON-RPC."""
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of anvil itself."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """False once the process has ended."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Waits until anvil ends by itself; returns its exit status."""
        return await self._process.wait()

    def failure(self) -> ChildFailed:
        """What to raise after `wait` returned."""
        return _failure(self._process, self.log_file)

    @classmethod
    @asynccontextmanager
    async def start(
        cls, *, log_file: Path, options: AnvilOptions | None = None, binary: Path | None = None
    ) -> AsyncIterator[Anvil]:
        """Starts anvil and stops it at the end of the block, whatever ends it.

        Raises:
            ToolMissing: no anvil on this machine.
            PortInUse: the given port is taken.
            ChildFailed: anvil ended or did not answer in time.
        """
        options = options or AnvilOptions()
        program = binary or find_anvil()
        if options.port:
            require_port(HOST, options.port, flag="--port")
        anvil = await cls._launch(program, options, log_file)
        try:
            yield anvil
        finally:
            await stop(anvil._process)

    @classmethod
    async def _launch(cls, program: Path, options: AnvilOptions, log_file: Path) -> Anvil:
        """A chosen free port may be gone when anvil binds it: then another is tried."""
        for attempt in range(_PORT_ATTEMPTS):
            try:
                return await cls._launch_once(
                    program, options, options.port or free_port(HOST), log_file
                )
            except ChildFailed as error:
                taken = any("already in use" in line for line in error.tail)
                if options.port or not taken or attempt == _PORT_ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    @classmethod
    async def _launch_once(
        cls, program: Path, options: AnvilOptions, port: int, log_file: Path
    ) -> Anvil:
        with tempfile.TemporaryDirectory(prefix="syntience-anvil-") as scratch:
            config = Path(scratch) / "config.json"
            process = await spawn(
                [str(program), *_arguments(options, port, config)],
                log_file=log_file,
                environment={"PATH": "/usr/bin:/bin", "HOME": scratch, "NO_COLOR": "1"},
                death_signal=signal.SIGTERM,  # so that it saves its state
            )
            try:
                async with asyncio.timeout(options.ready_timeout_s):
                    await _until_ready(process, port, options.chain_id, log_file)
                accounts = _read_accounts(config)
            except BaseException as error:
                await stop(process)
                if isinstance(error, TimeoutError):
                    raise _failure(process, log_file, "did not answer in time") from error
                raise
        return cls(process, port=port, log_file=log_file, accounts=accounts)


def _arguments(options: AnvilOptions, port: int, config: Path) -> list[str]:
    arguments = ["--silent", "--host", HOST, "--port", str(port), "--hardfork", HARD_FORK]
    arguments += ["--chain-id", str(options.chain_id), "--config-out", str(config)]
    arguments += ["--accounts", str(options.accounts), "--balance", str(options.balance_ether)]
    if options.block_time_s is not None:
        arguments += ["--block-time", str(options.block_time_s)]
    if options.state_file is not None:
        arguments += [
            "--state",
            str(options.state_file),
            "--state-interval",
            str(options.state_interval_s),
        ]
    if options.genesis_time is not None:
        arguments += ["--timestamp", str(options.genesis_time)]
    return arguments


async def _until_ready(process: Process, port: int, chain_id: int, log_file: Path) -> None:
    """Returns once *our* anvil answers; if it ends first, whoever answers on that port is somebody else."""
    ended = asyncio.create_task(process.wait())
    answered = asyncio.create_task(_until_answered(port, chain_id))
    try:
        await asyncio.wait([ended, answered], return_when=asyncio.FIRST_COMPLETED)
        if process.returncode is not None:
            raise _failure(process, log_file)
        answered.result()
    finally:
        ended.cancel()
        answered.cancel()
        await asyncio.gather(ended, answered, return_exceptions=True)


async def _until_answered(port: int, chain_id: int) -> None:
    timeout = aiohttp.ClientTimeout(total=_CALL_TIMEOUT_S)
    request = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                async with session.post(f"http://{HOST}:{port}", json=request) as response:
                    answer = await response.json(content_type=None)
                    if int(answer["result"], 16) == chain_id:
                        return
            except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError):
                pass  # not up yet
            await asyncio.sleep(_POLL_S)


def _read_accounts(config: Path) -> tuple[DevAccount, ...]:
    written = json.loads(config.read_text())
    pairs = zip(written["available_accounts"], written["private_keys"], strict=True)
    return tuple(
        DevAccount(address=to_address(address), private_key=bytes.fromhex(key.removeprefix("0x")))
        for address, key in pairs
    )


def _failure(process: Process, log_file: Path, reason: str | None = None) -> ChildFailed:
    exit_code = process.returncode if process.returncode is not None else 0
    tail = log_tail(log_file)
    what = reason or describe_exit(exit_code)
    return ChildFailed(
        "the local chain (anvil)",
        exit_code=exit_code,
        reason=f"{what} ({tail[-1]})" if tail else what,
        log_file=log_file,
        tail=tail,
    )
