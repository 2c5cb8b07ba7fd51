"""What a round is watched by: the codec's error as its definition has it, and the numbers of the round that was trained."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from protocol.ids import Round
from protocol.schedule import ScheduleSpec
from protocol.spec import CodecSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import CODECS, SMALL, random_tensors, round_samples
from training.arithmetic import Arithmetic
from training.codec import encode
from training.figures import compression_error
from training.inner import InnerState, RoundStart, RoundWork, train_round
from training.local_state import LocalState
from training.parameters import Parameters, initial_parameters, zeros
from training.roots import state_root

THETA = initial_parameters(MODEL)
WARMUP = replace(SPEC.inner, schedule=ScheduleSpec(warmup=8))


def trained(round_: int, local: LocalState | None = None) -> RoundWork:
    return train_round(
        RoundStart(
            round=Round(round_),
            state=InnerState(params=THETA, local=local or LocalState.zeros(MODEL)),
            root=state_root(THETA),
            samples=round_samples(round_),
        ),
        Arithmetic(model=MODEL, inner=WARMUP, codec=SMALL, compute=SPEC.compute),
    )


def reference(accumulated: Parameters, sent: Parameters) -> float:
    """The definition, number by number."""
    left = whole = 0.0
    for name, tensor in accumulated.items():
        for value, decoded in zip(tensor.flat, sent[name].flat, strict=True):
            left += (float(value) - float(decoded)) ** 2
            whole += float(value) ** 2
    return math.sqrt(left / whole)


@pytest.mark.parametrize("codec", CODECS)
def test_compression_error__random_tensors__equals_the_reference(codec: CodecSpec) -> None:
    accumulated = random_tensors(3, 1e-3)
    payload = encode(accumulated, MODEL, codec)
    sent = payload.dense()
    left = {name: accumulated[name] - sent[name] for name in accumulated}
    assert compression_error(payload, left) == pytest.approx(reference(accumulated, sent), rel=1e-6)


def test_compression_error__nothing_to_send__is_zero() -> None:
    nothing = zeros(MODEL)
    assert compression_error(encode(nothing, MODEL, SMALL), nothing) == 0


def test_compression_error__nothing_sent__is_one() -> None:
    payload = encode(zeros(MODEL), MODEL, SMALL)
    assert compression_error(payload, random_tensors(1)) == 1


def test_train_round__figures__are_those_of_the_round() -> None:
    first = trained(1)
    second = trained(2, first.local_out)
    for done, round_ in ((first, 1), (second, 2)):
        figures = done.figures
        assert len(figures.losses) == WARMUP.steps
        assert sum(figures.losses) / WARMUP.steps == done.mean_loss
        assert figures.learning_rate == WARMUP.learning_rate_at(round_ * WARMUP.steps)
        assert figures.train_s > 0
        assert figures.encode_s > 0
    assert first.figures.learning_rate < second.figures.learning_rate


def test_train_round__with_feedback__counts_what_was_left_before() -> None:
    first = trained(1)
    local = first.local_out
    done = trained(2, local)
    whole = {name: done.local_out.e[name] + done.payload.dense()[name] for name in local.e}
    norm = math.sqrt(sum(float(np.square(t, dtype=np.float64).sum()) for t in whole.values()))
    left = math.sqrt(
        sum(float(np.square(t, dtype=np.float64).sum()) for t in done.local_out.e.values())
    )
    assert done.figures.compression_error == pytest.approx(left / norm, rel=1e-9)
    assert 0 < done.figures.compression_error < 1
