"""The gradient of a batch, whole or in micro batches, in fp32 or bfloat16."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.specs import MODEL, SPEC
from tests.training.samples import round_samples
from training.flat_model import FlatModel
from training.gradient import fill_gradient
from training.model import token_losses
from training.parameters import initial_parameters

BATCH = torch.from_numpy(round_samples(1)[0])


def model() -> FlatModel:
    flat = FlatModel(MODEL)
    flat.load(initial_parameters(MODEL))
    return flat


def gradients(flat: FlatModel) -> list[torch.Tensor]:
    found = [parameter.grad for parameter in flat.network.parameters()]
    return [gradient for gradient in found if gradient is not None]


def test_fill_gradient__micro_batches__are_summed_in_order_to_the_bit() -> None:
    ours, theirs = model(), model()
    loss = fill_gradient(ours.network, BATCH, replace(SPEC.compute, micro_batch=1))
    total: list[torch.Tensor] = []
    losses = []
    for sample in BATCH:
        part = token_losses(theirs.network, sample[None]).mean() / len(BATCH)
        grads = torch.autograd.grad(part, list(theirs.network.parameters()))
        total = [a + b for a, b in zip(total, grads, strict=True)] if total else list(grads)
        losses.append(part.item())
    assert loss == sum(losses)
    assert all(torch.equal(a, b) for a, b in zip(gradients(ours), total, strict=True))


def test_fill_gradient__called_again__forgets_what_was_there() -> None:
    flat = model()
    fill_gradient(flat.network, BATCH, SPEC.compute)
    first = [gradient.clone() for gradient in gradients(flat)]
    fill_gradient(flat.network, BATCH, SPEC.compute)
    assert all(torch.equal(a, b) for a, b in zip(gradients(flat), first, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fill_gradient__any_dtype__leaves_fp32_as_the_parameters_lie(dtype: str) -> None:
    flat = model()
    fill_gradient(flat.network, BATCH, replace(SPEC.compute, dtype=dtype, micro_batch=2))
    for parameter in flat.network.parameters():
        assert parameter.dtype is torch.float32
        assert parameter.grad is not None
        assert parameter.grad.dtype is torch.float32
        assert parameter.grad.is_contiguous()


def test_fill_gradient__bfloat16__multiplies_in_bfloat16_and_takes_the_loss_in_fp32() -> None:
    flat, seen = model(), []
    hooks = [
        layer.register_forward_hook(lambda _, __, out: seen.append(out.dtype))
        for layer in (flat.network.model.layers[0].mlp.up_proj, flat.network.model.norm)
    ]
    fill_gradient(flat.network, BATCH, replace(SPEC.compute, dtype="bfloat16"))
    for hook in hooks:
        hook.remove()
    assert seen == [torch.bfloat16, torch.float32]
    with torch.autocast("cpu", torch.bfloat16):
        assert token_losses(flat.network, BATCH).dtype is torch.float32
