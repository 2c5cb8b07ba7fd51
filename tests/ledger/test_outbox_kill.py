"""SIGKILL at any point: a restart neither loses nor doubles a transaction."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ledger.keys import LocalSigner, new_private_key
from tests.chain import ROOT, Anvil, start_anvil
from tests.ledger.outbox_child import STEPS
from tests.ledger.world import stranger

COUNT = 6


def _start(
    anvil: Anvil, folder: Path, key: bytes, recipient: str, *die: str
) -> subprocess.Popen[str]:
    arguments = [anvil.url, str(folder), key.hex(), recipient, str(COUNT), *die]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.outbox_child", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=60)
    return output


def _funded(anvil: Anvil) -> bytes:
    key = new_private_key()
    anvil.fund(LocalSigner(key).address)
    return key


@pytest.mark.parametrize("step", STEPS)
def test_outbox__killed_at_a_step__each_payment_arrives_once(tmp_path: Path, step: str) -> None:
    with start_anvil("--block-time", "1") as anvil:
        key, recipient = _funded(anvil), stranger()
        process = _start(anvil, tmp_path, key, recipient, f"{step}:{COUNT // 2}")
        output = _finish(process)
        assert process.returncode == -signal.SIGKILL, output
        last = _start(anvil, tmp_path, key, recipient)
        assert _finish(last) == "done\n"
        assert anvil.balance(recipient) == COUNT
        assert anvil.nonce(LocalSigner(key).address) == COUNT


def test_outbox__killed_at_any_time__each_payment_arrives_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    with start_anvil("--block-time", "1") as anvil:
        key, recipient = _funded(anvil), stranger()
        for _ in range(4):
            process = _start(anvil, tmp_path, key, recipient)
            time.sleep(chance.uniform(0.9, 2.2))
            process.kill()
            _finish(process)
        assert _finish(_start(anvil, tmp_path, key, recipient)) == "done\n"
        assert anvil.balance(recipient) == COUNT
        assert anvil.nonce(LocalSigner(key).address) == COUNT
