"""A round once more: the same leaves as the miner's, and each step alone gives the same as in its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protocol.ids import Round
from protocol.schedule import ScheduleSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import SMALL, round_samples, same_bits
from training.arithmetic import Arithmetic
from training.inner import InnerState, RoundStart, RoundWork, train_round
from training.local_state import LocalState
from training.parameters import initial_parameters
from training.replay import (
    encode_from,
    replay,
    step_from,
    trace_of,
)
from training.roots import state_root

THETA = initial_parameters(MODEL)
# Each step of this round has a learning rate of its own.
SCHEDULE = ScheduleSpec(warmup=12, decay_from=12, decay_to=20, shape="cosine", final="0.1")
INNER = replace(SPEC.inner, steps=5, trace_every=2, schedule=SCHEDULE)
ROUND = Round(3)
TAKEN = 10
ARITHMETIC = Arithmetic(model=MODEL, inner=INNER, codec=SMALL, compute=SPEC.compute)
SAMPLES = np.concatenate([round_samples(1)] * 3)[: INNER.steps]


def miner_round(local: LocalState) -> RoundWork:
    return train_round(start(local), ARITHMETIC)


def start(local: LocalState) -> RoundStart:
    return RoundStart(
        round=ROUND,
        state=InnerState(params=THETA, local=local),
        root=state_root(THETA),
        samples=SAMPLES,
    )


FRESH = LocalState.zeros(MODEL)
CARRIED = miner_round(FRESH).local_out


@pytest.mark.parametrize("local", [FRESH, CARRIED], ids=["fresh", "carried"])
def test_replay__an_honest_round__has_its_trace(local: LocalState) -> None:
    work = miner_round(local)
    again = replay(start(local), ARITHMETIC)
    assert len(again.leaves) == 1 + INNER.steps
    shown = trace_of(again.leaves, again.encoded.leaf(), trace_every=INNER.trace_every)
    assert shown == work.trace_leaves
    assert again.encoded.payload == work.payload
    assert again.states == {}


def test_replay__states_kept__are_those_of_the_leaves_and_lead_to_each_other() -> None:
    again = replay(start(CARRIED), ARITHMETIC, keep=range(INNER.steps + 1))
    assert [again.states[step].leaf() for step in range(INNER.steps + 1)] == list(again.leaves)
    for step in range(1, INNER.steps + 1):
        alone = step_from(
            again.states[step - 1], SAMPLES[step - 1], ARITHMETIC, taken=TAKEN + step - 1
        )
        assert alone.leaf() == again.leaves[step]
        assert same_bits(alone.params, again.states[step].params)


def test_encode_from__the_final_state__is_what_was_sent() -> None:
    again = replay(start(CARRIED), ARITHMETIC, keep=[INNER.steps])
    encoded = encode_from(again.states[INNER.steps], THETA, ARITHMETIC)
    assert encoded.leaf() == again.encoded.leaf()
    assert same_bits(encoded.local_out.e, again.encoded.local_out.e)


@pytest.mark.parametrize(
    ("steps", "every", "shown"),
    [(1, 1, [0, 1]), (5, 2, [0, 2, 4, 5]), (6, 3, [0, 3, 6]), (4, 9, [0, 4])],
)
def test_trace_of__every_nth_step__and_the_last(steps: int, every: int, shown: list[int]) -> None:
    leaves = tuple(bytes([step]) * 64 for step in range(steps + 1))
    assert trace_of(leaves, b"end", trace_every=every) == (*(leaves[i] for i in shown), b"end")


@pytest.mark.parametrize("changes", [{"dtype": "bfloat16"}, {"micro_batch": 2}])
def test_replay__a_run_in_another_arithmetic__has_the_miners_trace(
    changes: dict[str, object],
) -> None:
    compute = replace(SPEC.compute, **changes)  # type: ignore[arg-type]  # fields by name
    other = replace(ARITHMETIC, compute=compute)
    work = train_round(start(CARRIED), other)
    again = replay(start(CARRIED), other)
    shown = trace_of(again.leaves, again.encoded.leaf(), trace_every=INNER.trace_every)
    assert shown == work.trace_leaves
    assert work.trace_leaves != miner_round(CARRIED).trace_leaves
