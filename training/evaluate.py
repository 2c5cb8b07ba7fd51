"""Losses: before and after a peer's update, and on the held-out split."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.model_spec import ModelSpec
from training import transform
from training.aggregate import Scales, add_scaled
from training.codec import Payload
from training.dataset import TokenDataset
from training.flat_model import FlatModel
from training.model import token_losses
from training.outer import TINY, OuterStep
from training.parameters import Parameters

# Fixed, because the grouping of samples may change a kernel and so a bit.
EVALUATION_BATCH = 16


class Evaluator:
    """Losses of a model and of single steps from it. Not thread-safe: model and update lie in buffers of its own.

    A step is taken and undone where the update lies, so what a peer costs beyond its forward passes grows with what it sent and
    not with the model.
    """

    def __init__(self, model: ModelSpec) -> None:
        self._flat = FlatModel(model)
        self._theta: NDArray[np.float32] = self._flat.theta.numpy()  # the same memory
        self._update = np.zeros_like(self._theta)  # all zero except inside `stepped`
        self._flushed = np.zeros(0, np.int64)
        self._vocab_size, self._sample_tokens = model.vocab_size, model.context + 1

    def load(self, params: Parameters) -> None:
        """Takes up the model that `measure` and `stepped` are about."""
        self._flat.load(params)
        # A step turns every such value into +0, wherever the update lies; a model that was aggregated once has none.
        self._flushed = np.flatnonzero(
            (np.abs(self._theta) < TINY) & (self._theta.view(np.uint32) != 0)
        )

    @contextmanager
    def stepped(self, payload: Payload, scales: Scales, step: OuterStep) -> Iterator[None]:
        """Inside, the model is what `apply_update` makes of it, to the bit; afterwards it is what it was, to the bit.

        Coefficients of a transform reach every weight of their tiles, so those of an update that has them lie everywhere.
        """
        layout = payload.layout
        everywhere = layout.transform != "none"
        touched = slice(None) if everywhere else np.concatenate([payload.positions, self._flushed])
        add_scaled(self._update, payload, scales)
        total = transform.from_coefficients(self._update, layout)[touched]
        before = self._theta[touched].copy()
        self._theta[touched] = step.move(before, total, 1)
        self._update[touched] = 0.0
        try:
            yield
        finally:
            self._theta[touched] = before

    def measure(self, samples: NDArray[np.int64]) -> float:
        """Mean nats per token of the model as it is, over `samples` (N, L+1); infinite where its output is not finite."""
        self._check(samples)
        found: list[NDArray[np.float32]] = []
        with torch.inference_mode():
            for start in range(0, len(samples), EVALUATION_BATCH):
                batch = torch.from_numpy(samples[start : start + EVALUATION_BATCH].copy())
                found.append(token_losses(self._flat.network, batch).flatten().numpy())
        total = float(
            np.cumsum(np.concatenate(found), dtype=np.float64)[-1]
        )  # in order: the same on every machine
        mean = total / sum(map(len, found))
        return mean if math.isfinite(mean) else math.inf

    def loss(self, params: Parameters, samples: NDArray[np.int64]) -> float:
        """`measure` of a model that is loaded for it."""
        self.load(params)
        return self.measure(samples)

    def heldout_loss(self, params: Parameters, dataset: TokenDataset, limit: int = 256) -> float:
        """Loss on the first `limit` samples of the held-out split, which nobody is ever assigned."""
        end = min(dataset.total_samples, dataset.train_samples + limit)
        return self.loss(params, dataset.samples(range(dataset.train_samples, end)))

    def _check(self, samples: NDArray[np.int64]) -> None:
        if samples.ndim != 2 or samples.shape[1] != self._sample_tokens or len(samples) == 0:
            raise ValueError(
                f"samples have shape {samples.shape}, expected (N, {self._sample_tokens})"
            )
        if samples.min() < 0 or samples.max() >= self._vocab_size:
            raise ValueError("a token lies outside the vocabulary")
