"""How far a claim lies from a recomputation: rounding is near, skipped or different work is far."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.specs import MODEL, SPEC
from tests.training.samples import SMALL, round_samples
from training.arithmetic import Arithmetic
from training.closeness import encode_distance, step_distance
from training.inner import InnerState
from training.local_state import LocalState
from training.parameters import Parameters, initial_parameters
from training.replay import Encoded, encode_from, step_from

THETA = initial_parameters(MODEL)
ARITHMETIC = Arithmetic(model=MODEL, inner=SPEC.inner, codec=SMALL, compute=SPEC.compute)
BATCH, OTHER = round_samples(1)[0], round_samples(2)[0]
START = InnerState(params=THETA, local=LocalState.zeros(MODEL))
BEFORE = step_from(START, OTHER, ARITHMETIC, taken=0)
MINE = step_from(BEFORE, BATCH, ARITHMETIC, taken=0)
SENT = encode_from(MINE, THETA, ARITHMETIC)


def rounded(params: Parameters, size: float) -> Parameters:
    """Every number a little off, relative to itself."""
    generator = np.random.default_rng(1)
    return {
        name: (array * (1 + size * generator.standard_normal(array.shape))).astype(np.float32)
        for name, array in params.items()
    }


def reference(claimed: Parameters, mine: Parameters, before: Parameters) -> float:
    """The formula, number by number."""
    error = change = 0.0
    for name in mine:
        for theirs, ours, then in zip(
            claimed[name].flat, mine[name].flat, before[name].flat, strict=True
        ):
            error += (float(theirs) - float(ours)) ** 2
            change += (float(ours) - float(then)) ** 2
    return math.sqrt(error / change)


def test_step_distance__the_same_bits__is_zero() -> None:
    assert step_distance(MINE, MINE, BEFORE) == 0
    assert encode_distance(SENT, SENT) == 0


def test_step_distance__rounding__equals_the_reference_and_is_small() -> None:
    claimed = replace(MINE, params=rounded(MINE.params, 1e-7))
    distance = step_distance(claimed, MINE, BEFORE)
    assert math.isclose(
        distance, reference(claimed.params, MINE.params, BEFORE.params), rel_tol=1e-4
    )
    assert 0 < distance < 0.01


def test_step_distance__a_skipped_step__is_one() -> None:
    skipped = InnerState(params=BEFORE.params, local=replace(BEFORE.local, step=MINE.local.step))
    assert math.isclose(step_distance(skipped, MINE, BEFORE), 1.0)


def test_step_distance__another_batch__is_far() -> None:
    assert step_distance(step_from(BEFORE, OTHER, ARITHMETIC, taken=0), MINE, BEFORE) > 0.3


@pytest.mark.parametrize(
    "local",
    [
        replace(MINE.local, step=MINE.local.step + 1),
        replace(MINE.local, e=rounded(SENT.local_out.e, 1e-7)),
    ],
    ids=["steps", "feedback"],
)
def test_step_distance__what_no_rounding_touches__is_infinite(local: LocalState) -> None:
    assert step_distance(replace(MINE, local=local), MINE, BEFORE) == math.inf


def test_step_distance__moved_where_nothing_moves__is_infinite() -> None:
    assert step_distance(replace(BEFORE, params=rounded(THETA, 1)), BEFORE, BEFORE) == math.inf


def test_encode_distance__other_payload_or_moments__is_far() -> None:
    other = encode_from(step_from(BEFORE, OTHER, ARITHMETIC, taken=0), THETA, ARITHMETIC)
    feedback = replace(SENT.local_out, e=rounded(SENT.local_out.e, 1e-7))
    near = Encoded(payload=SENT.payload, local_out=feedback)
    assert 0 < encode_distance(near, SENT) < 1e-5
    payload = Encoded(payload=other.payload, local_out=SENT.local_out)
    assert encode_distance(payload, SENT) > 0.1
    assert encode_distance(other, SENT) == math.inf, "it carries other moments"
