"""A role's process: it waits for its slot, works, tells what it measures, and stops cleanly."""

from __future__ import annotations

import os
import re
import time
import urllib.request
from collections.abc import Iterator

import pytest

from miner.settings import TrainingSettings
from syntience.cli.app import run
from syntience.roles import Job, Trade, _part
from tests.chain import start_anvil
from tests.ports import free_port
from tests.specs import tokens
from tests.syntience.processes import role_command, started
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


def gauges_with(line: bytes, *, port: int) -> bytes:
    """The metrics of a node, once they show this line: they are set a moment after it says that it is ready."""
    url, end = f"http://127.0.0.1:{port}/metrics", time.monotonic() + 20
    while True:
        gauges: bytes = urllib.request.urlopen(url, timeout=10).read()
        if line in gauges:
            return gauges
        assert time.monotonic() < end, gauges.decode()
        time.sleep(0.2)


def test_miner__not_registered_yet__waits_then_works_and_stops_on_sigterm(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.key("miner", tokens=tokens(100))
    operator = town.key("miner-operator")
    metrics = free_port()
    arguments = role_command(town, "miner", "miner-operator", "--metrics-port", str(metrics))
    with started(town, *arguments) as miner:
        miner.until(
            rf"waiting: the key {operator.address} acts for no account in this run yet; register it: "
            "syntience stake deposit --role miner --amount 100 "
        )
        hot = ["--operator-keystore", str(town.path("miner-operator"))]
        assert town.deposit("miner", "miner", "100", *hot) == 0
        miner.until("model at the start of round 1")
        assert miner.until(r"miner ready account=(\w+)")
        assert f"others reach this node at http://127.0.0.1:{town.port('miner')} as registered" in (
            miner.log.read_text()
        )
        gauges = gauges_with(b"syntience_head_round 1.0", port=metrics)
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
    with started(town, *role_command(town, "miner", "waiting")) as miner:
        miner.until("waiting: ")
        assert miner.stop() == 143
    assert "Traceback" not in miner.log.read_text()


def test_miner__left_the_run__waits_to_be_registered_again(town: Town) -> None:
    town.key("gone", tokens=tokens(100))
    assert town.deposit("gone", "miner", "100") == 0
    assert run(["stake", "exit", *town.options("gone")]) == 0
    with started(town, *role_command(town, "miner", "gone")) as miner:
        miner.until(r"waiting: \w+ holds no slot \(any more\); register it again")
        assert miner.stop() == 143


def test_role__key_of_another_role_or_of_a_former_operator__says_so(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.key("validator", tokens=tokens(1000))
    first, second = town.key("validator-1"), town.key("validator-2")
    hot = ["--operator-keystore", str(town.path("validator-1"))]
    assert town.deposit("validator", "validator", "1000", *hot) == 0
    capsys.readouterr()
    assert run(role_command(town, "miner", "validator-1")) == 1
    assert "is a validator, not a miner: run `syntience validator run` with this key" in (
        capsys.readouterr().err
    )
    hot = ["--operator-keystore", str(town.path("validator-2"))]
    assert run(["stake", "rotate-operator", *hot, *town.options("validator")]) == 0
    assert run(role_command(town, "validator", "validator-1")) == 1
    line = capsys.readouterr().err
    assert f"the key {first.address} no longer acts for" in line
    assert f"its present operator {second.address}" in line


@pytest.mark.parametrize("role", ["validator", "hunter"])
def test_role__everything_there__is_ready_and_stops_on_sigterm(town: Town, role: str) -> None:
    key = f"{role}-alone"
    town.key(key, tokens=tokens(1000))
    if role == "validator":
        assert town.deposit(key, role, "1000") == 0
    with started(town, *role_command(town, role, key, "--log-json")) as process:
        process.until(f'"message": "{role} ready"')
        if role == "hunter":
            assert "needs a bond of 5 to prove a fraud" not in process.log.read_text()
        assert process.stop() == 143
    assert "Traceback" not in process.log.read_text()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], TrainingSettings()),
        (
            ["--save-every", "0", "--checkpoint-activations"],
            TrainingSettings(save_every_s=0, checkpoint_activations=True),
        ),
    ],
)
def test_miner_run__training_options__reach_the_miner(
    monkeypatch: pytest.MonkeyPatch, options: list[str], expected: TrainingSettings
) -> None:
    jobs: list[TrainingSettings] = []
    monkeypatch.setattr(
        "syntience.cli.miner.run_job", lambda *_, training, **__: jobs.append(training)
    )
    assert run(["miner", "run", *options]) == 0
    assert jobs == [expected]
    made: list[TrainingSettings] = []
    monkeypatch.setattr("miner.miner.Miner", lambda *_, training, **__: made.append(training))
    _part(Job(trade=Trade.MINER, training=expected)).start(None)  # type: ignore[arg-type]
    assert made == [expected]
