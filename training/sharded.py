"""The inner loop of one round over several devices: each process holds a part of the model and takes a part of every batch.

The arithmetic is the run's, as in `training.inner`; only the order of sums differs: each process adds up its own samples'
gradients, then the processes theirs. Two processes on one processor, whose parts are a micro batch each, even give the same bits.

Rank 0 has a `ShardedLoop`, which stands in for `InnerLoop`; the others `serve` it. Several loops may take turns, step by step,
so that a game about an old round need not wait for the end of the present one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from torch import Tensor

from protocol import record
from protocol.canonical import Json
from protocol.ids import Hash32
from training.arithmetic import Arithmetic
from training.codec import Payload
from training.crew import Crew, Heard, Order
from training.errors import TrainingDiverged
from training.inner import InnerState
from training.local_state import LocalState
from training.parameters import Parameters
from training.replay import encode_from
from training.roots import combine_local, state_root, tensor_roots
from training.savepoint import Progress
from training.shards import Shards

_ARITHMETIC, _CHECKPOINTS, _COUNT, _TAKEN = "arithmetic", "checkpoint_activations", "count", "taken"


class ShardedLoop:
    """Rank 0's inner loop of one round, with the interface of `InnerLoop`. It is over with `compress`.

    Args:
        start: where it begins.
        arithmetic: of the run.
        taken: inner steps of the run before `start`.
        crew: with whom.
        checkpoint_activations: see `InnerLoop`.

    Raises, as everything here: CrewError, if the processes can't share a batch or one of them fails.
    """

    def __init__(
        self,
        start: InnerState,
        arithmetic: Arithmetic,
        *,
        taken: int,
        crew: Crew,
        checkpoint_activations: bool = False,
    ) -> None:
        crew.share_of(arithmetic.inner.batch)
        self._start, self._arithmetic, self._taken = start, arithmetic, taken
        self._crew, self._loop = crew, crew.new_loop()
        self._feedback_roots = tensor_roots(start.local.e)
        details: dict[str, Json] = {
            _ARITHMETIC: record.to_json(arithmetic),
            _CHECKPOINTS: checkpoint_activations,
        }
        with crew.order(Order.BEGIN, self._loop, details):
            self._shards = Shards(arithmetic, crew, checkpoint_activations=checkpoint_activations)
        self._load(start.params, start.local, taken)

    @property
    def engine(self) -> str:
        """What computes, as far as the bits depend on it."""
        return self._crew.engine

    def step(self, batch: Tensor) -> float:
        """One step on a batch (batch, L+1) of tokens; returns the loss in nats per token."""
        with self._crew.order(Order.STEP, self._loop):
            return self._shards.step(batch)

    def leaf(self) -> bytes:
        """The leaf of the state as it is now, 64 bytes."""
        now = self.state()
        return state_root(now.params) + self._local_root(now.local)

    def local_root(self) -> Hash32:
        """Root of the local state as it is now."""
        return self._local_root(self.state().local)

    def state(self) -> InnerState:
        """A copy of the state as it is now."""
        with self._crew.order(Order.GATHER, self._loop):
            params, m, v = self._shards.gather()
        local = replace(self._start.local, m=m, v=v, step=self._shards.count)
        return InnerState(params=params, local=local)

    def progress(self, losses: Sequence[float], trace: Sequence[bytes]) -> Progress:
        """What a savepoint holds; see `InnerLoop.progress`."""
        now = self.state()
        return Progress(
            params=now.params, local=now.local, losses=tuple(losses), trace=tuple(trace)
        )

    def resume(self, progress: Progress) -> None:
        """Goes on, before its first step, from where the same loop was when this was saved."""
        self._load(progress.params, progress.local, self._taken + len(progress.losses))

    def compress(self, params: Parameters | None = None) -> tuple[Payload, LocalState]:
        """What is sent, and the local state that it leaves. The loop ends here.

        Args:
            params: where the round began, if that is not where this loop did.
        """
        final = self.state()
        with self._crew.order(Order.DROP, self._loop):
            del self._shards
        began = self._start.params if params is None else params
        encoded = encode_from(final, began, self._arithmetic)
        return encoded.payload, encoded.local_out

    def _load(self, params: Parameters, local: LocalState, taken: int) -> None:
        with self._crew.order(Order.LOAD, self._loop, {_COUNT: local.step, _TAKEN: taken}):
            self._shards.load(params, local.m, local.v, count=local.step, taken=taken)

    def _local_root(self, local: LocalState) -> Hash32:
        m, v = tensor_roots(local.m), tensor_roots(local.v)
        return combine_local(m, v, self._feedback_roots, local.step)


def serve(crew: Crew) -> None:
    """Does what rank 0 orders until it dismisses this process.

    Raises:
        CrewError: rank 0 or another process failed or is gone.
    """
    loops: dict[int, Shards] = {}
    with crew.obeying():
        while (heard := crew.hear()).order is not Order.DISMISS:
            _obey(heard, crew, loops)


def _obey(heard: Heard, crew: Crew, loops: dict[int, Shards]) -> None:
    details = heard.details
    match heard.order:
        case Order.BEGIN:
            arithmetic = record.from_json(Arithmetic, details[_ARITHMETIC])
            loops[heard.loop] = Shards(
                arithmetic, crew, checkpoint_activations=bool(details[_CHECKPOINTS])
            )
        case Order.LOAD:
            count, taken = (_number(details, name) for name in (_COUNT, _TAKEN))
            loops[heard.loop].load(None, None, None, count=count, taken=taken)
        case Order.STEP:
            with suppress(TrainingDiverged):  # rank 0 raises it too, and decides
                loops[heard.loop].step(None)
        case Order.GATHER:
            loops[heard.loop].gather()
        case Order.DROP:
            del loops[heard.loop]


def _number(details: Mapping[str, Json], name: str) -> int:
    value = details[name]
    assert isinstance(value, int)
    return value
