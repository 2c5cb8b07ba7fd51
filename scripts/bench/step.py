"""Tokens a second of `InnerLoop.step`, beside the bare model with torch's AdamW and nothing around it.

Same model, batch, thread and clipping. Both take turns on one machine, and what counts is processor time, so that its
other load plays little part; the figure is the median of the pairs' ratios. The bare loop is that with the fastest of torch's
three AdamWs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from aiohttp import ClientSession
from numpy.typing import NDArray

from protocol.ids import ZERO32, Round
from protocol.model_spec import LlamaSpec
from protocol.spec import CodecSpec, ComputeSpec
from scripts.bench.figures import Figure, table, write_json
from syntience.devnet.presets import DEFAULT_MODEL, preset_named
from training.arithmetic import Arithmetic
from training.inner import InnerLoop, InnerState, RoundStart, train_round
from training.local_state import LocalState
from training.model import Llama
from training.parameters import initial_parameters, parameter_count
from training.roots import state_root
from training.savepoint import Savepoints
from training.threads import pin_threads
from transport.board import RecordBoard
from transport.limits import ServerLimits
from transport.server import NodeServer
from transport.store import FolderStore

SMALL = DEFAULT_MODEL
LARGE = replace(
    SMALL, vocab_size=2048, hidden_size=288, intermediate_size=768, layers=6, heads=6, kv_heads=6
)
INNER = preset_named("default").inner
CODEC = CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none")
COMPUTE = ComputeSpec(
    mode="native", dtype="float32", threads=1, micro_batch=INNER.batch, tolerance="0.05"
)
BARE = {
    "for-loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
WARM = 3
"""Steps of each kind before the first that counts."""
GOAL = 0.95


def main() -> None:
    """Measures, prints, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    pin_threads(COMPUTE.threads)
    figures = []
    for model, pairs in ((SMALL, 40), (LARGE, 12)):
        figures += [*_speed(model, pairs), *_around(model)]
    figures += asyncio.run(_answers(SMALL))
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


# ---------------------------------------------------------------- the step


def _speed(model: LlamaSpec, pairs: int) -> Iterator[Figure]:
    name = _name(model)
    batch = torch.from_numpy(_tokens(model)[0])
    kinds = {kind: partial(_bare_loop(model, **choice), batch) for kind, choice in BARE.items()}
    times = _take_turns({**kinds, "ours": partial(_loop(model).step, batch)}, pairs)
    tokens = INNER.batch * model.context
    speeds = {kind: tokens / statistics.median(taken) for kind, taken in times.items()}
    print(
        f"{name}: " + ", ".join(f"{kind} {speed:,.0f} tokens/s" for kind, speed in speeds.items())
    )
    best = max(BARE, key=lambda kind: speeds[kind])
    ratios = [bare / ours for bare, ours in zip(times[best], times["ours"], strict=True)]
    yield Figure(name=f"tokens/s, {name}", value=speeds["ours"], unit="tokens/s")
    yield Figure(
        name=f"step / bare with {best} AdamW, {name}",
        value=statistics.median(ratios),
        goal=GOAL,
        unit="",
        at_least=True,
    )


def _loop(model: LlamaSpec) -> InnerLoop:
    state = InnerState(params=initial_parameters(model), local=LocalState.zeros(model))
    return InnerLoop(state, _arithmetic(model), taken=0)


def _bare_loop(model: LlamaSpec, **choice: bool) -> Callable[[torch.Tensor], float]:
    """What one would write with torch alone: model, cross entropy, clipping, AdamW."""
    llama, start = Llama(model), initial_parameters(model)
    for name, parameter in llama.named_parameters():
        parameter.data = torch.from_numpy(start[name].copy())
    parameters = list(llama.parameters())
    matrices: dict[str, Any] = {"params": [p for p in parameters if p.ndim > 1]}
    vectors: dict[str, Any] = {
        "params": [p for p in parameters if p.ndim == 1],
        "weight_decay": 0.0,
    }
    optimizer = torch.optim.AdamW(
        [matrices, vectors],
        lr=float(INNER.learning_rate),
        betas=(float(INNER.beta1), float(INNER.beta2)),
        eps=float(INNER.epsilon),
        weight_decay=float(INNER.weight_decay),
        **choice,
    )

    def step(batch: torch.Tensor) -> float:
        optimizer.zero_grad(set_to_none=True)
        logits = llama(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, float(INNER.grad_clip))
        optimizer.step()
        return loss.item()

    return step


def _take_turns(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each call, in rounds; who goes first changes with each."""
    kinds = list(work)
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(-WARM, rounds):
        shift = number % len(kinds)
        for kind in kinds[shift:] + kinds[:shift]:
            taken = _seconds(work[kind], clock=time.process_time)
            if number >= 0:
                times[kind].append(taken)
    return times


# ---------------------------------------------------------------- the rest of a round


def _around(model: LlamaSpec) -> Iterator[Figure]:
    """What a round adds to its steps: trace leaves, the encode, savepoints; in parts of a step, and of a round's steps."""
    name, loop = _name(model), _loop(model)
    batch = torch.from_numpy(_tokens(model)[0])
    step, leaf, encode = (
        min(_seconds(work, clock=time.process_time) for _ in range(WARM + 3))
        for work in (partial(loop.step, batch), loop.leaf, partial(_encode, loop))
    )
    with tempfile.TemporaryDirectory() as folder:
        saved, progress = Savepoints(Path(folder), every_s=0), loop.progress([0.0], [bytes(64)])
        save = min(_seconds(partial(saved.save, ZERO32, progress)) for _ in range(3))
    print(
        f"{name}: step {step * 1e3:.0f} ms, trace leaf {leaf * 1e3:.0f}, encode {encode * 1e3:.0f}, savepoint {save * 1e3:.0f}"
    )
    leaves = -(-INNER.steps // INNER.trace_every)
    yield Figure(
        name=f"trace, share of the steps' time, {name}",
        value=100 * leaves * leaf / (INNER.steps * step),
        unit="%",
    )
    yield Figure(name=f"encode, {name}", value=encode * 1e3, unit="ms")
    yield Figure(name=f"savepoint, {name}", value=save * 1e3, unit="ms")


def _encode(loop: InnerLoop) -> bytes:
    payload, _ = loop.compress()
    return payload.to_bytes()


async def _answers(model: LlamaSpec) -> list[Figure]:
    """How long a miner's server takes to answer while the same process trains and encodes."""
    with tempfile.TemporaryDirectory() as folder:
        store = FolderStore(Path(folder) / "blobs", 1 << 30)
        digest = store.put(b"a payload" * 1000).digest
        server = NodeServer(store, RecordBoard(Path(folder) / "board"), ServerLimits())
        await server.start("127.0.0.1", 0)
        stop = threading.Event()
        training = asyncio.create_task(asyncio.to_thread(_train_until, stop, model))
        url = f"http://127.0.0.1:{server.port}/v1/blobs/{digest.hex()}"
        waits = []
        async with ClientSession() as client:
            for _ in range(100):
                begun = time.perf_counter()
                async with client.get(url) as answer:
                    answer.raise_for_status()
                    await answer.read()
                waits.append(time.perf_counter() - begun)
                await asyncio.sleep(0.05)
        stop.set()
        rounds = await training
        await server.stop()
    print(f"answered {len(waits)} requests while {rounds} rounds were trained and encoded")
    waits.sort()
    return [
        Figure(name="answer while training, median", value=waits[50] * 1e3, unit="ms"),
        Figure(name="answer while training, slowest", value=waits[-1] * 1e3, unit="ms"),
    ]


def _train_until(stop: threading.Event, model: LlamaSpec) -> int:
    rounds = 0
    params = initial_parameters(model)
    start = RoundStart(
        round=Round(1),
        state=InnerState(params=params, local=LocalState.zeros(model)),
        root=state_root(params),
        samples=_tokens(model),
    )
    while not stop.is_set():
        train_round(start, _arithmetic(model)).payload.to_bytes()
        rounds += 1
    return rounds


def _arithmetic(model: LlamaSpec) -> Arithmetic:
    return Arithmetic(model=model, inner=INNER, codec=CODEC, compute=COMPUTE)


def _tokens(model: LlamaSpec) -> NDArray[np.int64]:
    """(H, batch, L+1) tokens of any kind: speed doesn't depend on them."""
    shape = (INNER.steps, INNER.batch, model.context + 1)
    return np.random.default_rng(1).integers(0, model.vocab_size, shape)


def _name(model: LlamaSpec) -> str:
    return f"{parameter_count(model) / 1e6:.1f} M parameters"


def _seconds(
    work: Callable[[], object], *, clock: Callable[[], float] = time.perf_counter
) -> float:
    begun = clock()
    work()
    return clock() - begun


if __name__ == "__main__":
    main()
