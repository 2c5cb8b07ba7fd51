"""A real chain for tests: anvil on a free port, and funded keys on it.

`Anvil` is synchronous and has no state of its own, so that session fixtures, subprocesses and event loops can share it.
Tests that share one chain stay apart by using fresh keys (`Anvil.key`); tests that mine, rewind or break things start
an anvil of their own (`start_anvil`).
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.keys import LocalSigner, new_private_key

ROOT = Path(__file__).resolve().parent.parent
ETHER = 10**18
_LISTENING = re.compile(r"Listening on 127\.0\.0\.1:(\d+)")
_START_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Anvil:
    """A running anvil."""

    url: str
    pid: int

    def rpc(self, method: str, *parameters: Any) -> Any:
        """One JSON-RPC request, without any of the code under test."""
        answer = self.try_rpc(method, *parameters)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def try_rpc(self, method: str, *parameters: Any) -> dict[str, Any]:
        """As `rpc`, but the whole answer, which may be an error."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(parameters)}
        request = urllib.request.Request(
            self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def transact(self, transaction: dict[str, str]) -> dict[str, Any]:
        """Sends from any account, key or no key, and returns the receipt.

        A busy anvil answers before it has mined, even if it mines each transaction at once.
        """
        sent = self.rpc("eth_sendTransaction", transaction)
        deadline = time.monotonic() + 30
        while (receipt := self.rpc("eth_getTransactionReceipt", sent)) is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"{sent} is in no block")
            time.sleep(0.01)
        found: dict[str, Any] = receipt
        return found

    def key(self, ether: int = 1_000) -> LocalSigner:
        """A fresh key that holds native currency."""
        signer = LocalSigner(new_private_key())
        self.fund(signer.address, ether)
        return signer

    def fund(self, address: str, ether: int = 1_000) -> None:
        """Sets an account's native balance."""
        self.rpc("anvil_setBalance", address, hex(ether * ETHER))

    def mine(self, blocks: int = 1) -> None:
        """Mines blocks at once."""
        self.rpc("anvil_mine", hex(blocks))

    def block_number(self) -> int:
        """Number of the newest block."""
        return int(self.rpc("eth_blockNumber"), 16)

    def time(self) -> int:
        """Timestamp of the newest block."""
        return int(self.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    def advance_to(self, timestamp: int) -> None:
        """Mines a block with exactly this timestamp."""
        self.rpc("evm_setNextBlockTimestamp", hex(timestamp))
        self.mine()

    def nonce(self, address: str) -> int:
        """Transactions of an account that are in blocks."""
        return int(self.rpc("eth_getTransactionCount", address, "latest"), 16)

    def balance(self, address: str) -> int:
        """Native balance in wei."""
        return int(self.rpc("eth_getBalance", address, "latest"), 16)


def anvil_binary() -> Path:
    """The binary of the platform's package; the wrapper script's pid would not be anvil's."""
    system = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}[platform.system()]
    machine = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}[
        platform.machine()
    ]
    name = "anvil.exe" if system == "win32" else "anvil"
    return ROOT / "node_modules" / "@foundry-rs" / f"anvil-{system}-{machine}" / "bin" / name


@contextmanager
def start_anvil(*arguments: str) -> Iterator[Anvil]:
    """Starts anvil on a free port and stops exactly that process in the end.

    Blocks come with each transaction unless the arguments say otherwise, e.g. ``--block-time 1`` or ``--no-mining``.
    """
    command = [str(anvil_binary()), "--port", "0", "--hardfork", "osaka", "--accounts", "1"]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "FOUNDRY_DISABLE_NIGHTLY_WARNING": "1"},
    )
    try:
        yield Anvil(url=f"http://127.0.0.1:{_port(process)}", pid=process.pid)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _port(process: subprocess.Popen[str]) -> int:
    """Reads the port that anvil chose, and goes on reading, so that its pipe never fills up."""
    assert process.stdout is not None
    stream, seen = process.stdout, list[str]()
    watchdog = threading.Timer(_START_S, process.kill)
    watchdog.start()
    for line in stream:
        seen.append(line)
        if match := _LISTENING.search(line):
            watchdog.cancel()
            threading.Thread(target=_drain, args=(stream,), daemon=True).start()
            return int(match[1])
    watchdog.cancel()
    raise AssertionError(f"anvil did not start: {''.join(seen)}")


def _drain(stream: Any) -> None:
    try:
        for _ in stream:
            pass
    except ValueError:
        pass  # closed at the end of the test


def random_bytes32() -> bytes:
    """32 bytes that no other test uses."""
    return secrets.token_bytes(32)
