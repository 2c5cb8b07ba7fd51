"""A miner's round once more, step by step, for whoever disputes it, defends it or judges it.

An honest trace shows the state after every n-th inner step; a dispute asks for those in between, and
for the tensors on both sides of one step. The bits are those of `training.inner.train_round`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.ids import Hash32
from training.arithmetic import Arithmetic
from training.codec import Payload
from training.inner import InnerLoop, InnerState, Loops, RoundStart, check_samples
from training.local_state import LocalState
from training.parameters import Parameters
from training.roots import leaf_hashes, local_root, tree_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What a round ends in: what is sent, and what the miner carries on."""

    payload: Payload
    local_out: LocalState

    def leaf(self) -> bytes:
        """The last leaf of a trace, 64 bytes."""
        return self.payload.root() + local_root(self.local_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A round once more.

    Attributes:
        leaves: by number of inner steps taken, 64 bytes each; the first is the start's.
        states: those that were asked for, likewise.
    """

    leaves: tuple[bytes, ...]
    states: Mapping[int, InnerState]
    encoded: Encoded

    def trace_root(self, *, trace_every: int) -> Hash32:
        """What an honest submission names as its trace."""
        shown = trace_of(self.leaves, self.encoded.leaf(), trace_every=trace_every)
        return tree_root(leaf_hashes(shown))


def replay(
    start: RoundStart,
    arithmetic: Arithmetic,
    *,
    keep: Collection[int] = (),
    loops: Loops = InnerLoop,
) -> Replay:
    """A whole round.

    Args:
        start: where it begins.
        arithmetic: of the run.
        keep: the numbers of inner steps after which the state is wanted; 0 is the start.
        loops: what computes.

    Raises:
        TrainingDiverged: a number is no longer finite.
    """
    check_samples(start.samples, arithmetic.model, arithmetic.inner)
    loop = loops(start.state, arithmetic, taken=arithmetic.inner.taken_before(start.round))
    leaves = [start.root + loop.local_root()]
    states = {0: start.state} if 0 in keep else {}
    for step, batch in enumerate(torch.from_numpy(start.samples.copy()), start=1):
        loop.step(batch)
        leaves.append(loop.leaf())
        if step in keep:
            states[step] = loop.state()
    payload, local_out = loop.compress()
    encoded = Encoded(payload=payload, local_out=local_out)
    return Replay(leaves=tuple(leaves), states=states, encoded=encoded)


def step_from(
    before: InnerState, batch: NDArray[np.int64], arithmetic: Arithmetic, *, taken: int
) -> InnerState:
    """The state one inner step later, on a batch (batch, L+1) of tokens.

    `taken`: inner steps of the run before it, as the learning rate's schedule counts them.
    """
    loop = InnerLoop(before, arithmetic, taken=taken)
    loop.step(torch.from_numpy(batch.copy()))
    return loop.state()


def encode_from(final: InnerState, params: Parameters, arithmetic: Arithmetic) -> Encoded:
    """What a round ends in.

    Args:
        final: the state after its last inner step.
        params: the model with which it began.
        arithmetic: of the run.
    """
    # No step is taken, so it doesn't matter how many were.
    payload, local_out = InnerLoop(final, arithmetic, taken=0).compress(params)
    return Encoded(payload=payload, local_out=local_out)


def trace_of(leaves: tuple[bytes, ...], last: bytes, *, trace_every: int) -> tuple[bytes, ...]:
    """The leaves that a trace shows: the start, every n-th step and the last one, the encode.

    Args:
        leaves: by number of inner steps taken.
        last: the encode's.
        trace_every: n.
    """
    steps = len(leaves) - 1
    shown = [step for step in range(1, steps + 1) if step % trace_every == 0 or step == steps]
    return (leaves[0], *(leaves[step] for step in shown), last)
