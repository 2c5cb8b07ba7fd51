"""One process's part of a model and of its optimiser, sharded by FSDP2, and a step on all parts together.

FSDP2 knows a mixed precision of its own (`MixedPrecisionPolicy`), but that rounds whole layers, norms and the residual stream
with them. A run's bfloat16 rounds the operands of matrix products alone, so autocast does it here too, and the shards stay fp32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from training import kernels
from training.adamw import clip_factor, step_numbers
from training.arithmetic import Arithmetic
from training.crew import Crew
from training.errors import TrainingDiverged
from training.flat_model import build_network
from training.gradient import RESTART, fill_gradient
from training.kernels import AdamWStep
from training.parameters import Parameters, shapes
from training.threads import pin_threads


class Shards:
    """A part of the parameters and of AdamW's moments. All processes call the same methods in the same order."""

    def __init__(self, arithmetic: Arithmetic, crew: Crew, *, checkpoint_activations: bool) -> None:
        pin_threads(arithmetic.compute.threads)
        self._crew, self._model, self._inner = crew, arithmetic.model, arithmetic.inner
        self._share = crew.share_of(arithmetic.inner.batch)
        micro_batch = math.gcd(self._share, arithmetic.compute.micro_batch)
        self._compute = replace(arithmetic.compute, micro_batch=micro_batch)
        self._network = build_network(arithmetic.model, checkpoint_activations)
        for layer in _layers(self._network):
            fully_shard(layer, mesh=crew.mesh)
        fully_shard(self._network, mesh=crew.mesh)
        self._m: dict[str, DTensor] = {}
        self._v: dict[str, DTensor] = {}
        self.count = self._taken = 0

    def load(
        self,
        params: Parameters | None,
        m: Parameters | None,
        v: Parameters | None,
        *,
        count: int,
        taken: int,
    ) -> None:
        """Takes this process's part of rank 0's parameters and moments, for which the others give None.

        Args:
            params: of the model.
            m: first moments.
            v: second moments.
            count: AdamW's steps so far.
            taken: inner steps of the run so far.
        """
        self.count, self._taken = count, taken
        for name, theta in self._theta().items():
            theta.to_local().copy_(self._part_of(params, name, theta).to_local())
            self._m[name] = self._part_of(m, name, theta)
            self._v[name] = self._part_of(v, name, theta)

    def step(self, batch: Tensor | None) -> float:
        """One step on rank 0's batch (batch, L+1), for which the others give None; returns its mean loss in nats per token.

        Raises:
            TrainingDiverged: the loss is not finite; in every process alike.
        """
        part = torch.empty(self._share, self._model.context + 1, dtype=torch.int64)
        ours = self._fill_gradient(self._crew.deal(batch, part))
        gradients = {name: _gradient(p) for name, p in self._network.named_parameters()}
        losses, squares = self._crew.sum([ours, sum(map(_squares, gradients.values()))])
        loss = losses / self._crew.place.size
        if not math.isfinite(loss):
            raise TrainingDiverged(f"the training loss is {loss}", RESTART)
        self._taken += 1
        self.count += 1
        self._update(gradients, self._inner.learning_rate_at(self._taken), squares)
        return loss

    def gather(self) -> tuple[Parameters, Parameters, Parameters]:
        """Copies of parameters and moments, whole, on rank 0; nothing in the others."""
        params, m, v = (self._gathered(part) for part in (self._theta(), self._m, self._v))
        return params, m, v

    def _theta(self) -> dict[str, DTensor]:
        found = {}
        for name, parameter in self._network.named_parameters():
            shard = parameter.detach()
            assert isinstance(shard, DTensor)
            found[name] = shard
        return found

    def _part_of(self, whole: Parameters | None, name: str, like: DTensor) -> DTensor:
        """A tensor's part, new, cut as `like` is."""
        tensor = (
            torch.empty(shapes(self._model)[name])
            if whole is None
            else torch.from_numpy(whole[name].copy())
        )
        return distribute_tensor(tensor.to(self._crew.device), self._crew.mesh, like.placements)

    def _gathered(self, part: dict[str, DTensor]) -> Parameters:
        """One tensor after the other, so that only rank 0 ever holds all."""
        whole: dict[str, NDArray[np.float32]] = {}
        for name in shapes(self._model):
            tensor = part[name].full_tensor()
            if self._crew.leads:
                whole[name] = tensor.cpu().numpy()
        return whole

    def _fill_gradient(self, part: Tensor) -> float:
        """Leaves our shards of the mean gradient of all processes; returns the mean loss of our part, NaN if it isn't finite."""
        try:
            return fill_gradient(self._network, part, self._compute)
        except TrainingDiverged:
            return math.nan  # the others have to hear of it before anybody gives up

    def _update(self, gradients: dict[str, Tensor], learning_rate: float, squares: float) -> None:
        scale = clip_factor(squares, self._inner)
        plain, decayed = (
            step_numbers(
                self._inner, self.count, learning_rate=learning_rate, scale=scale, decays=decays
            )
            for decays in (False, True)
        )
        for name, theta in self._theta().items():
            numbers = decayed if theta.ndim > 1 else plain
            m, v = self._m[name].to_local(), self._v[name].to_local()
            _adamw(theta.to_local(), m, v, gradients[name], numbers)


def _layers(network: nn.Module) -> Iterator[nn.Module]:
    """The longest list of modules in it: the layers of every architecture, each of which is gathered on its own."""
    lists = [module for module in network.modules() if isinstance(module, nn.ModuleList)]
    yield from max(lists, key=len, default=nn.ModuleList())


def _adamw(theta: Tensor, m: Tensor, v: Tensor, gradient: Tensor, step: AdamWStep) -> None:
    if theta.device.type == "cpu":
        kernels.adamw(theta.numpy(), m.numpy(), v.numpy(), gradient.numpy(), step)
    else:
        adamw_anywhere(theta, m, v, gradient, step)


def adamw_anywhere(theta: Tensor, m: Tensor, v: Tensor, gradient: Tensor, step: AdamWStep) -> None:
    """What `kernels.adamw` does, operation by operation, where its C doesn't run. Torch's square roots may be a bit off."""
    scaled = gradient * step.scale
    m.mul_(step.beta1).add_(scaled * step.rest1)
    v.mul_(step.beta2).add_(scaled.square().mul_(step.rest2))
    change = m / v.sqrt().div_(step.root).add_(step.epsilon)
    theta.mul_(step.keep).sub_(change.mul_(step.rate))


def _gradient(parameter: Tensor) -> Tensor:
    gradient, parameter.grad = parameter.grad, None
    if gradient is None:  # the loss does not reach it
        assert isinstance(parameter, DTensor)
        return torch.zeros_like(parameter.to_local())
    assert isinstance(gradient, DTensor)
    local: Tensor = gradient.to_local()
    return local


def _squares(gradient: Tensor) -> float:
    """The sum of squares, in fp64."""
    return float(torch.linalg.vector_norm(gradient, dtype=torch.float64)) ** 2
