"""The outer step: bits that don't depend on torch, robustness against a loud sender, and a slow reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.specs import MODEL, SPEC
from tests.training.samples import random_payload, random_tensors, same_bits
from training.aggregate import (
    SUMMAND_FLOOR,
    TINY,
    aggregate,
    apply_update,
    median_norms,
    norms,
    scale_of,
    tensor_scales,
)
from training.codec import Payload, encode
from training.parameters import Parameters, initial_parameters, shapes, zeros

ALPHA = 1.0
THETA = initial_parameters(MODEL)
EMPTY = encode(zeros(MODEL), MODEL, SPEC.codec)
seeds = st.lists(st.integers(0, 1000), min_size=1, max_size=7)
loudness = st.sampled_from([1e-12, 1e-10, 1e12, 1e-6, 1e-3, 1.0, 2.0, 1e3, 1e9])


def slow_aggregate(params: Parameters, payloads: list[Payload], alpha: float) -> Parameters:
    """The definition, tensor by tensor on dense arrays."""
    scales = tensor_scales(payloads)
    result: Parameters = {}
    for name, tensor in params.items():
        total = np.zeros_like(tensor)
        for payload, scale in zip(payloads, scales, strict=True):
            summand = payload.dense()[name] * scale[name]
            total = total + np.where(np.abs(summand) < SUMMAND_FLOOR, np.float32(0), summand)
        result[name] = tensor - np.float32(alpha) * (total / np.float32(len(payloads)))
    return result


@given(seeds, st.lists(loudness, min_size=7, max_size=7))
def test_aggregate__any_payloads__equals_slow_reference(
    chosen: list[int], loud: list[float]
) -> None:
    payloads = [random_payload(seed, scale) for seed, scale in zip(chosen, loud, strict=False)]
    found = aggregate(THETA, payloads, ALPHA)
    expected = slow_aggregate(THETA, payloads, 1.0)
    assert all(np.array_equal(found[name], expected[name]) for name in THETA)


@contextmanager
def torch_settings(threads: int, flush: bool) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)


@given(seeds, st.lists(loudness, min_size=7, max_size=7))
def test_aggregate__other_torch_settings__gives_the_same_bits(
    chosen: list[int], loud: list[float]
) -> None:
    payloads = [random_payload(seed, scale) for seed, scale in zip(chosen, loud, strict=False)]
    # A state so small that differences would be subnormal.
    theta = {name: array * np.float32(2.0**-90) for name, array in THETA.items()}
    for array in theta.values():
        array[np.abs(array) < TINY] = 0.0
    outcomes = []
    for threads, flush in ((1, False), (2, False), (1, True)):
        with torch_settings(threads, flush):
            outcomes.append((aggregate(THETA, payloads, ALPHA), aggregate(theta, payloads, ALPHA)))
    for first, second in outcomes[1:]:
        assert same_bits(first, outcomes[0][0])
        assert same_bits(second, outcomes[0][1])


def test_aggregate__order_of_slots__is_the_order_of_the_sum() -> None:
    payloads = [random_payload(seed, 10.0**seed) for seed in range(6)]
    assert same_bits(aggregate(THETA, payloads, ALPHA), aggregate(THETA, list(payloads), ALPHA))
    # Another order may give other bits; within rounding it is the same step.
    other = aggregate(THETA, payloads[::-1], ALPHA)
    expected = aggregate(THETA, payloads, ALPHA)
    assert all(np.allclose(other[name], expected[name], rtol=1e-5, atol=1e-5) for name in THETA)


def test_aggregate__nobody__keeps_theta() -> None:
    after = aggregate(THETA, [], ALPHA)
    assert same_bits(after, THETA)
    assert after["model.norm.weight"] is not THETA["model.norm.weight"]


def test_aggregate__only_empty_payloads__keeps_theta() -> None:
    assert same_bits(aggregate(THETA, [EMPTY, EMPTY], ALPHA), THETA)


def test_aggregate__inputs__are_left_alone() -> None:
    before = {name: array.copy() for name, array in THETA.items()}
    aggregate(THETA, [random_payload(1), random_payload(2)], ALPHA)
    assert same_bits(before, THETA)


@given(seeds, st.sampled_from([2.0, 5.0, 1e3, 1e9]))
def test_tensor_scales__loud_sender__contributes_at_most_the_median_norm(
    chosen: list[int], factor: float
) -> None:
    honest = [random_payload(seed) for seed in chosen]
    loud = random_payload(4242, factor)
    payloads = [*honest, loud, random_payload(7), random_payload(8)]
    medians = median_norms(payloads)
    for payload, scales in zip(payloads, tensor_scales(payloads), strict=True):
        for name, own in norms(payload).items():
            assert float(scales[name]) * own <= medians[name]
            assert float(scales[name]) <= 1.0


@given(st.integers(0, 1000), loudness)
def test_norms__any_payload__equal_those_of_the_dense_update(seed: int, scale: float) -> None:
    payload = random_payload(seed, scale)
    for name, tensor in payload.dense().items():
        expected = math.sqrt(math.fsum((tensor.astype(np.float64) ** 2).ravel().tolist()))
        assert norms(payload)[name] == pytest.approx(expected, rel=1e-6)


def test_median_norms__even_count__takes_the_lower() -> None:
    payloads = [random_payload(3, scale) for scale in (4.0, 1.0, 2.0, 8.0)]
    medians = median_norms(payloads)
    assert medians == norms(payloads[2])


def test_median_norms__empty_payloads__do_not_pull_it_down() -> None:
    payloads = [random_payload(3, 2.0, SPEC.codec), EMPTY, EMPTY]
    assert median_norms(payloads) == norms(payloads[0])
    assert set(tensor_scales(payloads)[0].values()) == {np.float32(1.0)}


def test_scale_of__zero_payload__stays_zero() -> None:
    medians = median_norms([random_payload(1, codec=SPEC.codec)])
    after = apply_update(THETA, EMPTY, scale_of(EMPTY, medians), 1.0)
    assert same_bits(after, THETA)


def test_scale_of__not_selected__uses_the_selected_medians() -> None:
    selected = [random_payload(seed) for seed in range(3)]
    loud = random_payload(9, 100.0)
    scales = scale_of(loud, median_norms(selected))
    for name, own in norms(loud).items():
        assert float(scales[name]) == pytest.approx(median_norms(selected)[name] / own, rel=1e-6)


def test_scale_of__nobody_selected__is_one() -> None:
    assert set(scale_of(random_payload(1), {}).values()) == {np.float32(1.0)}


def test_apply_update__step__moves_against_the_update() -> None:
    payload = random_payload(1)
    ones = dict.fromkeys(shapes(MODEL), np.float32(1.0))
    after = apply_update(THETA, payload, ones, 0.5)
    for name, tensor in payload.dense().items():
        assert np.array_equal(after[name], THETA[name] - np.float32(0.5) * tensor)


def test_aggregate__alpha__scales_the_step() -> None:
    payloads = [random_payload(1), random_payload(2)]
    half = aggregate(THETA, payloads, 0.5)
    expected = slow_aggregate(THETA, payloads, 0.5)
    assert same_bits(half, expected)


def test_aggregate__random_state__roots_are_reproducible() -> None:
    theta = random_tensors(3)
    payloads = [random_payload(seed, 10.0) for seed in range(5)]
    assert same_bits(aggregate(theta, payloads, ALPHA), aggregate(theta, payloads, ALPHA))
