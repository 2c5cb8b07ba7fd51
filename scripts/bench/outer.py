"""One round of a training trial under each outer rule, made of the same parts that miners and nodes use.

A trial's state is a value: a round takes one and gives the next, so that a trial can stop and go on between any two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.ids import Hash32, Round
from protocol.model_spec import LlamaSpec
from protocol.schedule import ScheduleSpec
from protocol.spec import CodecSpec, ComputeSpec, InnerSpec
from training.aggregate import aggregate
from training.arithmetic import Arithmetic
from training.dataset import TokenDataset
from training.inner import InnerLoop, InnerState
from training.layout import flat_layout
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import Parameters, initial_parameters, zeros

RULES = ("payloads", "dense", "synchronous")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Everything that decides the bits of a training run.

    Attributes:
        setting: its name in the table.
        rule: ``payloads`` is SparseLoCo (arXiv 2508.15706) as a run aggregates it; ``dense`` DiLoCo (2311.08105): the mean of the
            exact pseudo-gradients, applied by SGD with Nesterov momentum; ``synchronous`` one AdamW on all workers' batches.
        seed: of the initial model and the order of the samples.
        codec: of the rule ``payloads``; its feedback 0 is none.
        alpha: outer learning rate; its schedule goes by round. The rule ``synchronous`` has none.
        momentum: of the rule ``dense``.
    """

    setting: str
    rule: str
    seed: int
    rounds: int
    workers: int
    model: LlamaSpec
    inner: InnerSpec
    codec: CodecSpec
    compute: ComputeSpec
    alpha: str
    alpha_schedule: ScheduleSpec
    momentum: str
    data: Hash32

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"there is no outer rule {self.rule!r}")

    @property
    def samples_per_step(self) -> int:
        """Of all workers together."""
        return self.workers * self.inner.batch

    @property
    def tokens_per_step(self) -> int:
        """Predicted tokens of an inner step, all workers together."""
        return self.samples_per_step * self.model.context


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a trial stands after `round` rounds.

    Attributes:
        velocity: of the outer momentum; zeros where a rule has none.
        locals: AdamW's moments and the error feedback of each worker; one in all under the rule ``synchronous``.
    """

    round: int
    params: Parameters
    velocity: Parameters
    locals: tuple[LocalState, ...]


def begin(trial: Trial) -> Progress:
    """The state before the first round."""
    model = replace(trial.model, init_seed=trial.seed)
    workers = 1 if trial.rule == "synchronous" else trial.workers
    return Progress(
        round=0,
        params=initial_parameters(model),
        velocity=zeros(model),
        locals=(LocalState.zeros(model),) * workers,
    )


def advance(trial: Trial, before: Progress, dataset: TokenDataset) -> Progress:
    """The state one round later."""
    batches = deal(trial, before.round, dataset)
    if trial.rule == "payloads":
        return _payloads(trial, before, batches)
    if trial.rule == "dense":
        return _dense(trial, before, batches)
    return _synchronous(trial, before, batches)


def deal(trial: Trial, round_: int, dataset: TokenDataset) -> NDArray[np.int64]:
    """(H, workers, batch, L+1) the tokens of the round after `round_` rounds.

    Dealt step by step from a shuffle of the training split, and from a new one when that is used up: no two workers get the same
    sample meanwhile, and all trials with one seed see the same tokens in the same steps, whatever H is.
    """
    per_step, steps = trial.samples_per_step, trial.inner.steps
    per_shuffle = dataset.train_samples // per_step
    chosen: list[int] = []
    for step in range(round_ * steps, (round_ + 1) * steps):
        shuffle, place = divmod(step, per_shuffle)
        order = _shuffled(trial.seed, shuffle, dataset.train_samples)
        chosen += order[place * per_step : (place + 1) * per_step].tolist()
    return dataset.samples(chosen).reshape(steps, trial.workers, trial.inner.batch, -1)


@lru_cache(maxsize=2)
def _shuffled(seed: int, shuffle: int, size: int) -> NDArray[np.int64]:
    return np.random.default_rng((seed, shuffle)).permutation(size)


def _payloads(trial: Trial, before: Progress, batches: NDArray[np.int64]) -> Progress:
    """Each worker sends what its codec leaves, and the run's own aggregate applies it."""
    loops = [_trained(trial, before, worker, batches[:, worker]) for worker in range(trial.workers)]
    sent = [loop.compress() for loop in loops]
    step = OuterStep(rule="sparseloco", size=_alpha(trial, before))
    return replace(
        before,
        round=before.round + 1,
        params=aggregate(before.params, [payload for payload, _ in sent], step),
        locals=tuple(local for _, local in sent),
    )


def _dense(trial: Trial, before: Progress, batches: NDArray[np.int64]) -> Progress:
    """g = mean(theta_start - theta_end); v <- mu v + g; theta <- theta - alpha (g + mu v)."""
    ends = [
        _trained(trial, before, worker, batches[:, worker]).state()
        for worker in range(trial.workers)
    ]
    flat = flat_layout(trial.model)
    start, velocity = flat.flatten(before.params), flat.flatten(before.velocity)
    moved = [start - flat.flatten(end.params) for end in ends]
    gradient: NDArray[np.float32] = np.stack(moved).mean(axis=0, dtype=np.float32)
    momentum = np.float32(float(trial.momentum))
    velocity = momentum * velocity + gradient
    step: NDArray[np.float32] = gradient + momentum * velocity
    return replace(
        before,
        round=before.round + 1,
        params=flat.split((start - np.float32(_alpha(trial, before)) * step).astype(np.float32)),
        velocity=flat.split(velocity),
        locals=tuple(end.local for end in ends),
    )


def _synchronous(trial: Trial, before: Progress, batches: NDArray[np.int64]) -> Progress:
    """The mean of the workers' gradients is the gradient of their batches put together."""
    joined = batches.reshape(len(batches), trial.samples_per_step, -1)
    end = _trained(trial, before, 0, joined).state()
    return replace(before, round=before.round + 1, params=end.params, locals=(end.local,))


def _trained(trial: Trial, before: Progress, worker: int, batches: NDArray[np.int64]) -> InnerLoop:
    """A worker's inner loop after its steps on `batches` (H, batch, L+1)."""
    loop = InnerLoop(
        InnerState(params=before.params, local=before.locals[worker]),
        Arithmetic(
            model=trial.model,
            inner=replace(trial.inner, batch=batches.shape[1]),
            codec=trial.codec,
            compute=trial.compute,
        ),
        taken=trial.inner.taken_before(Round(before.round + 1)),
    )
    for batch in torch.from_numpy(batches):
        loop.step(batch)
    return loop


def _alpha(trial: Trial, before: Progress) -> float:
    return trial.alpha_schedule.apply(trial.alpha, before.round + 1)
