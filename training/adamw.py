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
        self._epsilon = float(inner.epsilon)
        self._beta1, self._beta2 = float(inner.beta1), float(inner.beta2)
        self._decay, self._clip = float(inner.weight_decay), float(inner.grad_clip)
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
        scale = self._clip_factor(gradients)
        plain = self._numbers(learning_rate, scale, 0.0)
        decayed = self._numbers(learning_rate, scale, self._decay)
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

    def _clip_factor(self, gradients: dict[str, NDArray[np.float32]]) -> float:
        """What brings the L2 norm over all tensors, in the order of their names, down to the limit; 1 where it lies within."""
        if self._clip <= 0:
            return 1.0
        total = 0.0
        for gradient in gradients.values():
            total += kernels.squares(gradient)
        norm = math.sqrt(total)
        return self._clip / norm if norm > self._clip else 1.0

    def _numbers(self, learning_rate: float, scale: float, decay: float) -> kernels.AdamWStep:
        correction1 = 1.0 - _power(self._beta1, self.step_count)
        correction2 = 1.0 - _power(self._beta2, self.step_count)
        return kernels.AdamWStep(
            scale=scale,
            keep=1.0 - learning_rate * decay,
            beta1=self._beta1,
            rest1=1.0 - self._beta1,
            beta2=self._beta2,
            rest2=1.0 - self._beta2,
            rate=learning_rate / correction1,
            root=math.sqrt(correction2),
            epsilon=self._epsilon,
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
