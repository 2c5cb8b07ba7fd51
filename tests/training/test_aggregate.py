"""The outer step: bits that don't depend on torch, robustness against a loud sender, and a slow reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.spec import CodecSpec
from tests.specs import MODEL, SPEC
from tests.training.samples import (
    DCT,
    MEAN,
    SIGN,
    SMALL,
    random_payload,
    random_tensors,
    same_bits,
    torch_settings,
)
from tests.training.transform_reference import slow_transform
from training.aggregate import (
    SUMMAND_FLOOR,
    aggregate,
    apply_update,
    median_norms,
    norms,
    scale_of,
    tensor_scales,
)
from training.codec import Payload, encode
from training.outer import TINY, OuterStep
from training.parameters import Parameters, initial_parameters, shapes, zeros

THETA = initial_parameters(MODEL)
EMPTY = encode(zeros(MODEL), MODEL, SPEC.codec)
seeds = st.lists(st.integers(0, 1000), min_size=1, max_size=7)
codecs = st.sampled_from([SMALL, DCT])
steps = st.sampled_from([MEAN, SIGN])
loudness = st.sampled_from([1e-12, 1e-10, 1e12, 1e-6, 1e-3, 1.0, 2.0, 1e3, 1e9])


def slow_aggregate(params: Parameters, payloads: list[Payload], step: OuterStep) -> Parameters:
    """The definition on dense arrays: scaled, summed, transformed back, made a direction by the rule's formula."""
    layout = payloads[0].layout
    total = np.zeros(layout.flat.size, np.float32)
    for payload, scales in zip(payloads, tensor_scales(payloads), strict=True):
        sent = np.zeros_like(total)
        sent[payload.positions] = payload.values
        for name, tensor in layout.flat.split(sent).items():
            np.multiply(tensor, scales[name], out=tensor)
        total += np.where(np.abs(sent) < SUMMAND_FLOOR, np.float32(0), sent)
    if layout.transform == "dct":
        total = slow_transform(total, layout, inverse=True)
    if step.rule == "sparseloco":
        direction = total / np.float32(len(payloads))
    else:
        direction = (total > 0).astype(np.float32) - (total < 0).astype(np.float32)
    moved = {
        name: np.float32(step.size) * each for name, each in layout.flat.split(direction).items()
    }
    return {name: tensor - moved[name] for name, tensor in params.items()}


@given(seeds, st.lists(loudness, min_size=7, max_size=7), codecs, steps)
@settings(max_examples=60)
def test_aggregate__any_payloads__equals_slow_reference(
    chosen: list[int], loud: list[float], codec: CodecSpec, step: OuterStep
) -> None:
    payloads = [random_payload(*each, codec) for each in zip(chosen, loud, strict=False)]
    found = aggregate(THETA, payloads, step)
    expected = slow_aggregate(THETA, payloads, step)
    assert all(np.array_equal(found[name], expected[name]) for name in THETA)


@given(seeds, st.lists(loudness, min_size=7, max_size=7), codecs, steps)
@settings(max_examples=60)
def test_aggregate__other_torch_settings__gives_the_same_bits(
    chosen: list[int], loud: list[float], codec: CodecSpec, step: OuterStep
) -> None:
    payloads = [random_payload(*each, codec) for each in zip(chosen, loud, strict=False)]
    # A state so small that differences would be subnormal.
    theta = {name: array * np.float32(2.0**-90) for name, array in THETA.items()}
    for array in theta.values():
        array[np.abs(array) < TINY] = 0.0
    outcomes = []
    for threads, flush in ((1, False), (2, False), (1, True)):
        with torch_settings(threads, flush):
            outcomes.append((aggregate(THETA, payloads, step), aggregate(theta, payloads, step)))
    for first, second in outcomes[1:]:
        assert same_bits(first, outcomes[0][0])
        assert same_bits(second, outcomes[0][1])


def test_aggregate__order_of_slots__is_the_order_of_the_sum() -> None:
    payloads = [random_payload(seed, 10.0**seed) for seed in range(6)]
    assert same_bits(aggregate(THETA, payloads, MEAN), aggregate(THETA, list(payloads), MEAN))
    # Another order may give other bits; within rounding it is the same step.
    other = aggregate(THETA, payloads[::-1], MEAN)
    expected = aggregate(THETA, payloads, MEAN)
    assert all(np.allclose(other[name], expected[name], rtol=1e-5, atol=1e-5) for name in THETA)


def test_aggregate__nobody__keeps_theta() -> None:
    after = aggregate(THETA, [], MEAN)
    assert same_bits(after, THETA)
    assert after["model.norm.weight"] is not THETA["model.norm.weight"]


def test_aggregate__only_empty_payloads__keeps_theta() -> None:
    assert same_bits(aggregate(THETA, [EMPTY, EMPTY], MEAN), THETA)


def test_aggregate__inputs__are_left_alone() -> None:
    before = {name: array.copy() for name, array in THETA.items()}
    aggregate(THETA, [random_payload(1), random_payload(2)], MEAN)
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


@given(st.integers(0, 1000), loudness, codecs)
def test_norms__any_payload__equal_those_of_the_dense_update(
    seed: int, scale: float, codec: CodecSpec
) -> None:
    """Of the tensors' own values: a transform keeps norms."""
    payload = random_payload(seed, scale, codec)
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
    after = apply_update(THETA, EMPTY, scale_of(EMPTY, medians), MEAN)
    assert same_bits(after, THETA)


def test_scale_of__not_selected__uses_the_selected_medians() -> None:
    selected = [random_payload(seed) for seed in range(3)]
    loud = random_payload(9, 100.0)
    scales = scale_of(loud, median_norms(selected))
    for name, own in norms(loud).items():
        assert float(scales[name]) == pytest.approx(median_norms(selected)[name] / own, rel=1e-6)


def test_scale_of__nobody_selected__is_one() -> None:
    assert set(scale_of(random_payload(1), {}).values()) == {np.float32(1.0)}


@given(st.integers(0, 1000), loudness, codecs, steps)
@settings(max_examples=30)
def test_apply_update__any_rule__is_what_the_aggregate_does_of_that_peer_alone(
    seed: int, scale: float, codec: CodecSpec, step: OuterStep
) -> None:
    payload = random_payload(seed, scale, codec)
    scales = scale_of(payload, median_norms([payload]))
    assert same_bits(apply_update(THETA, payload, scales, step), aggregate(THETA, [payload], step))


def test_apply_update__step__moves_against_the_update() -> None:
    payload = random_payload(1)
    ones = dict.fromkeys(shapes(MODEL), np.float32(1.0))
    after = apply_update(THETA, payload, ones, replace(MEAN, size=0.5))
    for name, tensor in payload.dense().items():
        assert np.array_equal(after[name], THETA[name] - np.float32(0.5) * tensor)


def test_aggregate__alpha__scales_the_step() -> None:
    payloads = [random_payload(1), random_payload(2)]
    half = aggregate(THETA, payloads, replace(MEAN, size=0.5))
    expected = slow_aggregate(THETA, payloads, replace(MEAN, size=0.5))
    assert same_bits(half, expected)


def test_aggregate__random_state__roots_are_reproducible() -> None:
    theta = random_tensors(3)
    payloads = [random_payload(seed, 10.0) for seed in range(5)]
    assert same_bits(aggregate(theta, payloads, MEAN), aggregate(theta, payloads, MEAN))


@pytest.mark.parametrize("codec", [SMALL, DCT])
def test_aggregate__by_signs__steps_of_alpha_where_something_was_sent(codec: CodecSpec) -> None:
    payload = random_payload(1, codec=codec)
    after = aggregate(THETA, [payload, payload], replace(SIGN, size=0.25))
    for name, update in payload.dense().items():
        assert np.array_equal(after[name], THETA[name] - np.float32(0.25) * np.sign(update))
    whole = payload.layout.transform == "dct"
    touched = [np.count_nonzero(after[name] != THETA[name]) / THETA[name].size for name in THETA]
    matrices = [share for share, name in zip(touched, THETA, strict=True) if THETA[name].ndim > 1]
    assert all((share > 0.9) == whole for share in matrices)


def test_aggregate__by_signs__opposite_updates_cancel_out() -> None:
    one = random_payload(1)
    other = replace(
        one, codes=np.where(one.scales[one.layout.chunk_of_entry] > 0, one.codes ^ 1, 0)
    )
    assert same_bits(aggregate(THETA, [one, other], SIGN), THETA)
