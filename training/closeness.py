"""How far a claimed state lies from a recomputed one, in parts of what the work changed.

Two kinds of processor round differently, so a native run states how much of that is honest
(`ComputeSpec.tolerance`). The distance is relative to the change and not to the state: one inner
step moves a model by so little that whoever skipped it would be close to the whole.
"""

from __future__ import annotations

import math

import numpy as np

from training.inner import InnerState
from training.local_state import LocalState
from training.parameters import Parameters, l2_norm
from training.replay import Encoded


def step_distance(claimed: InnerState, mine: InnerState, before: InnerState) -> float:
    """The largest relative distance of model and moments after one inner step.

    norm(claimed - mine) / norm(mine - before) in L2 over all tensors, for each of theta, m and v.
    Infinite if the number of steps or the error feedback differ, which no rounding touches.
    """
    if not _same_fixed(claimed.local, mine.local):
        return math.inf
    return max(
        _relative(claimed.params, mine.params, before.params),
        _relative(claimed.local.m, mine.local.m, before.local.m),
        _relative(claimed.local.v, mine.local.v, before.local.v),
    )


def encode_distance(claimed: Encoded, mine: Encoded) -> float:
    """The largest relative distance of what was sent and of the error feedback that it leaves.

    Relative to their own norms: both begin at nothing. Infinite if the moments or the number of steps
    differ, which encoding copies.
    """
    theirs, ours = claimed.local_out, mine.local_out
    if theirs.step != ours.step or not (_equal(theirs.m, ours.m) and _equal(theirs.v, ours.v)):
        return math.inf
    return max(
        _relative(claimed.payload.dense(), mine.payload.dense(), None),
        _relative(theirs.e, ours.e, None),
    )


def _same_fixed(claimed: LocalState, mine: LocalState) -> bool:
    return claimed.step == mine.step and _equal(claimed.e, mine.e)


def _equal(first: Parameters, second: Parameters) -> bool:
    return all(np.array_equal(first[name], second[name]) for name in second)


def _relative(claimed: Parameters, mine: Parameters, before: Parameters | None) -> float:
    error = l2_norm(claimed[name] - mine[name] for name in sorted(mine))
    if error == 0:
        return 0.0
    change = l2_norm(
        mine[name] - before[name] if before is not None else mine[name] for name in sorted(mine)
    )
    return error / change if change else math.inf
