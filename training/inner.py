"""A miner's round: H AdamW steps from theta, then error feedback and compression.

With one thread, the same inputs give the same bits on the same kind of processor.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from protocol import canonical, record
from protocol.ids import Hash32, Round
from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec, InnerSpec
from training import foreign
from training.adamw import AdamW
from training.arithmetic import Arithmetic
from training.codec import Payload, encode_flat
from training.errors import TrainingDiverged
from training.figures import RoundFigures, compression_error
from training.flat_model import FlatModel
from training.gradient import RESTART, fill_gradient
from training.local_state import LocalState
from training.parameters import Parameters
from training.roots import (
    combine_local,
    leaf_hashes,
    local_root,
    state_root,
    tensor_roots,
    tree_root,
)
from training.savepoint import Progress, Savepoints


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
    """Where an inner loop stands between two steps."""

    params: Parameters
    local: LocalState

    def leaf(self) -> bytes:
        """Its leaf in a trace, 64 bytes."""
        return state_root(self.params) + local_root(self.local)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStart:
    """Where a round begins.

    Attributes:
        round: its number.
        root: state root of `state.params`, as it was signed.
        samples: (H, batch, L+1) tokens, in training order.
    """

    round: Round
    state: InnerState
    root: Hash32
    samples: NDArray[np.int64] = field(repr=False)


class Loop(Protocol):
    """What trains a round, step by step; `InnerLoop` says what each part does. `engine`: what computes, if that changes bits."""

    @property
    def engine(self) -> str: ...

    def step(self, batch: Tensor) -> float: ...

    def leaf(self) -> bytes: ...

    def local_root(self) -> Hash32: ...

    def state(self) -> InnerState: ...

    def progress(self, losses: Sequence[float], trace: Sequence[bytes]) -> Progress: ...

    def resume(self, progress: Progress) -> None: ...

    def compress(self) -> tuple[Payload, LocalState]: ...


class Loops(Protocol):
    """Begins a loop, as `InnerLoop` does."""

    def __call__(
        self,
        start: InnerState,
        arithmetic: Arithmetic,
        *,
        taken: int,
        checkpoint_activations: bool = False,
    ) -> Loop: ...


class InnerLoop:
    """The inner loop of one round, step by step: one process, one model in memory.

    `train_round` uses `step`, `leaf`, `local_root`, `progress`, `resume` and `compress`; `state` is for replays.

    Args:
        start: where it begins.
        arithmetic: of the run.
        taken: inner steps of the run before `start`, void rounds' included: the schedule goes by them.
        checkpoint_activations: keeps only each layer's input for the backward pass and computes the rest again: less
            memory for more time, and the same bits.
    """

    engine = "one process"

    def __init__(
        self,
        start: InnerState,
        arithmetic: Arithmetic,
        *,
        taken: int,
        checkpoint_activations: bool = False,
    ) -> None:
        self._start, self._arithmetic, self._taken = start, arithmetic, taken
        self._flat = FlatModel(arithmetic.model, checkpoint_activations=checkpoint_activations)
        self._flat.load(start.params)
        self._optimizer = AdamW(self._flat, arithmetic.inner, start.local)
        self._feedback_roots = tensor_roots(start.local.e)

    def step(self, batch: Tensor) -> float:
        """One step on a batch (batch, L+1) of tokens; returns the loss in nats per token."""
        loss = fill_gradient(self._flat.network, batch, self._arithmetic.compute)
        self._taken += 1
        self._optimizer.step(self._arithmetic.inner.learning_rate_at(self._taken))
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
        now = self._local()
        local = replace(now, m=_copied(now.m), v=_copied(now.v))
        return InnerState(params=_copied(self._flat.parameters()), local=local)

    def progress(self, losses: Sequence[float], trace: Sequence[bytes]) -> Progress:
        """What a savepoint holds, in the loop's own memory: the next step changes it.

        Args:
            losses: of all steps so far.
            trace: its leaves so far.
        """
        return Progress(
            params=self._flat.parameters(),
            local=self._local(),
            losses=tuple(losses),
            trace=tuple(trace),
        )

    def resume(self, progress: Progress) -> None:
        """Goes on, before its first step, from where the same loop was when this was saved."""
        self._flat.load(progress.params)
        self._optimizer = AdamW(self._flat, self._arithmetic.inner, progress.local)
        self._taken += len(progress.losses)

    def compress(self, params: Parameters | None = None) -> tuple[Payload, LocalState]:
        """What is sent, and the local state that it leaves, if the loop ends here.

        Args:
            params: where the round began, if that is not where this loop did.
        """
        began = self._start.params if params is None else params
        model, codec = self._arithmetic.model, self._arithmetic.codec
        return _compress(began, self._flat, self._optimizer, self._start.local, model, codec)

    def _local(self) -> LocalState:
        split, optimizer = self._flat.layout.split, self._optimizer
        return LocalState(
            m=split(optimizer.m.numpy()),
            v=split(optimizer.v.numpy()),
            e=self._start.local.e,
            step=optimizer.step_count,
        )


def train_round(
    start: RoundStart,
    arithmetic: Arithmetic,
    *,
    savepoints: Savepoints | None = None,
    checkpoint_activations: bool = False,
    loops: Loops = InnerLoop,
) -> RoundWork:
    """A whole round.

    Args:
        start: where it begins.
        arithmetic: of the run.
        savepoints: where progress is kept, and where a round that was cut off goes on from.
        checkpoint_activations: see `InnerLoop`.
        loops: what trains.

    Raises:
        ValueError: samples of another shape or vocabulary.
        TrainingDiverged: a number is no longer finite.
    """
    inner = arithmetic.inner
    check_samples(start.samples, arithmetic.model, inner)
    loop = loops(
        start.state,
        arithmetic,
        taken=inner.taken_before(start.round),
        checkpoint_activations=checkpoint_activations,
    )
    local_in_root = loop.local_root()
    inputs = round_inputs(start, arithmetic, local_in_root, engine=loop.engine)
    trace, losses = [start.root + local_in_root], list[float]()
    if savepoints and (
        done := savepoints.latest(inputs, model=arithmetic.model, start=start.state.local)
    ):
        loop.resume(done)
        trace, losses = list(done.trace), list(done.losses)
    resumed, began = len(losses), perf_counter()
    for batch in torch.from_numpy(start.samples[resumed:].copy()):
        losses.append(loop.step(batch))
        if len(losses) % inner.trace_every == 0 or len(losses) == inner.steps:
            trace.append(loop.leaf())
        if savepoints and savepoints.is_due and len(losses) < inner.steps:
            savepoints.save(inputs, loop.progress(losses, trace))
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
            learning_rate=inner.learning_rate_at(inner.taken_before(start.round) + inner.steps),
            compression_error=compression_error(payload, local_out.e),
            # Of a round that was cut off, the rest was timed.
            train_s=(trained - began) * inner.steps / (inner.steps - resumed),
            encode_s=encoded - trained,
        ),
    )


def round_inputs(
    start: RoundStart, arithmetic: Arithmetic, local_in: Hash32, *, engine: str = InnerLoop.engine
) -> Hash32:
    """A digest of everything that the bits of a round follow from on this machine, so that progress serves no other round."""
    document: canonical.Json = [
        start.round,
        start.root.hex(),
        local_in.hex(),
        hashlib.sha256(start.samples.tobytes()).hexdigest(),
        record.to_json(arithmetic),
        torch.__version__,
        foreign.version_for(arithmetic.model),
        torch.backends.cpu.get_cpu_capability(),
        engine,
    ]
    return Hash32(hashlib.sha256(canonical.dumps(document)).digest())


def _copied(params: Parameters) -> Parameters:
    return {name: array.copy() for name, array in params.items()}


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
    payload.subtract_from(accumulated)
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
