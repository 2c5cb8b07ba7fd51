"""A miner's round: H AdamW steps from theta, then error feedback and compression.

With one thread, the same inputs give the same bits on the same kind of processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocol.ids import Hash32, Round
from protocol.spec import CodecSpec, InnerSpec, ModelSpec
from training.adamw import AdamW
from training.codec import Payload, encode_flat
from training.errors import TrainingDiverged
from training.figures import RoundFigures, compression_error
from training.flat_model import FlatModel
from training.local_state import LocalState
from training.model import token_losses
from training.parameters import Parameters
from training.roots import (
    combine_local,
    leaf_hashes,
    local_root,
    state_root,
    tensor_roots,
    tree_root,
)

RESTART = "start from a zero local state, or leave a run whose model diverged"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundWork:
    """What a miner has after a round. The roots are those that its submission names."""

    payload: Payload
    payload_root: Hash32
    local_out: LocalState
    local_in_root: Hash32
    local_out_root: Hash32
    trace_root: Hash32
    trace_leaves: tuple[bytes, ...]  # leaf data, 64 bytes each
    mean_loss: float  # nats per token over all steps
    figures: RoundFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerState:
    """Where an inner loop stands between two steps. The arrays are its own."""

    params: Parameters
    local: LocalState

    def leaf(self) -> bytes:
        """Its leaf in a trace, 64 bytes."""
        return state_root(self.params) + local_root(self.local)


class InnerLoop:
    """The inner loop of one round, step by step.

    Args:
        start: where it begins.
        model, inner, codec: of the run's spec.
        taken: inner steps of the run before `start`, void rounds' included: the schedule goes by them.
    """

    def __init__(
        self,
        start: InnerState,
        *,
        model: ModelSpec,
        inner: InnerSpec,
        codec: CodecSpec,
        taken: int,
    ) -> None:
        self._start, self._model, self._codec = start, model, codec
        self._inner, self._taken = inner, taken
        self._flat = FlatModel(model)
        self._flat.load(start.params)
        self._optimizer = AdamW(self._flat, inner, start.local)
        self._feedback_roots = tensor_roots(start.local.e)

    def step(self, batch: Tensor) -> float:
        """One step on a batch (batch, L+1) of tokens; returns the loss in nats per token."""
        loss = _gradient(self._flat, batch)
        self._taken += 1
        self._optimizer.step(self._inner.learning_rate_at(self._taken))
        return loss

    def leaf(self) -> bytes:
        """The leaf of the state as it is now, 64 bytes."""
        return state_root(self._flat.parameters()) + self.local_root()

    def local_root(self) -> Hash32:
        """Root of the local state as it is now; its error feedback doesn't change before the end."""
        split, optimizer = self._flat.layout.split, self._optimizer
        return combine_local(
            tensor_roots(split(optimizer.m.numpy())),
            tensor_roots(split(optimizer.v.numpy())),
            self._feedback_roots,
            optimizer.step_count,
        )

    def state(self) -> InnerState:
        """A copy of the state as it is now."""
        split, optimizer = self._flat.layout.split, self._optimizer
        return InnerState(
            params=split(self._flat.theta.numpy().copy()),
            local=LocalState(
                m=split(optimizer.m.numpy().copy()),
                v=split(optimizer.v.numpy().copy()),
                e=self._start.local.e,
                step=optimizer.step_count,
            ),
        )

    def compress(self, params: Parameters | None = None) -> tuple[Payload, LocalState]:
        """What is sent, and the local state that it leaves, if the loop ends here.

        Args:
            params: where the round began, if that is not where this loop did.
        """
        began = self._start.params if params is None else params
        return _compress(
            began, self._flat, self._optimizer, self._start.local, self._model, self._codec
        )


def train_round(  # noqa: PLR0913 - a round has exactly these inputs
    *,
    params: Parameters,
    local: LocalState,
    samples: NDArray[np.int64],
    model: ModelSpec,
    inner: InnerSpec,
    codec: CodecSpec,
    round_: Round,
    initial_root: Hash32,
) -> RoundWork:
    """Trains on `samples` (H, batch, L+1) of a round from `params`, the state with root `initial_root`.

    Raises ValueError for samples of another shape or vocabulary, TrainingDiverged if a number is no longer finite.
    """
    check_samples(samples, model, inner)
    loop = InnerLoop(
        InnerState(params=params, local=local),
        model=model,
        inner=inner,
        codec=codec,
        taken=inner.taken_before(round_),
    )
    local_in_root = loop.local_root()
    trace = [initial_root + local_in_root]
    losses: list[float] = []
    began = perf_counter()
    for step, batch in enumerate(torch.from_numpy(samples.copy()), start=1):
        losses.append(loop.step(batch))
        if step % inner.trace_every == 0 or step == inner.steps:
            trace.append(loop.leaf())
    trained = perf_counter()
    payload, local_out = loop.compress()
    encoded = perf_counter()
    payload_root, local_out_root = payload.root(), local_root(local_out)
    trace.append(payload_root + local_out_root)
    return RoundWork(
        payload=payload,
        payload_root=payload_root,
        local_out=local_out,
        local_in_root=local_in_root,
        local_out_root=local_out_root,
        trace_root=tree_root(leaf_hashes(trace)),
        trace_leaves=tuple(trace),
        mean_loss=sum(losses) / len(losses),
        figures=RoundFigures(
            losses=tuple(losses),
            learning_rate=inner.learning_rate_at(inner.taken_before(round_) + inner.steps),
            compression_error=compression_error(payload, local_out.e),
            train_s=trained - began,
            encode_s=encoded - trained,
        ),
    )


def _gradient(flat: FlatModel, batch: Tensor) -> float:
    """Fills the flat gradient with that of the batch's mean loss and returns the loss."""
    flat.gradient.zero_()
    loss = token_losses(flat.llama, batch).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    value = loss.item()
    if not np.isfinite(value):
        raise TrainingDiverged(f"the training loss is {value}", RESTART)
    return value


def _compress(
    params: Parameters,
    flat: FlatModel,
    optimizer: AdamW,
    local: LocalState,
    model: ModelSpec,
    codec: CodecSpec,
) -> tuple[Payload, LocalState]:
    """A = feedback * e + (theta_start - theta_end); what the payload leaves of it is the new e."""
    layout = flat.layout
    if not (torch.isfinite(optimizer.m).all() and torch.isfinite(optimizer.v).all()):
        raise TrainingDiverged("a moment of AdamW is not finite", RESTART)
    moved = layout.flatten(params) - flat.theta.numpy()
    accumulated = np.float32(float(codec.feedback)) * layout.flatten(local.e) + moved
    payload = encode_flat(accumulated, model, codec)
    accumulated[payload.positions] -= payload.values
    local_out = LocalState(
        m=layout.split(optimizer.m.numpy()),
        v=layout.split(optimizer.v.numpy()),
        e=layout.split(accumulated),
        step=optimizer.step_count,
    )
    return payload, local_out


def check_samples(samples: NDArray[np.int64], model: ModelSpec, inner: InnerSpec) -> None:
    """Raises ValueError unless there is a batch of valid tokens for each inner step."""
    expected = (inner.steps, inner.batch, model.context + 1)
    if samples.shape != expected or samples.dtype != np.int64:
        raise ValueError(f"samples are {samples.dtype}{samples.shape}, expected int64{expected}")
    if inner.trace_every < 1:
        raise ValueError(f"a trace after every {inner.trace_every} steps is no trace")
    if samples.min() < 0 or samples.max() >= model.vocab_size:
        raise ValueError("a token lies outside the vocabulary")
