"""A whole epoch by commands alone: found a run, join it in every role, and collect what was earned."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from syntience.cli.app import run
from tests.chain import start_anvil
from tests.specs import CHAIN, tokens
from tests.syntience.processes import role_command, started
from tests.syntience.town import PASSWORD, Town, found_town

WINDOWS = replace(
    CHAIN,
    rounds_per_epoch=1,
    train_s=6,
    put_s=3,
    publish_s=4,
    attest_s=5,
    apply_s=5,
    weight_commit_s=12,
    weight_reveal_s=6,
    settlement_window_s=6,
)


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_run__every_role_by_command__earns_and_collects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith("SYNTIENCE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SYNTIENCE_PASSWORD", PASSWORD)
    with start_anvil("--block-time", "1") as anvil:
        town = found_town(anvil, tmp_path, genesis_in_s=25, chain=WINDOWS)
        for key, amount in {"validator": 2000, "miner": 200, "late": 200, "hunter": 20}.items():
            town.key(key, tokens=tokens(amount))
        anvil.mine()
        assert town.deposit("validator", "validator", "1000") == 0
        assert town.deposit("miner", "miner", "150") == 0
        common = ("--allow-private-peers", "--last-epoch", "2")
        with (
            started(town, *role_command(town, "validator", "validator", *common)) as validator,
            started(town, *role_command(town, "miner", "miner", *common)) as miner,
            started(town, *role_command(town, "hunter", "hunter", *common)) as hunter,
        ):
            miner.until("round 1: committed")
            assert town.deposit("late", "miner", "150") == 0
            joining = role_command(town, "miner", "late", *common)
            at = joining.index("--data")  # a stranger has the run file alone
            with started(town, *joining[:at], *joining[at + 2 :]) as late:
                late.until(r"the slot of \w+ starts with epoch 2")
                late.until("epoch 1: .* holds no slot")
                late.until("epoch 2: slot 1")
                late.until("round 2: committed")
                late.until("round 2: applied, 2 accepted")
                everyone = (validator, miner, late, hunter)
                assert [each.child.wait(120) for each in everyone] == [0, 0, 0, 0]
        assert not any("Traceback" in each.log.read_text() for each in everyone)
        miner_account = _account(town, "miner", capsys)
        assert int(miner_account["earned"]) == int(miner_account["claimed"]) > 0
        assert miner_account["slashed"] == _account(town, "late", capsys)["slashed"] == "0"
        assert int(_account(town, "validator", capsys)["claimed"]) > 0


def _account(town: Town, key: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What `status --json` says about an account, after two settled epochs."""
    capsys.readouterr()
    assert run(["status", "--json", *town.options(key)]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["settled"] == [1, 2]
    account = status["account"]
    assert isinstance(account, dict)
    return account
