"""Schedules: the same bits everywhere, and the shapes that their names promise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import Rejected
from protocol.ids import Round
from protocol.schedule import CONSTANT, ScheduleSpec
from tests.specs import SPEC

COSINE = ScheduleSpec(warmup=4, decay_from=10, decay_to=30, shape="cosine", final="0.1")
GOLDEN = [
    "0x1.89374bc6a7efap-11",
    "0x1.89374bc6a7efap-9",
    "0x1.89374bc6a7efap-9",
    "0x1.870998b47073ep-9",
    "0x1.b089a02752546p-10",
    "0x1.4c003b970f044p-12",
    "0x1.3a92a30553261p-12",
    "0x1.3a92a30553261p-12",
]


@st.composite
def schedules(draw: st.DrawFn) -> ScheduleSpec:
    counts = st.integers(0, 200)
    return ScheduleSpec(
        warmup=draw(counts),
        decay_from=draw(counts),
        decay_to=draw(counts),
        shape=draw(st.sampled_from(["linear", "cosine"])),
        final=str(draw(st.decimals(0, 1, places=3))),
    )


def slow_factor(schedule: ScheduleSpec, place: int) -> float:
    """In plain floating point."""
    rise = min(1.0, place / schedule.warmup) if schedule.warmup else 1.0
    if place <= schedule.decay_from:
        left = 1.0
    elif place >= schedule.decay_to:
        left = 0.0
    else:
        way = (place - schedule.decay_from) / (schedule.decay_to - schedule.decay_from)
        left = 1 - way if schedule.shape == "linear" else (1 + math.cos(math.pi * way)) / 2
    return rise * (float(schedule.final) + (1 - float(schedule.final)) * left)


@given(schedules(), st.integers(1, 300))
def test_factor__any_schedule__is_what_its_shape_says(schedule: ScheduleSpec, place: int) -> None:
    factor = schedule.factor(place)
    assert 0 <= factor <= 1
    assert math.isclose(factor, slow_factor(schedule, place), rel_tol=1e-12, abs_tol=1e-15)


@given(schedules())
def test_factor__after_the_warmup__never_rises(schedule: ScheduleSpec) -> None:
    after = [schedule.factor(place) for place in range(max(schedule.warmup, 1), 260)]
    assert all(later <= before for before, later in pairwise(after))
    assert after[-1] == Fraction(schedule.final)


def test_factor__constant__is_one() -> None:
    assert {CONSTANT.factor(place) for place in (1, 2, 1_000_000_000)} == {1}


def test_factor__no_way_between__drops_at_once() -> None:
    late = ScheduleSpec(decay_from=5, decay_to=5, final="0.65")
    assert [late.factor(place) for place in (5, 6)] == [1, Fraction(65, 100)]


def test_apply__golden_places__have_these_bits() -> None:
    places = (1, 4, 10, 11, 20, 29, 30, 31)
    assert [COSINE.apply("0.003", place).hex() for place in places] == GOLDEN


def test_factor__no_place__is_a_bug() -> None:
    with pytest.raises(ValueError, match="count from 1"):
        CONSTANT.factor(0)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("warmup", -1, "warmup is negative"),
        ("decay_to", -5, "decay_to is negative"),
        ("shape", "square", "shape 'square'"),
        ("final", "1.1", "not between"),
        ("final", "-0.1", "not between"),
        ("final", "NaN", "not a decimal"),
        ("final", "low", "not a decimal"),
    ],
)
def test_schedule__impossible__is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        replace(COSINE, **{field: value})


def test_spec__rates_and_alpha__follow_their_schedules() -> None:
    inner = replace(SPEC.inner, steps=5, learning_rate="0.01", schedule=COSINE)
    assert inner.taken_before(Round(1)) == 0
    assert inner.taken_before(Round(3)) == 10
    assert inner.learning_rate_at(1) == 0.0025
    assert inner.learning_rate_at(10) == 0.01
    assert inner.learning_rate_at(99) == 0.001
    late = ScheduleSpec(decay_from=100, decay_to=100, final="0.65")
    outer = replace(SPEC.outer, alpha="1.2", schedule=late)
    assert [outer.alpha_at(Round(round_)) for round_ in (1, 100, 101)] == [1.2, 1.2, 0.78]
