"""Scenarios in miniature: what holds, the bytes of the numbers, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.errors import OperatorError
from syntience.cli.app import run
from syntience.lab.catalogue import SCENARIOS, scenario_named
from syntience.lab.run import Outcome, resized, run_scenario
from syntience.lab.table import render

FEW = 160
"""Rounds after which free-riders are told from honest peers; equal ones are not paid alike yet."""


def short(name: str, rounds: int = FEW) -> Outcome:
    return run_scenario(resized(scenario_named(name), rounds=rounds), seeds=1)


def figures_of(outcome: Outcome) -> dict[str, float]:
    return {finding.claim: finding.figure for finding in outcome.trials[0].findings}


WORTHLESS = [
    "copier",
    "near-copier",
    "recomputer",
    "lazy-elsewhere",
    "zero",
    "noise",
    "sign-flip",
    "stale",
    "late",
    "exam-peeker",
    "poisoner",
]


@pytest.mark.parametrize("kind", WORTHLESS)
def test_attack__in_miniature__is_not_paid(kind: str) -> None:
    figures = figures_of(short(kind))
    assert figures[f"pay of {kind} / median of honest"] <= 0.05
    assert figures["unpaid epochs of honest peers"] == 0


def test_intermittent__in_miniature__is_paid_no_more_than_in_proportion() -> None:
    assert figures_of(short("intermittent"))["pay of intermittent / median of honest"] <= 0.5


def test_sybils__in_miniature__earn_less_than_the_one() -> None:
    assert figures_of(short("sybil-split"))["all of ten / all of one"] < 1


def test_target_2__in_full__holds() -> None:
    assert run_scenario(scenario_named("target-2"), seeds=2).holds


def test_liar__in_miniature__does_not_get_its_friend_paid() -> None:
    assert figures_of(short("liar"))["pay of friend / median of honest"] <= 0.05


def test_run__same_seeds__give_the_same_bytes_in_one_process_or_two() -> None:
    scenario = resized(scenario_named("noise"), rounds=80)
    one, two = (run_scenario(scenario, seeds=2, jobs=jobs).to_json() for jobs in (1, 2))
    assert one == two
    document = json.loads(one)
    assert [trial["seed"] for trial in document["trials"]] == [0, 1]
    assert document["trials"][0] != document["trials"][1]


def test_training__same_seed__gives_the_same_bytes_and_learns(lab_data: Path) -> None:
    scenario = resized(scenario_named("trained-noise"), rounds=10, peers=2)
    one, two = (run_scenario(scenario, seeds=1, dataset=lab_data) for _ in range(2))
    assert one.to_json() == two.to_json()
    losses = [row.heldout for row in one.trials[0].history.epochs]
    assert losses[1] is not None
    assert losses[0] is not None
    assert losses[1] < losses[0]


def test_plain_mean__a_thousand_times_the_norm__breaks_the_model(lab_data: Path) -> None:
    guarded = replace(resized(scenario_named("target-3"), rounds=10, peers=2), claims=(), twin=None)
    plain = replace(guarded, normalise=False)
    ends = [
        run_scenario(each, seeds=1, dataset=lab_data).trials[0].history.epochs[-1].heldout
        for each in (guarded, plain)
    ]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1] > ends[0] + 1


@pytest.mark.parametrize("change", [{"rounds": 3}, {"world": "dream"}])
def test_resized__what_cannot_be__is_refused(change: dict[str, object]) -> None:
    with pytest.raises(OperatorError):
        resized(scenario_named("noise"), **change)  # type: ignore[arg-type]


def test_scenario__unknown__points_at_the_list() -> None:
    with pytest.raises(OperatorError, match="lab list"):
        scenario_named("bliss")


def test_command__run__writes_numbers_and_picture_and_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / "a.json", tmp_path / "a.svg"]
    status = run(
        ["lab", "run", "target-2", "--seeds", "1", "--json", str(files[0]), "--svg", str(files[1])]
    )
    assert status == 0
    assert "1/1" in capsys.readouterr().out
    assert json.loads(files[0].read_bytes())["holds"] is True
    assert files[1].read_bytes().startswith(b"<?xml")


def test_command__claim_that_does_not_hold__ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "run", "intermittent", "--seeds", "1", "--rounds", "80"]) == 1
    assert "0/1" in capsys.readouterr().out


def test_command__list__names_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in SCENARIOS)


def test_render__an_outcome__is_something_to_print() -> None:
    assert render(short("noise", rounds=80)) is not None
