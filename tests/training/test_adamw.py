"""AdamW over flat vectors, beside torch's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.specs import MODEL, SPEC
from tests.training.samples import random_tensors
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
    parameters = list(reference.llama.parameters())
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
            for name, parameter in model.llama.named_parameters():
                parameter.grad = gradients[name].clone()
        if float(grad_clip) > 0:
            torch.nn.utils.clip_grad_norm_(parameters, float(grad_clip))
        ours.step(float(inner.learning_rate))
        theirs.step()
    assert torch.allclose(flat.theta, reference.theta, rtol=1e-5, atol=1e-6)
    moments = torch.cat([theirs.state[p]["exp_avg_sq"].flatten() for p in parameters])
    names = [name for name, _ in reference.llama.named_parameters()]
    split = flat.layout.split(ours.v.numpy())
    assert np.allclose(
        np.concatenate([split[n].ravel() for n in names]), moments.numpy(), rtol=1e-5
    )
