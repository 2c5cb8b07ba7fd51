"""AdamW over the flat vectors of a model: two passes in C, one for the gradient's norm and one for the step.

The same gradient gives the same bits on every processor, for both passes are IEEE operations in a fixed order.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.spec import InnerSpec
from training import kernels
from training.flat_model import FlatModel
from training.local_state import LocalState


class AdamW:
    """Decoupled weight decay (Loshchilov and Hutter 2019); vectors of norms are not decayed."""

    def __init__(self, flat: FlatModel, inner: InnerSpec, local: LocalState) -> None:
        self._inner = inner
        self._parameters = dict(flat.network.named_parameters())
        self._theta = flat.parameters()
        self.m = torch.from_numpy(flat.layout.flatten(local.m))
        self.v = torch.from_numpy(flat.layout.flatten(local.v))
        self._m, self._v = (flat.layout.split(moment.numpy()) for moment in (self.m, self.v))
        self.step_count = local.step

    def step(self, learning_rate: float) -> None:
        """Consumes the gradients of the model's parameters."""
        gradients = {name: self._take_gradient(name) for name in self._theta}
        self.step_count += 1
        clips = float(self._inner.grad_clip) > 0
        squares = sum(map(kernels.squares, gradients.values())) if clips else 0.0
        scale = clip_factor(squares, self._inner)
        plain, decayed = (
            step_numbers(
                self._inner,
                self.step_count,
                learning_rate=learning_rate,
                scale=scale,
                decays=decays,
            )
            for decays in (False, True)
        )
        for name, theta in self._theta.items():
            numbers = decayed if theta.ndim > 1 else plain
            kernels.adamw(theta, self._m[name], self._v[name], gradients[name], numbers)

    def _take_gradient(self, name: str) -> NDArray[np.float32]:
        parameter = self._parameters[name]
        gradient, parameter.grad = parameter.grad, None
        if gradient is None:  # the loss does not reach it
            return np.zeros_like(self._theta[name])
        values: NDArray[np.float32] = gradient.contiguous().numpy()
        return values


def clip_factor(squares: float, inner: InnerSpec) -> float:
    """What brings a gradient, whose squares sum up to this, down to the largest norm; 1 where it lies within, or none is set."""
    limit, norm = float(inner.grad_clip), math.sqrt(squares)
    return limit / norm if 0 < limit < norm else 1.0


def step_numbers(
    inner: InnerSpec, count: int, *, learning_rate: float, scale: float, decays: bool
) -> kernels.AdamWStep:
    """The numbers of AdamW's step number `count` on one tensor.

    Args:
        inner: its parameters.
        count: from 1.
        learning_rate: of this step.
        scale: of the gradient.
        decays: whether the tensor does.
    """
    beta1, beta2 = float(inner.beta1), float(inner.beta2)
    decay = float(inner.weight_decay) if decays else 0.0
    return kernels.AdamWStep(
        scale=scale,
        keep=1.0 - learning_rate * decay,
        beta1=beta1,
        rest1=1.0 - beta1,
        beta2=beta2,
        rest2=1.0 - beta2,
        rate=learning_rate / (1.0 - _power(beta1, count)),
        root=math.sqrt(1.0 - _power(beta2, count)),
        epsilon=float(inner.epsilon),
    )


def _power(base: float, exponent: int) -> float:
    """Base ** exponent by repeated squaring: only IEEE products, where libm's pow differs between systems."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
