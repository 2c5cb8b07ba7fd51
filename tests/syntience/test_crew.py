"""A miner in several processes, started by torchrun as an operator starts it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from syntience.cli.app import run
from syntience.crew import VARIABLES, started_by_torchrun
from tests.chain import start_anvil
from tests.specs import CHAIN, tokens
from tests.syntience.processes import by_torchrun, role_command, started
from tests.syntience.town import PASSWORD, found_town

WINDOWS = replace(
    CHAIN,
    rounds_per_epoch=1,
    train_s=12,
    put_s=6,
    publish_s=6,
    attest_s=8,
    apply_s=8,
    weight_commit_s=16,
    weight_reveal_s=10,
    settlement_window_s=10,
)
"""Room for a busy machine."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SYNTIENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)


def test_started_by_torchrun__all_that_it_sets__and_nothing_less() -> None:
    everything = dict.fromkeys(VARIABLES, "0")
    assert started_by_torchrun(everything)
    for name in VARIABLES:
        assert not started_by_torchrun({key: everything[key] for key in VARIABLES if key != name})


def test_miner_run__by_torchrun__variable_that_is_no_number__says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "one")
    assert run(["miner", "run"]) == 1
    assert "RANK is no number" in capsys.readouterr().err


@pytest.mark.timeout(300)
def test_miner_run__by_torchrun_without_settings__rank_0_says_so_once_and_all_end() -> None:
    done = subprocess.run(
        [*by_torchrun(2), "miner", "run"], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("error: the ") == 1, "the others read no settings"


@pytest.mark.timeout(300)
def test_miner_run__by_torchrun_stopped_while_it_waits__ends_in_all_processes(
    tmp_path: Path,
) -> None:
    with start_anvil() as anvil:
        town = found_town(anvil, tmp_path)
        town.key("waiting")
        with started(town, *role_command(town, "miner", "waiting"), crew=2) as miner:
            miner.until("waiting: the key", patience_s=120)
            assert miner.log.read_text().count("waiting: the key") == 1, "rank 0 alone has a key"
            assert miner.stop() != 0
        assert "error:" not in miner.log.read_text()


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_miner_run__by_torchrun__is_accepted_and_ends_like_any_other(tmp_path: Path) -> None:
    with start_anvil("--block-time", "1") as anvil:
        town = found_town(anvil, tmp_path, genesis_in_s=75, chain=WINDOWS)
        for key, amount in {"validator": 2000, "miner": 200, "hunter": 20}.items():
            town.key(key, tokens=tokens(amount))
        anvil.mine()
        assert town.deposit("validator", "validator", "1000") == 0
        assert town.deposit("miner", "miner", "150") == 0
        common = ("--allow-private-peers", "--last-epoch", "1")
        with (
            started(town, *role_command(town, "validator", "validator", *common)) as validator,
            started(town, *role_command(town, "miner", "miner", *common), crew=2) as miner,
            started(town, *role_command(town, "hunter", "hunter", *common, "--disputes")) as hunter,
        ):
            everyone = (validator, miner, hunter)
            miner.until("round 1: committed", patience_s=240)
            miner.until("round 1: applied, 1 accepted", patience_s=120)
            assert [each.child.wait(240) for each in everyone] == [0, 0, 0]
        assert not any("Traceback" in each.log.read_text() for each in everyone)
        assert "charge" not in hunter.log.read_text(), "two processes give the bits of one"
