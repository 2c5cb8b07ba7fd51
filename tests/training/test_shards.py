"""AdamW's step in torch's operations beside the kernel."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from training import kernels
from training.shards import adamw_anywhere


@given(size=st.integers(0, 70), seed=st.integers(0, 2**32 - 1), exponent=st.integers(-60, 30))
def test_adamw_anywhere__any_values__is_the_kernel_but_for_rounding(
    size: int, seed: int, exponent: int
) -> None:
    """To the bit in both moments; a square root's last bit may differ."""
    rng = np.random.default_rng(seed)
    step = kernels.AdamWStep(*rng.uniform(0.01, 1.0, 9).tolist())
    theta, m, gradient = (rng.standard_normal(size, np.float32) for _ in range(3))
    gradient *= np.float32(2.0**exponent)
    v = rng.standard_normal(size, np.float32) ** 2
    ours = [torch.from_numpy(array.copy()) for array in (theta, m, v)]
    kernels.adamw(theta, m, v, gradient, step)
    before = ours[0].numpy().copy()
    adamw_anywhere(*ours, torch.from_numpy(gradient), step)
    assert [tensor.numpy().tobytes() for tensor in ours[1:]] == [m.tobytes(), v.tobytes()]
    moved = np.abs(theta - before) + np.abs(theta) + np.abs(before)
    assert (np.abs(ours[0].numpy() - theta) <= 1e-6 * moved).all()
