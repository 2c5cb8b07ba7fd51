"""Sizes, errors and speed of the payload codec, each beside what it is held against, from one run.

Sizes and errors come from pseudo-gradients of a real run: a Llama of 1.4 million parameters on real text. Speed comes from normal
values in square tiles, against torch's own top-k, one pass of reading and one of reading and writing, on one thread, in turns.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import comb, log2
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.ids import Round
from protocol.model_spec import LlamaSpec
from protocol.schedule import CONSTANT
from protocol.spec import CodecSpec, ComputeSpec, InnerSpec
from scripts.bench.figures import Figure, peak_mib, table, write_json
from syntience import corpus
from syntience.documents import Documents, ListedDocuments, open_documents
from training import kernels, transform
from training.aggregate import aggregate
from training.arithmetic import Arithmetic
from training.codec import Payload
from training.dataset import TokenDataset
from training.inner import InnerState, RoundStart, train_round
from training.layout import ChunkLayout, FlatLayout, cut
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import initial_parameters, parameter_count
from training.prepare import prepare_dataset
from training.roots import state_root
from training.threads import pin_threads

CODEC = CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none")
MODEL = LlamaSpec(
    vocab_size=1024,
    hidden_size=160,
    intermediate_size=432,
    layers=4,
    heads=5,
    kv_heads=5,
    context=128,
    rope_theta="10000",
    norm_eps="0.00001",
    tie_embeddings=True,
    init_seed=1,
)
INNER = InnerSpec(
    steps=10,
    batch=8,
    learning_rate="0.003",
    beta1="0.9",
    beta2="0.95",
    epsilon="0.00000001",
    weight_decay="0.1",
    grad_clip="1",
    trace_every=10,
    schedule=CONSTANT,
)
COMPUTE = ComputeSpec(mode="native", dtype="float32", threads=1, micro_batch=8, tolerance="0.05")
STEP = OuterStep(rule="sparseloco", size=1.0)
WORKERS, ROUNDS, WARM = 2, 8, 3


def main() -> None:
    """Measures, prints, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a text, or a folder of texts, to train on")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    pin_threads(1)
    figures = [*_sizes(options.data), *(f for m in (1, 10, 100) for f in _speed(m))]
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


# ---------------------------------------------------------------- sizes and errors


def _sizes(text: Path | None) -> Iterator[Figure]:
    print(
        f"training {parameter_count(MODEL):,} parameters for {ROUNDS} rounds of {WORKERS} workers"
    )
    sent = _pseudo_gradients(text)
    size = sum(len(payload.to_bytes()) for _, payload in sent)
    dense = 4 * parameter_count(MODEL) * len(sent)
    yield Figure(
        name="times smaller than fp32", value=dense / size, goal=215, unit="×", at_least=True
    )
    ours = _relative([(values[p.positions], p.values) for values, p in sent])
    theirs = _relative([_uniform_four_levels(values, p) for values, p in sent])
    print(f"relative error of kept values: {ours:.4f}, uniform four levels {theirs:.4f}")
    yield Figure(
        name="relative error / uniform four levels", value=ours / theirs, goal=0.65, unit=""
    )
    yield Figure(name="index cost / log2 C(n, k)", value=_index_cost(sent), goal=1.03, unit="")


def _pseudo_gradients(text: Path | None) -> list[tuple[NDArray[np.float32], Payload]]:
    """(what was compressed, the payload) of every worker and round after the first few."""
    with tempfile.TemporaryDirectory() as folder:
        prepare_dataset(
            _documents(text),
            Path(folder) / "data",
            vocab_size=MODEL.vocab_size,
            context=MODEL.context,
            heldout_fraction=0.05,
            name="bench",
        )
        dataset = TokenDataset.open(Path(folder) / "data")
        rng = np.random.default_rng(1)
        params, locals_ = initial_parameters(MODEL), [LocalState.zeros(MODEL)] * WORKERS
        sent = []
        for round_ in range(ROUNDS):
            payloads, losses = [], []
            for worker in range(WORKERS):
                chosen = rng.integers(0, dataset.spec.train_samples, INNER.steps * INNER.batch)
                samples = dataset.samples(chosen.tolist())
                done = train_round(
                    RoundStart(
                        round=Round(round_ + 1),
                        state=InnerState(params=params, local=locals_[worker]),
                        root=state_root(params),
                        samples=samples.reshape(INNER.steps, INNER.batch, -1),
                    ),
                    Arithmetic(model=MODEL, inner=INNER, codec=CODEC, compute=COMPUTE),
                )
                locals_[worker] = done.local_out
                payloads.append(done.payload)
                losses.append(done.mean_loss)
                if round_ >= WARM:
                    # What is left of the feedback and what was sent are together what was compressed.
                    flat = done.payload.layout.flat.flatten(done.local_out.e)
                    sent.append((flat + done.payload.dense_flat(), done.payload))
            params = aggregate(params, payloads, STEP)
            print(f"  round {round_ + 1}: loss {sum(losses) / WORKERS:.3f}", flush=True)
    return sent


def _documents(text: Path | None) -> Documents:
    cache = Path.home() / ".cache" / "syntience"
    if text is not None:
        return open_documents(text, cache_dir=cache)
    return ListedDocuments(corpus.NAME, corpus.fetch_default_corpus(cache))


def _relative(pairs: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> float:
    error = sum(float(np.sum((exact - sent).astype(np.float64) ** 2)) for exact, sent in pairs)
    whole = sum(float(np.sum(exact.astype(np.float64) ** 2)) for exact, _ in pairs)
    return float((error / whole) ** 0.5)


def _uniform_four_levels(
    values: NDArray[np.float32], payload: Payload
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The reference's quantiser: four bins over six deviations around each tensor's mean, each sent as its bin's mean."""
    exact = values[payload.positions]
    sent = np.empty_like(exact)
    for first, last in payload.layout.tensor_chunks.values():
        part = slice(*payload.layout.entry_starts[[first, last]].tolist())
        centred = exact[part] - exact[part].mean()
        step = 6.0 * max(float(centred.std()), 1e-30) / 4
        bins = np.clip(np.rint(centred / step) + 2, 0, 3).astype(np.int64)
        for level in range(4):
            if (bins == level).any():
                sent[part][bins == level] = exact[part][bins == level].mean()
    return exact, sent


def _index_cost(sent: list[tuple[NDArray[np.float32], Payload]]) -> float:
    """What the gaps cost: the payload without header, signs and levels would carry only them (and the scales)."""
    layout = sent[0][1].layout
    ideal = sum(
        log2(comb(int(values), int(k)))
        for values, k in zip(layout.sizes, layout.table["k"], strict=True)
    )
    spent = 0.0
    for _, payload in sent:
        ones = np.ones_like(payload.scales)
        bare = replace(
            payload,
            layout=cut(layout.flat, replace(CODEC, bits=1)),
            codes=payload.codes & np.uint8(1),
            scales=ones,
            ratios=np.zeros_like(payload.ratios),
        )
        spent += 8 * len(bare.to_bytes()) - layout.entries
    return spent / (ideal * len(sent))


# ---------------------------------------------------------------- speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two works that took turns: the median time of each in milliseconds, and the median of the ratios turn by turn.

    Time of the processor: what other programs take meanwhile is not counted.
    """

    ours: float
    theirs: float
    ratio: float


def _speed(millions: int) -> Iterator[Figure]:
    layout, values = _random_values(millions)
    tensor = torch.from_numpy(values)
    rows = tensor.view(-1, CODEC.chunk)
    data = _encode(values, layout)
    total, ones = np.zeros_like(values), np.ones(layout.chunks, np.float32)
    name, turns = f"{millions} M values", max(7, 60 // millions)

    encode = _take_turns(
        lambda: _encode(values, layout), lambda: torch.topk(rows.abs(), CODEC.k, dim=1), turns
    )
    # torch's sum reads as fast as anything here does; numpy's is bound by its arithmetic.
    select = _take_turns(lambda: kernels.select(values, layout), tensor.sum, turns)
    against_numpy = _take_turns(lambda: kernels.select(values, layout), values.sum, turns)
    decode = _take_turns(
        lambda: kernels.add(total, layout, kernels.unpack(data, layout), ones, np.float32(0)),
        lambda: np.add(total, np.float32(1.0), out=total),
        turns,
    )
    print(
        f"{name}: read {select.theirs:.2f} ms (numpy {against_numpy.theirs:.2f}), select {select.ours:.2f}"
        f" ({against_numpy.ratio:.2f} of numpy's read); torch.topk {encode.theirs:.1f}, encode {encode.ours:.1f};"
        f" read and write {decode.theirs:.2f}, decode and add {decode.ours:.2f}"
    )
    yield Figure(name=f"encode / torch.topk, {name}", value=encode.ratio, goal=0.5, unit="")
    yield Figure(name=f"select / read, {name}", value=select.ratio, goal=3.5, unit="")
    yield Figure(
        name=f"decode and add / read and write, {name}", value=decode.ratio, goal=4, unit=""
    )
    yield from _cosine_speed(values, layout, name, turns)
    if millions == 100:
        with get_context("spawn").Pool(1) as pool:
            extra = pool.apply(_extra_mib, (millions,))
        yield Figure(name=f"extra memory, {name}", value=extra, goal=2048, unit="MiB")


def _cosine_speed(
    values: NDArray[np.float32], layout: ChunkLayout, name: str, turns: int
) -> Iterator[Figure]:
    """The same with the cosine transform before and behind; nothing was promised of it."""
    rows, cosine = torch.from_numpy(values).view(-1, CODEC.chunk), replace(layout, transform="dct")
    data = _encode(transform.to_coefficients(values, cosine), layout)
    total, ones = np.zeros_like(values), np.ones(layout.chunks, np.float32)

    def topk() -> object:
        return torch.topk(rows.abs(), CODEC.k, dim=1)

    def decode() -> None:
        kernels.add(total, layout, kernels.unpack(data, layout), ones, np.float32(0))
        transform.from_coefficients(total, cosine)

    there = _take_turns(
        lambda: _encode(transform.to_coefficients(values, cosine), layout), topk, turns
    )
    back = _take_turns(decode, topk, turns)
    print(f"{name}, dct: encode {there.ours:.1f} ms, decode, add, transform back {back.ours:.1f}")
    yield Figure(name=f"encode with dct / torch.topk, {name}", value=there.ratio, unit="")
    yield Figure(
        name=f"decode, add, transform back / torch.topk, {name}", value=back.ratio, unit=""
    )


def _encode(values: NDArray[np.float32], layout: ChunkLayout) -> bytes:
    return kernels.pack(layout, kernels.encode(values, layout))


def _take_turns(ours: Callable[[], object], theirs: Callable[[], object], turns: int) -> Pair:
    """One after the other, so that what slows the machine for a while slows both; the first turn only warms up."""
    times = np.array([(_ms(ours), _ms(theirs)) for _ in range(turns + 1)][1:])
    return Pair(
        ours=float(np.median(times[:, 0])),
        theirs=float(np.median(times[:, 1])),
        ratio=float(np.median(times[:, 0] / times[:, 1])),
    )


def _ms(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return (time.thread_time() - start) * 1e3


def _extra_mib(millions: int) -> float:
    """What encoding, decoding and adding take beyond the values themselves and the dense tensor that is added to.

    For a process of its own: a peak never falls again, and this one has trained a model before.
    """
    layout, values = _random_values(millions)
    total = np.ones_like(values)
    before = peak_mib()
    data = _encode(values, layout)
    ones = np.ones(layout.chunks, np.float32)
    kernels.add(total, layout, kernels.unpack(data, layout), ones, np.float32(0))
    return peak_mib() - before


def _random_values(millions: int) -> tuple[ChunkLayout, NDArray[np.float32]]:
    """Normal values in the tiles of a square matrix."""
    edge = 64 * round((millions * 1_000_000) ** 0.5 / 64)
    flat = FlatLayout(shapes={"w": (edge, edge)}, offsets={"w": 0}, size=edge * edge)
    return cut(flat, CODEC), np.random.default_rng(1).standard_normal(flat.size, np.float32)


if __name__ == "__main__":
    main()
