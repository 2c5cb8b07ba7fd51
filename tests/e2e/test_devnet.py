"""A whole subnet, started as anybody starts it: processes, a real chain, real text, real money."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from syntience import corpus
from syntience.devnet.data import prepare_data
from syntience.devnet.presets import preset_named
from syntience.supervisor import child_environment

pytestmark = pytest.mark.e2e

COMMAND = (sys.executable, "-m", "syntience", "devnet", "run")
SMALL = (
    "--miners", "3", "--cheat", "wrong-data", "--validators", "2", "--hunters", "1",
    "--epochs", "2", "--rounds-per-epoch", "3",
)  # fmt: skip
CACHE = corpus.default_cache_dir(os.environ)


def left_over(folder: Path) -> list[str]:
    """Command lines of processes that still work in a devnet's folder (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        if str(folder) in command:
            found.append(command)
    return found


def until(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def text() -> None:
    """The default text is in the cache, or can be had."""
    if not corpus.is_cached(CACHE):
        try:
            corpus.fetch_default_corpus(CACHE)
        except Exception as error:  # noqa: BLE001 - whatever keeps the text away
            pytest.skip(f"the default text can't be had here: {error}")


@pytest.fixture(scope="module")
def report(text: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of one small devnet: three honest miners, a cheat, two validators, a hunter."""
    folder = tmp_path_factory.mktemp("devnet")
    prepare_data(preset_named("default"), None, cache_dir=CACHE, work=folder / "work")
    file, picture = folder / "out.json", folder / "out.svg"
    ended = subprocess.run(
        [*COMMAND, *SMALL, "--json", file, "--svg", picture, "--work", folder / "work"],
        env=child_environment(os.environ),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "✗" not in ended.stdout
    assert picture.read_text().startswith("<svg")
    assert left_over(folder) == []
    assert list((folder / "work" / "runs").iterdir()) == []
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def honest(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [miner for miner in report["miners"] if miner["behaviour"] == "honest"]


@pytest.mark.timeout(300)
def test_devnet__a_small_subnet__ends_in_three_minutes(report: dict[str, Any]) -> None:
    assert (report["run"]["epochs"], report["run"]["rounds"]) == (2, 6)
    assert report["run"]["wall_s"] <= 180


def test_devnet__heldout_loss__falls_every_epoch(report: dict[str, Any]) -> None:
    losses = report["loss"]["heldout"]
    assert len(losses) == 7
    assert losses[0] > losses[3] > losses[6]
    assert abs(losses[0] - 6.93) < 0.05  # about ln(1024)


def test_devnet__every_round__has_one_root_on_every_honest_node(report: dict[str, Any]) -> None:
    assert {root["round"] for root in report["roots"]} >= set(range(1, 7))
    for root in report["roots"]:
        assert root["nodes_agreeing"] == root["nodes_total"] == 6
    # The model moved: no two rounds of training started from the same state.
    started = [root["root"] for root in report["roots"] if root["round"] <= 6]
    assert len(set(started)) >= 5


def test_devnet__honest_miners__are_paid_and_lose_nothing(report: dict[str, Any]) -> None:
    assert len(honest(report)) == 3
    for miner in honest(report):
        assert int(miner["claimed"]) == int(miner["earned"]) > 0
        assert miner["slashed"] == "0"
    assert all(int(validator["earned"]) > 0 for validator in report["validators"])


def test_devnet__the_cheat__earns_nothing_and_is_slashed_for_a_bounty(
    report: dict[str, Any],
) -> None:
    (cheat,) = [miner for miner in report["miners"] if miner["behaviour"] == "wrong-data"]
    rewards = sorted(int(miner["earned"]) for miner in honest(report))
    assert 20 * int(cheat["earned"]) <= rewards[1]
    assert int(cheat["slashed"]) > 0
    assert cheat["status"] == "excluded"
    (hunter,) = report["hunters"]
    assert hunter["proofs"] >= 1
    assert int(hunter["bounty"]) > 0


def test_devnet__the_books__balance_to_the_unit(report: dict[str, Any]) -> None:
    books = report["accounting"]
    assert int(books["token_balance"]) > 0
    assert books["token_balance"] == books["accounted"]


def test_devnet__a_payload__is_a_hundredth_of_the_model(report: dict[str, Any]) -> None:
    size, parameters = report["payload_bytes"]["median"], report["run"]["params"]["parameters"]
    assert 0 < 100 * size <= 4 * parameters


def test_devnet__gas__is_known_for_what_everybody_sends(report: dict[str, Any]) -> None:
    for function in ("EpochManager.commit", "EpochManager.attest", "RewardsDistributor.claim"):
        spent = report["gas"][function]
        assert 21_000 < spent["median"] <= spent["max"] < 1_000_000
        assert spent["count"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_devnet__stopped_by_a_signal__leaves_nothing_behind(
    text: None, tmp_path: Path, number: signal.Signals
) -> None:
    log = tmp_path / "said.txt"
    with log.open("w") as said:
        process = subprocess.Popen(
            [*COMMAND, *SMALL, "--work", tmp_path],
            env=child_environment(os.environ),
            stdout=said,
            stderr=said,
        )
        try:
            until(lambda: len(left_over(tmp_path / "runs")) == 7, seconds=60)
            process.send_signal(number)
            process.wait(timeout=40)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 128 + number
    assert "Traceback" not in log.read_text()
    assert left_over(tmp_path) == []
    assert list((tmp_path / "runs").iterdir()) == []
