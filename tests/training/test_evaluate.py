"""Losses: against torch's own cross entropy, and robust against anything a peer sends."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Round
from protocol.spec import CodecSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import (
    CODECS,
    MEAN,
    SIGN,
    random_payload,
    random_tensors,
    round_samples,
    same_bits,
)
from tests.training.test_prepare import prepared
from training.aggregate import apply_update, scale_of
from training.arithmetic import Arithmetic
from training.codec import encode
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.flat_model import FlatModel
from training.inner import InnerState, RoundStart, train_round
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import initial_parameters, zeros
from training.roots import state_root

THETA = initial_parameters(MODEL)
PART = replace(MEAN, size=0.2)
SAMPLES = np.concatenate([round_samples(seed).reshape(-1, MODEL.context + 1) for seed in range(5)])


def test_loss__samples__equals_cross_entropy() -> None:
    flat = FlatModel(MODEL)
    flat.load(THETA)
    tokens = torch.from_numpy(SAMPLES)
    with torch.inference_mode():
        logits = flat.network(tokens[:, :-1]).flatten(0, 1)
        expected = torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten()).item()
    assert Evaluator(MODEL).loss(THETA, SAMPLES) == pytest.approx(expected, rel=1e-6)


def test_loss__asked_twice_and_by_another__is_the_same() -> None:
    evaluator = Evaluator(MODEL)
    first = evaluator.loss(THETA, SAMPLES)
    evaluator.loss(random_tensors(1), SAMPLES)
    assert evaluator.loss(THETA, SAMPLES) == first == Evaluator(MODEL).loss(THETA, SAMPLES)


def test_stepped__honest_update__lowers_the_loss() -> None:
    start = RoundStart(
        round=Round(1),
        state=InnerState(params=THETA, local=LocalState.zeros(MODEL)),
        root=state_root(THETA),
        samples=round_samples(1),
    )
    work = train_round(start, Arithmetic.of(SPEC))
    evaluator = Evaluator(MODEL)
    before = evaluator.loss(THETA, SAMPLES)
    with evaluator.stepped(work.payload, scale_of(work.payload, {}), PART):
        assert evaluator.measure(SAMPLES) < before


@given(
    seed=st.integers(0, 1 << 20),
    codec=st.sampled_from(CODECS),
    loudness=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]),
    step=st.sampled_from([MEAN, PART, replace(MEAN, size=0.0), SIGN]),
    small=st.sampled_from([0.0, -0.0, 2.0**-101, -(2.0**-140), 2.0**-100, 1.0]),
)
@settings(max_examples=60, deadline=None)
def test_stepped__any_update__is_apply_update_and_leaves_no_trace(
    seed: int, codec: CodecSpec, loudness: float, step: OuterStep, small: float
) -> None:
    theta = {name: array.copy() for name, array in THETA.items()}
    for array in theta.values():  # values that a step flushes, also where no update lies
        array.reshape(-1)[seed % array.size] = np.float32(small)
    payload = random_payload(seed, loudness, codec)
    scales = {name: np.float32(1 / (1 + seed % 7)) for name in theta}
    evaluator = Evaluator(MODEL)
    evaluator.load(theta)
    for _ in range(2):
        with evaluator.stepped(payload, scales, step):
            expected = apply_update(theta, payload, scales, step)
            assert same_bits(evaluator._flat.parameters(), expected)
        assert same_bits(evaluator._flat.parameters(), theta)
    assert not evaluator._update.any()


def test_stepped__measuring_fails__leaves_no_trace() -> None:
    evaluator = Evaluator(MODEL)
    before = evaluator.loss(THETA, SAMPLES)
    payload = random_payload(1, 1.0)
    with pytest.raises(ValueError), evaluator.stepped(payload, scale_of(payload, {}), MEAN):
        evaluator.measure(SAMPLES[:0])
    assert evaluator.measure(SAMPLES) == before


def test_stepped__zero_update__changes_nothing() -> None:
    zero, evaluator = encode(zeros(MODEL), MODEL, SPEC.codec), Evaluator(MODEL)
    before = evaluator.loss(THETA, SAMPLES)
    with evaluator.stepped(zero, scale_of(zero, {}), MEAN):
        assert evaluator.measure(SAMPLES) == before


def test_stepped__absurd_update__is_never_nan() -> None:
    loud, evaluator = random_payload(1, 1e30), Evaluator(MODEL)
    evaluator.load(THETA)
    with evaluator.stepped(loud, scale_of(loud, {}), MEAN):
        assert not math.isnan(evaluator.measure(SAMPLES))
    broken = {name: array * np.float32(np.nan) for name, array in THETA.items()}
    assert evaluator.loss(broken, SAMPLES) == math.inf


def test_heldout_loss__dataset__uses_the_samples_behind_the_training_split(tmp_path: Path) -> None:
    prepared(tmp_path / "set")
    dataset = TokenDataset.open(tmp_path / "set")
    model = replace(MODEL, vocab_size=300)
    theta = initial_parameters(model)
    held = dataset.samples(range(dataset.train_samples, dataset.total_samples))
    evaluator = Evaluator(model)
    assert evaluator.heldout_loss(theta, dataset) == evaluator.loss(theta, held)
    assert evaluator.heldout_loss(theta, dataset, limit=1) == evaluator.loss(theta, held[:1])


def test_loss__wrong_samples__raises_value_error() -> None:
    for samples in (SAMPLES[:0], SAMPLES[:, :-1], SAMPLES + MODEL.vocab_size, SAMPLES - 100):
        with pytest.raises(ValueError, match=r"samples|vocabulary"):
            Evaluator(MODEL).loss(THETA, samples)
