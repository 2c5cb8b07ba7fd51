"""The outer rules by name: what each makes of a sum, and that a spec and the code know the same ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protocol.ids import Round
from protocol.schedule import ScheduleSpec
from protocol.spec import OUTER_RULES
from tests.specs import SPEC
from training.outer import RULES, TINY, OuterStep

TOTAL = np.array([3.0, -0.5, 0.0, -0.0, 2.0**-113], np.float32)


def test_rules__are_those_that_a_spec_may_name() -> None:
    assert tuple(RULES) == OUTER_RULES


def test_sparseloco__a_sum__is_divided_by_the_size_of_the_set() -> None:
    assert RULES["sparseloco"](TOTAL, 4).tolist() == [0.75, -0.125, 0.0, 0.0, 2.0**-115]


@pytest.mark.parametrize("number", [1, 7])
def test_demo__a_sum__is_its_sign_and_zero_where_it_is_zero(number: int) -> None:
    assert RULES["demo"](TOTAL, number).tolist() == [1.0, -1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("rule", OUTER_RULES)
def test_move__any_rule__goes_against_the_direction_and_leaves_nothing_tiny(rule: str) -> None:
    flat = np.array([1.0, 1.0, 1.0, -0.0, TINY / 2], np.float32)
    before, total = flat.copy(), TOTAL.copy()
    direction = RULES[rule](TOTAL, 2).astype(np.float64)
    moved = OuterStep(rule=rule, size=0.25).move(flat, total, 2)
    assert moved[:3].tolist() == (flat[:3] - 0.25 * direction[:3]).tolist()
    assert moved[3] == 0.0
    assert not np.signbit(moved[3])
    assert moved[4] == (0.0 if rule == "sparseloco" else -0.25)
    assert flat.tobytes() == before.tobytes()
    assert total.tobytes() == TOTAL.tobytes()


def test_outer_step__of_a_round__follows_rule_and_schedule() -> None:
    late = ScheduleSpec(decay_from=2, decay_to=2, final="0.5")
    outer = replace(SPEC.outer, rule="demo", alpha="0.02", schedule=late)
    assert OuterStep.of(outer, Round(2)) == OuterStep(rule="demo", size=0.02)
    assert OuterStep.of(outer, Round(3)) == OuterStep(rule="demo", size=0.01)
    assert OuterStep.of(outer, Round(3), fraction=0.2) == OuterStep(rule="demo", size=0.2 * 0.01)
