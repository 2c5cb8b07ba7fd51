"""AdamW over the flat vectors of a model. With one thread, the same inputs give the same bits on the same kind of processor."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.spec import InnerSpec
from training.flat_model import FlatModel
from training.local_state import LocalState


class AdamW:
    """Decoupled weight decay (Loshchilov and Hutter 2019) over one flat vector; vectors of norms are not decayed."""

    def __init__(self, flat: FlatModel, inner: InnerSpec, local: LocalState) -> None:
        self._flat = flat
        self._epsilon = float(inner.epsilon)
        self._beta1, self._beta2 = float(inner.beta1), float(inner.beta2)
        self._decay, self._clip = float(inner.weight_decay), float(inner.grad_clip)
        self.m = torch.from_numpy(flat.layout.flatten(local.m))
        self.v = torch.from_numpy(flat.layout.flatten(local.v))
        self.step_count = local.step

    def step(self, learning_rate: float) -> None:
        """Consumes the model's gradient."""
        gradient, theta = self._flat.gradient, self._flat.theta
        if self._clip > 0:
            norm = _norm(gradient.numpy())
            if norm > self._clip:
                gradient.mul_(self._clip / norm)
        self.step_count += 1
        if self._decay > 0:
            for parameter in self._flat.llama.parameters():
                if parameter.ndim > 1:
                    parameter.data.mul_(1.0 - learning_rate * self._decay)
        self.m.mul_(self._beta1).add_(gradient, alpha=1.0 - self._beta1)
        self.v.mul_(self._beta2).addcmul_(gradient, gradient, value=1.0 - self._beta2)
        correction1 = 1.0 - _power(self._beta1, self.step_count)
        correction2 = 1.0 - _power(self._beta2, self.step_count)
        denominator = self.v.sqrt().div_(correction2**0.5).add_(self._epsilon)
        theta.addcdiv_(self.m, denominator, value=-learning_rate / correction1)


def _norm(values: NDArray[np.float32]) -> float:
    """L2 norm, summed from first to last in fp64: torch's own sum depends on threads and vector width."""
    squares = np.square(values, dtype=np.float64)
    return float(np.sqrt(np.cumsum(squares)[-1]))


def _power(base: float, exponent: int) -> float:
    """Base ** exponent by repeated squaring: only IEEE products, where libm's pow differs between systems."""
    result = 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result
