"""A round in two processes beside the same round in one: this process is rank 0, another one serves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.ids import Hash32, Round
from protocol.schedule import ScheduleSpec
from protocol.spec import InnerSpec
from tests.specs import MODEL, SPEC
from tests.training.crew_member import led_crew
from tests.training.samples import SMALL, random_tensors, round_samples, same_bits
from training.arithmetic import Arithmetic
from training.closeness import encode_distance, step_distance
from training.crew import Crew
from training.errors import CrewError, TrainingDiverged
from training.inner import InnerLoop, InnerState, Loop, Loops, RoundStart, round_inputs, train_round
from training.layout import flat_layout
from training.local_state import LocalState
from training.parameters import Parameters, initial_parameters
from training.replay import encode_from, replay, step_from
from training.roots import local_root, state_root
from training.savepoint import Progress, Savepoints
from training.sharded import ShardedLoop

pytestmark = pytest.mark.timeout(300)
STEPS = 8
UNEVEN = replace(MODEL, vocab_size=65, intermediate_size=41)
"""Neither vocabulary nor feed-forward can be halved."""
INNER = replace(
    SPEC.inner,
    steps=STEPS,
    trace_every=3,
    grad_clip="0.5",
    schedule=ScheduleSpec(warmup=2 * STEPS),
)
"""The clip binds, the weights decay, and the rate rises."""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with led_crew(tmp_path_factory.mktemp("crew") / "log") as joined:
        yield joined


@pytest.fixture
def loops(crew: Crew) -> Loops:
    return partial(ShardedLoop, crew=crew)


def arithmetic(inner: InnerSpec = INNER, **compute: object) -> Arithmetic:
    changed = replace(SPEC.compute, **compute)  # type: ignore[arg-type]  # fields of any type, by name
    return Arithmetic(model=UNEVEN, inner=inner, codec=SMALL, compute=changed)


def start(seed: int = 1) -> RoundStart:
    """In the middle of a run: with moments and an error feedback."""
    params = initial_parameters(UNEVEN)
    v = {name: array**2 for name, array in random_tensors(2, 0.01, UNEVEN).items()}
    local = LocalState(
        m=random_tensors(1, 0.01, UNEVEN), v=v, e=random_tensors(3, 0.01, UNEVEN), step=20
    )
    samples = np.concatenate([round_samples(seed + each) for each in range(STEPS // 2)])
    return RoundStart(
        round=Round(2),
        state=InnerState(params=params, local=local),
        root=state_root(params),
        samples=samples,
    )


def trained(loop: Loop, begun: RoundStart, steps: int = STEPS) -> InnerState:
    for batch in torch.from_numpy(begun.samples[:steps]):
        loop.step(batch)
    return loop.state()


def distance(claimed: Parameters, mine: Parameters, before: Parameters | None = None) -> float:
    """In parts of the change, L2 over all tensors."""
    flat = flat_layout(UNEVEN).flatten
    ours = flat(mine).astype(np.float64)
    change = ours - (0 if before is None else flat(before))
    return float(np.linalg.norm(flat(claimed) - ours) / np.linalg.norm(change))


def test_round__two_processes__update_and_moments_of_one_process(loops: Loops) -> None:
    begun, rules = start(), arithmetic()
    alone, together = (
        trained(make(begun.state, rules, taken=STEPS), begun) for make in (InnerLoop, loops)
    )
    assert distance(together.params, alone.params, begun.state.params) < 1e-6
    assert distance(together.local.m, alone.local.m) < 1e-6
    assert distance(together.local.v, alone.local.v) < 1e-6
    assert together.local.step == alone.local.step == 28
    assert together.local.e is begun.state.local.e


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_round__a_micro_batch_each__has_the_bits_of_one_process(loops: Loops, dtype: str) -> None:
    rules = arithmetic(micro_batch=2, dtype=dtype)
    alone, together = train_round(start(), rules), train_round(start(), rules, loops=loops)
    assert together.trace_leaves == alone.trace_leaves
    assert together.payload == alone.payload
    assert together.mean_loss == pytest.approx(alone.mean_loss, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_round__whole_batches_in_one_pass__is_honest_to_a_committee(
    loops: Loops, dtype: str
) -> None:
    """Each step within the spec's tolerance of what one process makes of the state before it, and the encode too."""
    begun, rules = start(), arithmetic(dtype=dtype)
    claimed = replay(begun, rules, keep=range(STEPS + 1), loops=loops)
    assert claimed.leaves != replay(begun, rules).leaves, "other sums, other bits"
    tolerance = float(SPEC.compute.tolerance)
    found = []
    for step, batch in enumerate(begun.samples):
        before = claimed.states[step]
        mine = step_from(before, batch, rules, taken=STEPS + step)
        found.append(step_distance(claimed.states[step + 1], mine, before))
    assert max(found) < tolerance
    mine = encode_from(claimed.states[STEPS], begun.state.params, rules)
    assert encode_distance(claimed.encoded, mine) == 0


def test_round__again__gives_the_same_bits_with_activations_checkpointed_too(loops: Loops) -> None:
    rules = arithmetic()
    first = train_round(start(), rules, loops=loops)
    again = train_round(start(), rules, loops=loops, checkpoint_activations=True)
    assert again.trace_leaves == first.trace_leaves


def test_round__while_another_is_done_again__neither_disturbs_the_other(loops: Loops) -> None:
    rules, begun, old = arithmetic(), start(), start(seed=50)
    apart = [trained(loops(each.state, rules, taken=0), each) for each in (begun, old)]
    one, two = (loops(each.state, rules, taken=0) for each in (begun, old))
    for first, second in zip(
        torch.from_numpy(begun.samples), torch.from_numpy(old.samples), strict=True
    ):
        one.step(first)
        two.step(second)
    for loop, alone in zip((one, two), apart, strict=True):
        assert same_bits(loop.state().params, alone.params)
        assert same_bits(loop.state().local.v, alone.local.v)
        loop.compress()


class Crash(Exception):
    """Where a process would be gone."""


class Dying(Savepoints):
    """Lives for one savepoint."""

    def save(self, inputs: Hash32, progress: Progress) -> None:
        if len(progress.losses) == 4:
            raise Crash
        super().save(inputs, progress)


def test_round__cut_off__goes_on_to_the_same_bits(loops: Loops, tmp_path: Path) -> None:
    rules = arithmetic()
    with pytest.raises(Crash):
        train_round(start(), rules, savepoints=Dying(tmp_path, every_s=0), loops=loops)
    resumed = train_round(start(), rules, savepoints=Savepoints(tmp_path, every_s=1e9), loops=loops)
    undisturbed = train_round(start(), rules, loops=loops)
    assert resumed.trace_leaves == undisturbed.trace_leaves
    assert resumed.mean_loss == undisturbed.mean_loss


def test_round_inputs__other_number_of_processes__serve_no_other(crew: Crew) -> None:
    begun, local = start(), local_root(start().state.local)
    assert crew.engine == "2 x cpu"
    assert round_inputs(begun, arithmetic(), local, engine=crew.engine) != round_inputs(
        begun, arithmetic(), local
    )


def test_round__diverged__is_said_and_the_crew_goes_on(loops: Loops) -> None:
    params = {name: array * np.float32(np.nan) for name, array in start().state.params.items()}
    broken = replace(start(), state=replace(start().state, params=params))
    with pytest.raises(TrainingDiverged, match="loss is nan"):
        train_round(broken, arithmetic(), loops=loops)
    assert train_round(start(), arithmetic(), loops=loops).mean_loss > 0


def test_loop__batch_that_the_processes_do_not_divide__raises_crew_error(loops: Loops) -> None:
    rules = arithmetic(replace(INNER, batch=3), micro_batch=1)
    with pytest.raises(CrewError, match=r"2 processes can't share a batch of 3 .* divides 3"):
        loops(start().state, rules, taken=0)
