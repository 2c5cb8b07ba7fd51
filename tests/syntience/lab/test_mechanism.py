"""The mechanism's strategies do what their names say."""

from __future__ import annotations

from statistics import fmean

import pytest

from protocol.beacon import Draw
from protocol.errors import OperatorError
from protocol.ids import Round
from scoring.checks import Fault
from scoring.evaluation import Evaluation
from syntience.lab.kinds import Moment, kind_named
from syntience.lab.mechanism import GAIN, Mechanism
from syntience.lab.scenario import HONEST, Group, Scenario
from syntience.lab.world import Beacons, HandedIn
from tests.specs import some_hash


def world_with(kind: str, strength: float = 1.0, **options: float) -> Mechanism:
    return Mechanism(
        Scenario(
            name="test",
            text="",
            world="mechanism",
            peers=(
                Group(name=HONEST, kind=HONEST),
                Group(name="other", kind=kind, strength=strength, options=options),
            ),
            claims=(),
            rounds=200,
        )
    )


HONEST_PEER, OTHER = (Group(name=name, kind="").addresses("peer")[0] for name in (HONEST, "other"))


def beacons(round_: int) -> Beacons:
    return Beacons(
        round=Round(round_),
        assignment=some_hash(f"assignment {round_}"),
        evaluation=some_hash(f"evaluation {round_}"),
    )


def rounds_of(world: Mechanism, count: int) -> list[tuple[HandedIn, dict[str, Evaluation]]]:
    seen = []
    for round_ in range(1, count + 1):
        handed = world.work(beacons(round_))
        found = world.examine(handed.accepted, handed.accepted, Draw(some_hash(str(round_))))
        seen.append((handed, {each.miner: each for each in found}))
    return seen


def gains(kind: str, strength: float = 1.0) -> tuple[float, float]:
    """Mean LossScore on random data, and the part of rounds in which own data beat it."""
    found = [each[OTHER] for _, each in rounds_of(world_with(kind, strength), 200) if OTHER in each]
    return fmean(e.rand_score for e in found), fmean(e.own_beats_random for e in found)


def test_honest__gains_as_calibrated_and_its_own_data_nearly_always_wins() -> None:
    gain, q = gains("honest")
    assert gain == pytest.approx(GAIN, rel=0.05)
    assert q > 0.97


def test_honest__with_other_amounts_of_data__gains_by_the_amount_and_its_own_wins_less() -> None:
    few, right, many = (gains("honest", strength) for strength in (0.1, 1.0, 10.0))
    assert few[0] < right[0] < many[0]
    assert max(few[1], many[1]) < 0.9 < right[1]


@pytest.mark.parametrize("kind", ["recomputer", "near-copier", "lazy-elsewhere", "noise"])
def test_free_riders__own_data__wins_as_often_as_a_coin(kind: str) -> None:
    assert 0.38 < gains(kind)[1] < 0.62


def test_zero__changes_nothing() -> None:
    assert gains("zero") == (0, 0)


@pytest.mark.parametrize("kind", ["sign-flip", "poisoner"])
def test_harmful__raises_the_loss(kind: str) -> None:
    assert gains(kind)[0] < 0


def test_recomputer__has_its_victims_losses_on_random_data() -> None:
    for _, found in rounds_of(world_with("recomputer"), 5):
        assert found[OTHER].rand_score == found[HONEST_PEER].rand_score


def test_recomputer__is_taken_for_the_copy_nearly_always() -> None:
    world, flagged = world_with("recomputer"), []
    for _, found in rounds_of(world, 100):
        flagged += world.copies(tuple(found.values()))
    assert flagged.count(OTHER) > 90
    assert len(flagged) == 100


def test_copier__hands_in_the_victims_last_payload() -> None:
    first, second = (handed for handed, _ in rounds_of(world_with("copier"), 2))
    assert second.payload_roots[OTHER] == first.payload_roots[HONEST_PEER]
    assert second.payload_roots[HONEST_PEER] != first.payload_roots[HONEST_PEER]


def test_late__is_never_accepted_and_shows_no_payload() -> None:
    for handed, _ in rounds_of(world_with("late"), 3):
        assert handed.faults == {OTHER: (Fault.NOT_COMMITTED,)}
        assert OTHER not in handed.payload_roots


def test_intermittent__serves_its_part_of_the_rounds() -> None:
    world = world_with("intermittent", part=0.5)
    served = sum(OTHER in world.work(beacons(round_)).accepted for round_ in range(1, 1001))
    assert 450 < served < 550


def test_exam_peeker__publishes_only_what_gains() -> None:
    seen = rounds_of(world_with("exam-peeker"), 200)
    published = [found[OTHER] for _, found in seen if OTHER in found]
    assert 80 < len(published) < 120
    assert fmean(each.rand_score for each in published) > 0
    assert {handed.faults.get(OTHER) for handed, _ in seen} == {None, (Fault.MISSING,)}


def moment(round_: int, **options: float) -> Moment:
    return Moment(round=Round(round_), rounds=100, chance=0, luck=0, strength=1, options=options)


def test_on_off__turns_once() -> None:
    kind = kind_named("on-off")
    assert [kind(moment(r, turn=0.25)).own for r in (1, 25, 26, 100)] == [1, 1, 0, 0]


def test_alternating__turns_with_its_period() -> None:
    kind = kind_named("alternating")
    assert [kind(moment(r, period=10)).own for r in (1, 10, 11, 20, 21)] == [1, 1, 0, 0, 1]


def test_falls_behind__is_out_of_sync_after_its_turn() -> None:
    kind = kind_named("falls-behind")
    assert kind(moment(5, turn_round=5)).fault is None
    assert kind(moment(6, turn_round=5)).fault is Fault.WRONG_ROOT


def test_kind__unknown__is_told_the_choices() -> None:
    with pytest.raises(OperatorError, match="sign-flip"):
        kind_named("saint")
