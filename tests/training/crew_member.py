"""One process of a crew, for tests: `python -m tests.training.crew_member RANK SIZE [work]`.

Rank 0 trains a round of so many steps as its work says, or waits if there is none, and prints what it does; the others serve.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed import TCPStore

from protocol.errors import OperatorError
from protocol.ids import Round
from tests.specs import MODEL, SPEC
from tests.training.samples import SMALL, round_samples
from training.arithmetic import Arithmetic
from training.crew import Crew, Place
from training.inner import InnerLoop, InnerState, RoundStart, train_round
from training.local_state import LocalState
from training.parameters import initial_parameters
from training.roots import state_root
from training.sharded import ShardedLoop, serve

_PATIENCE_S = 120.0


@contextmanager
def meeting_place() -> Iterator[dict[str, str]]:
    """Where the processes of a new crew find each other: a store of this process, as torchrun keeps one, and what to tell them."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    yield {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",
    }


def place(rank: int, size: int) -> Place:
    return Place(rank=rank, size=size, local_rank=rank, local_size=size)


@contextmanager
def member(
    rank: int, size: int, meeting: Mapping[str, str], *work: str, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of a crew, killed at the end if it is still there."""
    command = [sys.executable, "-m", "tests.training.crew_member", str(rank), str(size), *work]
    with log.open("wb") as out:
        child = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "OMP_NUM_THREADS": "1", **meeting},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextmanager
def led_crew(log: Path) -> Iterator[Crew]:
    """A crew of two, of which this process is rank 0."""
    with (
        pytest.MonkeyPatch.context() as patch,
        meeting_place() as meeting,
        member(1, 2, meeting, log=log) as other,
    ):
        for name, value in meeting.items():
            patch.setenv(name, value)
        with Crew.join(place(0, 2), stalled_s=_PATIENCE_S) as joined:
            yield joined
        assert other.wait(60) == 0, log.read_text()


def until(log: Path, text: str) -> None:
    """Waits until a process has printed this."""
    end = time.monotonic() + _PATIENCE_S
    while text not in log.read_text():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)


class Talking(ShardedLoop):
    """Says how far it is."""

    def step(self, batch: torch.Tensor) -> float:
        loss = super().step(batch)
        print("stepped", flush=True)
        return loss


def round_of(steps: int) -> tuple[RoundStart, Arithmetic]:
    """A round that any process can make for itself; two processes take a micro batch each."""
    params = initial_parameters(MODEL)
    samples = np.concatenate([round_samples(1)] * -(-steps // 2))[:steps]
    state = InnerState(params=params, local=LocalState.zeros(MODEL))
    start = RoundStart(round=Round(1), state=state, root=state_root(params), samples=samples)
    arithmetic = Arithmetic(
        model=MODEL,
        inner=replace(SPEC.inner, steps=steps, trace_every=steps),
        codec=SMALL,
        compute=replace(SPEC.compute, micro_batch=2),
    )
    return start, arithmetic


def _main(rank: int, size: int, steps: int | None) -> None:
    with Crew.join(place(rank, size), stalled_s=_PATIENCE_S) as crew:
        print("joined", flush=True)
        if not crew.leads:
            serve(crew)
        elif steps is None:
            time.sleep(_PATIENCE_S)
        else:
            start, arithmetic = round_of(steps)
            work = train_round(start, arithmetic, loops=partial(Talking, crew=crew))
            alone = train_round(start, arithmetic, loops=InnerLoop)
            print(f"the bits of one process: {work.trace_leaves == alone.trace_leaves}", flush=True)


if __name__ == "__main__":
    try:
        _main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else None)
    except OperatorError as error:
        sys.exit(f"{type(error).__name__}: {error}")
