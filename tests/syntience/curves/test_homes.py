"""Which folders' curves a report takes in, and what it says of those that have none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from syntience.curves.homes import find_homes, home_name, read_report
from syntience.errors import DataMissing
from tests.specs import some_hash
from tests.syntience.curves.homes import RUN, evaluation_row, make_devnet, make_home, training_row


def test_read_report__devnet_s_folder__has_all_roles_with_rows_in_order(tmp_path: Path) -> None:
    report = read_report([make_devnet(tmp_path / "run", miners=11)])
    miners = [f"miner-{number}" for number in range(1, 12)]
    assert [home.name for home in report.homes] == [*miners, "validator-1", "validator-2"]
    assert [home.name for home in report.miners] == miners
    assert [home.name for home in report.validators] == ["validator-1", "validator-2"]
    assert report.run == RUN
    first = report.homes[0]
    assert first.training == tuple(training_row(round_) for round_ in range(1, 13))
    assert first.evaluation == ()


def test_read_report__state_folders_one_by_one__counts_each_once(tmp_path: Path) -> None:
    run = make_devnet(tmp_path / "run")
    report = read_report(
        [run / "validator-1" / "state", run / "miner-1", run / "miner-1" / "state"]
    )
    assert [home.name for home in report.homes] == ["miner-1", "validator-1"]


def test_read_report__two_folders_of_one_name__are_told_apart_by_account(tmp_path: Path) -> None:
    places = [
        make_home(tmp_path / where / "miner", [training_row(1)]) for where in ("here", "there")
    ]
    names = [home.name for home in read_report(places).homes]
    assert len(set(names)) == 2
    assert all(name.startswith("miner-") and len(name) == len("miner-") + 8 for name in names)


def test_read_report__no_round_yet__says_so(tmp_path: Path) -> None:
    home = make_home(tmp_path / "miner")
    with pytest.raises(
        DataMissing, match=r"no round has been recorded in .*miner yet: try again when"
    ):
        read_report([home])


@pytest.mark.parametrize("name", ["", "file", "nowhere", "empty"])
def test_find_homes__no_home__says_what_is_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    home = make_home(tmp_path / "deep" / "down" / "miner", [training_row(1)])
    with pytest.raises(DataMissing, match=r"there are no curves in .*: name the --state folder"):
        find_homes([home, tmp_path / name])


def test_read_report__two_runs__asks_for_one(tmp_path: Path) -> None:
    one = make_home(tmp_path / "one", [training_row(1)])
    other = make_home(tmp_path / "other", [training_row(1)], run=some_hash("other run"))
    with pytest.raises(DataMissing, match=r"in 2 different runs \(0x\w{8}, 0x\w{8}\): report each"):
        read_report([one, other])


def test_home_name__state_folder__is_that_of_the_folder_around_it(tmp_path: Path) -> None:
    assert home_name(tmp_path / "miner-1" / "state") == "miner-1"
    assert home_name(tmp_path / "my-miner") == "my-miner"
    assert home_name(Path("/")) == "state"


def test_to_json__report__has_every_row_and_no_number_that_json_lacks(tmp_path: Path) -> None:
    diverged = replace(evaluation_row(2), heldout_loss=math.inf)
    home = make_home(tmp_path / "v", [evaluation_row(1), diverged])
    document = json.loads(read_report([home]).to_json())
    assert document["version"] == 1
    assert document["run"] == "0x" + RUN.hex()
    (shown,) = document["homes"]
    assert shown["training"] == []
    assert [row["heldout_loss"] for row in shown["evaluation"]] == [
        evaluation_row(1).heldout_loss,
        None,
    ]
