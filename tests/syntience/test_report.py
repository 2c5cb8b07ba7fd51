"""The JSON that a devnet leaves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from syntience.errors import UnwritableOutput
from syntience.files import require_writable, write_atomically
from syntience.report import LossSummary, summarise_gas, summarise_payloads
from tests.syntience.views import MINERS, REPORT


def test_write__whole_report__has_the_documented_shape(tmp_path: Path) -> None:
    REPORT.write(tmp_path / "new folder" / "out.json")
    document = json.loads((tmp_path / "new folder" / "out.json").read_text())
    assert list(document) == [
        "version", "run", "loss", "miners", "validators", "hunters", "roots", "gas", "accounting", "payload_bytes",
    ]  # fmt: skip
    assert document["run"] == {
        "params": {"miners": 4, "cheat": ["copier"], "seed": None},
        "epochs": 3,
        "rounds": 9,
        "wall_s": 101.5,
    }
    assert document["loss"]["heldout"][-1] == 5.56
    assert document["miners"][0] == {
        "address": "0x0000000000000000000000000000000000000001",
        "behaviour": "honest",
        "rating": 18.25,
        "mu": 0.0123,
        "weight": 61234,
        "earned": "150250000000000000000",
        "claimed": "150250000000000000000",
        "slashed": "0",
        "status": "active",
    }
    assert document["miners"][3]["slashed"] == "50000000000000000000"
    assert document["miners"][3]["rating"] is None
    assert document["hunters"] == [
        {
            "address": "0x0000000000000000000000000000000000000015",
            "proofs": 2,
            "bounty": "21000000000000000000",
        }
    ]
    assert document["roots"][1] == {
        "round": 2,
        "root": "0x" + "02" * 32,
        "nodes_agreeing": 7,
        "nodes_total": 8,
    }
    assert document["gas"] == {
        "attest": {"median": 9, "max": 9, "count": 1},
        "commit": {"median": 50_000, "max": 60_000, "count": 3},
    }
    assert (
        document["accounting"]["token_balance"]
        == document["accounting"]["accounted"]
        == "1" + "0" * 27
    )
    assert document["payload_bytes"] == {"median": 10}


def test_to_json__no_number__is_null() -> None:
    broken = replace(
        REPORT,
        loss=LossSummary(heldout=(6.9, float("nan"))),
        miners=(replace(MINERS[0], rating=float("inf")),),
    )
    document = json.loads(broken.to_json())
    assert document["loss"]["heldout"] == [6.9, None]
    assert document["miners"][0]["rating"] is None


def test_summaries__nothing_seen__are_empty() -> None:
    assert summarise_gas([]) == {}
    assert summarise_payloads([]).median == 0


def test_write_atomically__existing_file__is_replaced_without_leftovers(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_write_atomically__killed_halfway__leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(descriptor: int) -> None:
        raise KeyboardInterrupt

    write_atomically(tmp_path / "a", b"one")
    monkeypatch.setattr("os.fsync", die)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_require_writable__impossible_places__are_named_early(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    require_writable(tmp_path / "folder" / "out.json")
    with pytest.raises(UnwritableOutput, match="can't write"):
        require_writable(tmp_path / "file" / "out.json")
    with pytest.raises(UnwritableOutput, match="it is a folder"):
        require_writable(tmp_path)
