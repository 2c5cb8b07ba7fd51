"""A model whose parameters lie in one flat vector in name order, its tensors being views into it."""

from __future__ import annotations

import torch
from torch import nn

from protocol.model_spec import LlamaSpec, ModelSpec
from training import foreign
from training.errors import ModelError
from training.layout import FlatLayout, flat_layout
from training.model import Llama
from training.parameters import Parameters


class FlatModel:
    """A network, (B, T) token ids to (B, T, V) logits, whose parameters are views into one flat vector.

    Args:
        model: of the run's spec.
        checkpoint_activations: the backward pass computes each layer once more instead of keeping what is inside it.

    Raises:
        ModelError: no such model can be built here, or this architecture can't do that.
    """

    def __init__(self, model: ModelSpec, *, checkpoint_activations: bool = False) -> None:
        self.layout: FlatLayout = flat_layout(model)
        self.network = build_network(model, checkpoint_activations)
        self.theta = torch.zeros(self.layout.size)
        for name, parameter in self.network.named_parameters():  # each once, also where it is tied
            start = self.layout.offsets[name]
            end = start + parameter.numel()
            parameter.data = self.theta[start:end].view(parameter.shape)

    def load(self, params: Parameters) -> None:
        """Copies `params` into the model's memory."""
        self.theta.copy_(torch.from_numpy(self.layout.flatten(params)))

    def parameters(self) -> Parameters:
        """Views into the model's memory: copy what must outlive the next step."""
        return self.layout.split(self.theta.numpy())


def build_network(model: ModelSpec, checkpoint_activations: bool) -> nn.Module:
    """The network of a spec, its values undefined; raises ModelError as `FlatModel` does."""
    if isinstance(model, LlamaSpec):
        llama = Llama(model)
        llama.model.checkpoint_activations = checkpoint_activations
        return llama
    if checkpoint_activations:
        raise ModelError(
            f"activation checkpointing is not there for a {model.architecture}",
            "leave it out, or train the project's own Llama",
        )
    return foreign.build(model)
