"""Losses: against torch's own cross entropy, and robust against anything a peer sends."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.ids import Round
from tests.specs import MODEL, SPEC
from tests.training.samples import MEAN, random_payload, random_tensors, round_samples
from tests.training.test_prepare import prepared
from training.aggregate import apply_update, scale_of
from training.arithmetic import Arithmetic
from training.codec import encode
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.flat_model import FlatModel
from training.inner import InnerState, RoundStart, train_round
from training.local_state import LocalState
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


def test_score__honest_update__lowers_the_loss() -> None:
    start = RoundStart(
        round=Round(1),
        state=InnerState(params=THETA, local=LocalState.zeros(MODEL)),
        root=state_root(THETA),
        samples=round_samples(1),
    )
    work = train_round(start, Arithmetic.of(SPEC))
    scales = scale_of(work.payload, {})
    before, after = Evaluator(MODEL).score(THETA, work.payload, scales, PART, SAMPLES)
    assert after < before
    assert before == Evaluator(MODEL).loss(THETA, SAMPLES)
    stepped = apply_update(THETA, work.payload, scales, PART)
    assert after == Evaluator(MODEL).loss(stepped, SAMPLES)


def test_score__zero_update__changes_nothing() -> None:
    zero = encode(zeros(MODEL), MODEL, SPEC.codec)
    before, after = Evaluator(MODEL).score(THETA, zero, scale_of(zero, {}), MEAN, SAMPLES)
    assert before == after


def test_loss_after__absurd_update__is_never_nan() -> None:
    loud = random_payload(1, 1e30)
    after = Evaluator(MODEL).loss_after(THETA, loud, scale_of(loud, {}), MEAN, SAMPLES)
    assert not math.isnan(after)
    broken = {name: array * np.float32(np.nan) for name, array in THETA.items()}
    assert Evaluator(MODEL).loss(broken, SAMPLES) == math.inf


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
