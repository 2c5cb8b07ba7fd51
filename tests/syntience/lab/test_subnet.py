"""Rounds, epochs and pay of the laboratory, against the settlement's own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.ids import Address
from syntience.lab.catalogue import SCENARIOS
from syntience.lab.history import History
from syntience.lab.mechanism import Mechanism
from syntience.lab.scenario import HONEST, Group, Scenario
from syntience.lab.subnet import Subnet, seed_of

SMALL = Scenario(
    name="small",
    text="",
    world="mechanism",
    peers=(
        Group(name=HONEST, kind=HONEST, count=4),
        Group(name="late", kind="late"),
        Group(name="noise", kind="noise"),
    ),
    claims=(),
    validators=(
        Group(name="large", kind=HONEST, stake=3000),
        Group(name="small", kind=HONEST, count=2),
    ),
    rounds=42,
    rounds_per_epoch=4,
)


def played(scenario: Scenario, seed: int = 0) -> History:
    return Subnet(scenario, Mechanism(scenario), seed_of(scenario.name, seed)).run()


@pytest.fixture(scope="module")
def history() -> History:
    return played(SMALL)


def test_subnet__rounds_that_make_no_whole_epoch__are_not_played(history: History) -> None:
    assert [row.round for row in history.epochs] == [4 * n for n in range(1, 11)]


def test_subnet__miners__share_their_part_of_the_pot_by_weight(history: History) -> None:
    miners = [account for group in history.miners.values() for account in group]
    share = SMALL.pot * SMALL.miners_bps // 10_000
    for row in history.epochs:
        whole = sum(row.weights.values())
        for miner in miners:
            assert row.pay[miner] == (share * row.weights[miner] // whole if whole else 0)


def test_subnet__validators__share_the_rest_by_stake_and_agreement(history: History) -> None:
    for row in history.epochs:
        pays = [row.pay[a] for group in ("large", "small") for a in history.validators[group]]
        rest = SMALL.pot - SMALL.pot * SMALL.miners_bps // 10_000
        assert rest - len(pays) < sum(pays) <= rest or not sum(row.weights.values())
    assert history.pays("large")[0] > 2 * max(history.pays("small"))


def test_subnet__nobody_who_was_not_accepted__is_paid(history: History) -> None:
    (late,) = history.miners["late"]
    assert all(row.accepted[late] == 0 and row.pay[late] == 0 for row in history.epochs)


def test_subnet__same_seed__gives_the_same_history(history: History) -> None:
    again, other = played(SMALL), played(SMALL, seed=1)
    assert again == history
    assert other != history


def test_subnet__another_validators_dishonesty__does_not_change_what_honest_ones_saw() -> None:
    fair = played(replace(SMALL, validators=(Group(name="validator", kind=HONEST, count=3),)))
    seats = (Group(name="validator", kind=HONEST, count=3), Group(name="liar", kind="liar"))
    foul = played(replace(SMALL, validators=seats))
    for mine, theirs in zip(fair.epochs, foul.epochs, strict=True):
        assert mine.standings == theirs.standings


def test_addresses__of_all_scenarios__are_distinct() -> None:
    for scenario in SCENARIOS.values():
        accounts: list[Address] = []
        for groups in (scenario.miner_accounts(), scenario.validator_accounts()):
            accounts += [account for group in groups.values() for account in group]
        assert len(set(accounts)) == len(accounts)
