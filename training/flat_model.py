"""A model whose parameters lie in one flat vector in name order, its tensors being views into it."""

from __future__ import annotations

import torch

from protocol.spec import ModelSpec
from training.layout import FlatLayout, flat_layout
from training.model import Llama
from training.parameters import Parameters


class FlatModel:
    """A Llama whose parameters are views into one flat vector."""

    def __init__(self, model: ModelSpec) -> None:
        self.layout: FlatLayout = flat_layout(model)
        self.llama = Llama(model)
        self.theta = torch.zeros(self.layout.size)
        for name, parameter in self.llama.named_parameters():
            start = self.layout.offsets[name]
            end = start + parameter.numel()
            parameter.data = self.theta[start:end].view(parameter.shape)

    def load(self, params: Parameters) -> None:
        """Copies `params` into the model's memory."""
        self.theta.copy_(torch.from_numpy(self.layout.flatten(params)))

    def parameters(self) -> Parameters:
        """Views into the model's memory: copy what must outlive the next step."""
        return self.layout.split(self.theta.numpy())
