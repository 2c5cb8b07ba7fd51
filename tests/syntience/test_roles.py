"""A role's process: it waits for its slot, works, tells what it measures, and stops cleanly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from syntience.cli.app import run
from syntience.ports import free_port
from tests.chain import start_anvil
from tests.specs import tokens
from tests.syntience.town import PASSWORD, Town, found_town

_PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SYNTIENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
    monkeypatch.setenv("SYNTIENCE_OPERATOR_PASSWORD", PASSWORD)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """One run for all tests of this file; its genesis is far away."""
    with pytest.MonkeyPatch.context() as patch, start_anvil() as anvil:
        patch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
        yield found_town(anvil, tmp_path_factory.mktemp("town"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running role."""

    child: subprocess.Popen[bytes]
    log: Path

    def until(self, pattern: str) -> re.Match[str]:
        """Waits until its log has a line like this."""
        deadline = time.monotonic() + _PATIENCE_S
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


def _role(town: Town, role: str, key: str, *more: str) -> list[str]:
    place = ["--state", str(town.folder / f"state-{key}"), "--listen-port", str(free_port())]
    return [role, "run", *town.options(key), *place, "--data", str(town.data), *more]


@contextmanager
def _started(town: Town, *arguments: str) -> Iterator[Process]:
    log = town.folder / f"log-{time.monotonic_ns()}.txt"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "syntience", *arguments], stdout=out, stderr=out
        )
    try:
        yield Process(child=child, log=log)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def test_miner__not_registered_yet__waits_then_works_and_stops_on_sigterm(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.key("miner", tokens=tokens(100))
    operator = town.key("miner-operator")
    metrics = free_port()
    arguments = _role(town, "miner", "miner-operator", "--metrics-port", str(metrics))
    with _started(town, *arguments) as miner:
        miner.until(
            rf"waiting: the key {operator.address} acts for no account in this run yet; register it: "
            "syntience stake deposit --role miner --amount 100 "
        )
        hot = ["--operator-keystore", str(town.path("miner-operator"))]
        assert town.deposit("miner", "miner", "100", *hot) == 0
        miner.until("model at the start of round 1")
        assert miner.until(r"miner ready account=(\w+)")
        assert "others reach this node at http://127.0.0.1:7700 as registered" in (
            miner.log.read_text()
        )
        gauges = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10).read()
        assert b"syntience_head_round 1.0" in gauges
        assert b"syntience_epoch 0.0" in gauges

        second = list(arguments)
        second[second.index("--listen-port") + 1] = str(free_port())
        del second[second.index("--metrics-port") :]
        capsys.readouterr()
        assert run(second) == 1
        assert re.search("error: .*another process", capsys.readouterr().err)

        assert miner.stop() == 143
    assert "Traceback" not in miner.log.read_text()
    assert "error:" not in miner.log.read_text()


def test_miner__stopped_while_it_waits__ends_at_once(town: Town) -> None:
    town.key("waiting")
    with _started(town, *_role(town, "miner", "waiting")) as miner:
        miner.until("waiting: ")
        assert miner.stop() == 143
    assert "Traceback" not in miner.log.read_text()


def test_role__key_of_another_role_or_of_a_former_operator__says_so(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.key("validator", tokens=tokens(1000))
    first, second = town.key("validator-1"), town.key("validator-2")
    hot = ["--operator-keystore", str(town.path("validator-1"))]
    assert town.deposit("validator", "validator", "1000", *hot) == 0
    capsys.readouterr()
    assert run(_role(town, "miner", "validator-1")) == 1
    assert "is a validator, not a miner: run `syntience validator run` with this key" in (
        capsys.readouterr().err
    )
    hot = ["--operator-keystore", str(town.path("validator-2"))]
    assert run(["stake", "rotate-operator", *hot, *town.options("validator")]) == 0
    assert run(_role(town, "validator", "validator-1")) == 1
    line = capsys.readouterr().err
    assert f"the key {first.address} no longer acts for" in line
    assert f"its present operator {second.address}" in line


@pytest.mark.parametrize("role", ["validator", "hunter"])
def test_role__everything_there__is_ready_and_stops_on_sigterm(town: Town, role: str) -> None:
    key = f"{role}-alone"
    town.key(key, tokens=tokens(1000))
    if role == "validator":
        assert town.deposit(key, role, "1000") == 0
    with _started(town, *_role(town, role, key, "--log-json")) as process:
        process.until(f'"message": "{role} ready"')
        assert process.stop() == 143
    assert "Traceback" not in process.log.read_text()
