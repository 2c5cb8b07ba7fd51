"""Losses: before and after a peer's update, and on the held-out split."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.model_spec import ModelSpec
from training.aggregate import Scales, apply_update
from training.codec import Payload
from training.dataset import TokenDataset
from training.flat_model import FlatModel
from training.model import token_losses
from training.outer import OuterStep
from training.parameters import Parameters

# Fixed, because the grouping of samples may change a kernel and so a bit.
EVALUATION_BATCH = 16


class Evaluator:
    """Computes losses of one model. Not thread-safe: it reuses its buffers."""

    def __init__(self, model: ModelSpec) -> None:
        self._flat = FlatModel(model)
        self._vocab_size, self._sample_tokens = model.vocab_size, model.context + 1

    def loss(self, params: Parameters, samples: NDArray[np.int64]) -> float:
        """Mean nats per token over `samples` (N, L+1); infinite where the model's output is not finite."""
        self._check(samples)
        self._flat.load(params)
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

    def loss_after(
        self,
        params: Parameters,
        payload: Payload,
        scales: Scales,
        step: OuterStep,
        samples: NDArray[np.int64],
    ) -> float:
        """The loss after `step` against the scaled update alone."""
        return self.loss(apply_update(params, payload, scales, step), samples)

    def score(
        self,
        params: Parameters,
        payload: Payload,
        scales: Scales,
        step: OuterStep,
        samples: NDArray[np.int64],
    ) -> tuple[float, float]:
        """Losses (before, after) a step, usually of beta = c * alpha, against the update as the aggregate would scale it.

        For many peers on the same samples call `loss` once and `loss_after` for each.
        """
        after = self.loss_after(params, payload, scales, step, samples)
        return self.loss(params, samples), after

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
