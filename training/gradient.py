"""The gradient of a batch's mean loss, micro batch after micro batch, in the number format of the run.

With bfloat16 the matrix products of forward and backward pass take operands rounded to it (torch's autocast); parameters,
gradients, norms, the loss and all sums between micro batches stay fp32.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from protocol.spec import ComputeSpec
from training.errors import TrainingDiverged
from training.model import token_losses

RESTART = "start from a zero local state, or leave a run whose model diverged"


def fill_gradient(network: nn.Module, batch: Tensor, compute: ComputeSpec) -> float:
    """Leaves the gradient of the mean loss of a batch (batch, L+1) in the parameters' `grad`, and returns the loss in nats per token.

    Micro batches of `compute.micro_batch` samples each add their share in order. What stood in `grad` is lost.
    """
    for parameter in network.parameters():
        parameter.grad = None
    parts = torch.split(batch, compute.micro_batch)
    total = 0.0
    for part in parts:
        with torch.autocast(part.device.type, torch.bfloat16, enabled=compute.dtype == "bfloat16"):
            loss = token_losses(network, part).mean() / len(parts)
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    if not math.isfinite(total):
        raise TrainingDiverged(f"the training loss is {total}", RESTART)
    return total
