"""AdamW over flat vectors, beside torch's own and, to the bit, beside the formula in numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.specs import MODEL, SPEC
from tests.training.samples import random_tensors
from training import kernels
from training.adamw import AdamW
from training.flat_model import FlatModel
from training.local_state import LocalState
from training.parameters import initial_parameters

THETA = initial_parameters(MODEL)


@pytest.mark.parametrize("grad_clip", ["0", "0.01"])
@pytest.mark.parametrize("weight_decay", ["0", "0.1"])
def test_adamw__many_steps__equals_torch(grad_clip: str, weight_decay: str) -> None:
    inner = replace(SPEC.inner, grad_clip=grad_clip, weight_decay=weight_decay)
    flat, reference = FlatModel(MODEL), FlatModel(MODEL)
    flat.load(THETA)
    reference.load(THETA)
    ours = AdamW(flat, inner, LocalState.zeros(MODEL))
    parameters = list(reference.network.parameters())
    theirs = torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.ndim > 1]},
            {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=float(inner.learning_rate),
        betas=(float(inner.beta1), float(inner.beta2)),
        eps=float(inner.epsilon),
        weight_decay=float(weight_decay),
        foreach=False,
    )
    for step in range(20):
        gradients = {n: torch.from_numpy(g) for n, g in random_tensors(step, 0.01).items()}
        for model in (flat, reference):
            for name, parameter in model.network.named_parameters():
                parameter.grad = gradients[name].clone()
        if float(grad_clip) > 0:
            torch.nn.utils.clip_grad_norm_(parameters, float(grad_clip))
        ours.step(float(inner.learning_rate))
        theirs.step()
    assert torch.allclose(flat.theta, reference.theta, rtol=1e-5, atol=1e-6)
    moments = torch.cat([theirs.state[p]["exp_avg_sq"].flatten() for p in parameters])
    names = [name for name, _ in reference.network.named_parameters()]
    split = flat.layout.split(ours.v.numpy())
    assert np.allclose(
        np.concatenate([split[n].ravel() for n in names]), moments.numpy(), rtol=1e-5
    )


def slow_squares(values: NDArray[np.float32]) -> float:
    """16 lanes in fp64, each from first to last, then pairs of lanes, halves apart."""
    lanes = [0.0] * 16
    for position, value in enumerate(values.tolist()):
        lanes[position % 16] += value * value
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[i] + lanes[i + half] for i in range(half)]
    return lanes[0]


def slow_adamw(
    theta: NDArray[np.float32],
    m: NDArray[np.float32],
    v: NDArray[np.float32],
    gradient: NDArray[np.float32],
    step: kernels.AdamWStep,
) -> None:
    """One rounding to fp32 after each operation."""
    n = {name: np.float32(getattr(step, name)) for name, _ in step._fields_}
    g = gradient * n["scale"]
    m[:] = m * n["beta1"] + g * n["rest1"]
    v[:] = v * n["beta2"] + (g * g) * n["rest2"]
    theta[:] = theta * n["keep"] - n["rate"] * (m / (np.sqrt(v) / n["root"] + n["epsilon"]))


@given(size=st.integers(0, 70), seed=st.integers(0, 2**32 - 1), exponent=st.integers(-40, 36))
def test_squares__any_values__are_summed_in_the_stated_order(
    size: int, seed: int, exponent: int
) -> None:
    values = np.random.default_rng(seed).standard_normal(size, np.float32)
    values *= np.float32(2.0**exponent)
    assert kernels.squares(values) == slow_squares(values)


@given(size=st.integers(0, 70), seed=st.integers(0, 2**32 - 1), exponent=st.integers(-60, 30))
def test_adamw_kernel__any_values__gives_the_bits_of_the_formula(
    size: int, seed: int, exponent: int
) -> None:
    """Subnormal gradients and squares included."""
    rng = np.random.default_rng(seed)
    step = kernels.AdamWStep(*rng.uniform(0.01, 1.0, 9).tolist())
    theta, m, gradient = (rng.standard_normal(size, np.float32) for _ in range(3))
    gradient *= np.float32(2.0**exponent)
    v = rng.standard_normal(size, np.float32) ** 2
    ours = [array.copy() for array in (theta, m, v)]
    kernels.adamw(*ours, gradient, step)
    slow_adamw(theta, m, v, gradient, step)
    assert [array.tobytes() for array in ours] == [array.tobytes() for array in (theta, m, v)]


def test_adamw_kernel__arrays_that_do_not_fit__raise_value_error() -> None:
    step = kernels.AdamWStep()
    good, short = np.zeros(4, np.float32), np.zeros(3, np.float32)
    for wrong in (short, good.astype(np.float64), np.zeros(8, np.float32)[::2]):
        with pytest.raises(ValueError, match=r"size|float32|contiguous"):
            kernels.adamw(good, good.copy(), good.copy(), wrong, step)  # type: ignore[arg-type]


def test_adamw__clipped_gradient__has_the_norm_over_all_tensors() -> None:
    """With beta1 = 0 the first moment is the gradient as the step used it."""
    inner = replace(SPEC.inner, grad_clip="0.5", beta1="0")
    flat = FlatModel(MODEL)
    flat.load(THETA)
    optimizer = AdamW(flat, inner, LocalState.zeros(MODEL))
    gradients = random_tensors(1)
    for name, parameter in flat.network.named_parameters():
        parameter.grad = torch.from_numpy(gradients[name])
    optimizer.step(0.0)
    assert float(np.linalg.norm(optimizer.m.numpy())) == pytest.approx(0.5, rel=1e-6)
    assert all(parameter.grad is None for parameter in flat.network.parameters())


def test_adamw__parameter_that_the_loss_does_not_reach__counts_as_zero() -> None:
    flat, reference = FlatModel(MODEL), FlatModel(MODEL)
    for model, absent in ((flat, None), (reference, torch.zeros(MODEL.hidden_size))):
        model.load(THETA)
        gradients = random_tensors(1)
        for name, parameter in model.network.named_parameters():
            parameter.grad = torch.from_numpy(gradients[name])
        dict(model.network.named_parameters())["model.norm.weight"].grad = absent
        AdamW(model, SPEC.inner, LocalState.zeros(MODEL)).step(0.01)
    assert torch.equal(flat.theta, reference.theta)
