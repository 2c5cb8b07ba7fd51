"""What scoring a peer costs beside its bare forward passes, at the default model and at one of 7 million parameters, in one run.

Bare passes are the losses alone, of a model that lies there already, over samples that were read before. Scoring is the validator's
own exam: it reads the samples, applies the peer's scaled update, and puts the model back. The plain way applies the update to a
copy of the whole model for each loss. All three take turns; processor time counts, the least of some rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from protocol.ids import Address, Hash32, Round, to_address
from protocol.model_spec import LlamaSpec
from protocol.spec import RunSpec
from scripts.bench.figures import Figure, table, write_json
from syntience.devnet.presets import CODEC, Crowd, build_spec, preset_named
from training.aggregate import apply_update, median_norms, scale_of
from training.codec import Payload, encode_flat
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.layout import flat_layout
from training.outer import OuterStep
from training.parameters import initial_parameters, parameter_count
from training.prepare import prepare_dataset
from training.roots import state_root
from training.threads import pin_threads
from validator.evaluation import Exam, Examiner


def _llama(preset: str) -> LlamaSpec:
    model = preset_named(preset).model
    assert isinstance(model, LlamaSpec)
    return model


LARGE = replace(
    _llama("small"), hidden_size=256, intermediate_size=688, layers=8, heads=8, kv_heads=8
)
GOAL = 1.10
PEERS, ROUNDS = 4, 3
RANDOM, OWN = 64, 80
"""Samples of a devnet's shared draw and of a miner's round."""
_WORDS = [
    "the",
    "loss",
    "before",
    "it",
    "less",
    "the",
    "loss",
    "after",
    "it",
    "is",
    "what",
    "an",
    "update",
    "is",
    "worth",
    "on",
    "data",
    "that",
    "nobody",
    "knew",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """An exam and what it takes."""

    spec: RunSpec
    dataset: TokenDataset
    exam: Exam

    @property
    def step(self) -> OuterStep:
        """Of beta."""
        fraction = float(self.spec.scoring.beta_fraction)
        return OuterStep.of(self.spec.outer, self.exam.round, fraction=fraction)

    @property
    def own(self) -> Mapping[Address, NDArray[np.int64]]:
        """Each peer's own batch."""
        return {miner: self.dataset.samples(self.exam.own[miner]) for miner in self.exam.peers}


def main() -> None:
    """Measures, prints, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    pin_threads(1)
    figures = [
        *_measured("default", _llama("default"), parts=1),
        *_measured("7 M", LARGE, parts=4),
    ]
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _measured(name: str, model: LlamaSpec, *, parts: int) -> Iterator[Figure]:
    with _desk(model, parts) as desk:
        examiner, evaluator = Examiner(desk.spec, desk.dataset), Evaluator(model)
        bare = scoring = plain = float("inf")
        for _ in range(ROUNDS):
            bare = min(bare, _bare(desk, evaluator))
            scoring = min(scoring, _spent(lambda: examiner.examine(desk.exam)))
            plain = min(plain, _spent(lambda: _plainly(desk, evaluator)))
    print(
        f"{name}, {parameter_count(model):,} parameters: per peer {bare / PEERS:.3f} s of bare passes,"
        f" {scoring / PEERS:.3f} s scored, {plain / PEERS:.3f} s with whole copies"
    )
    yield Figure(name=f"scoring / bare passes, {name}", value=scoring / bare, goal=GOAL, unit="×")
    yield Figure(name=f"whole copies / bare passes, {name}", value=plain / bare, unit="×")


def _bare(desk: Desk, evaluator: Evaluator) -> float:
    """Seconds of the passes that an exam can't do without: D_rand once, and each peer's three."""
    evaluator.load(desk.exam.params)
    random, own = desk.dataset.samples(desk.exam.random), desk.own

    def passes() -> None:
        evaluator.measure(random)
        for miner in desk.exam.peers:
            evaluator.measure(own[miner])
            evaluator.measure(random)
            evaluator.measure(own[miner])

    return _spent(passes)


def _plainly(desk: Desk, evaluator: Evaluator) -> None:
    """The same losses by their definition."""
    exam, params = desk.exam, desk.exam.params
    random, own = desk.dataset.samples(exam.random), desk.own
    medians = median_norms([exam.payloads[miner] for miner in exam.selected])
    evaluator.loss(params, random)
    for miner in exam.peers:
        payload = exam.payloads[miner]
        scales = scale_of(payload, medians)
        evaluator.loss(params, own[miner])
        for samples in (random, own[miner]):
            evaluator.loss(apply_update(params, payload, scales, desk.step), samples)


def _spent(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


@contextmanager
def _desk(model: LlamaSpec, parts: int) -> Iterator[Desk]:
    """An exam of random updates on random words; `parts` divides the number of samples."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="syntience-bench-") as folder:
        prepare_dataset(
            [" ".join(rng.choice(_WORDS, 4_000)) for _ in range(20)],
            Path(folder) / "data",
            vocab_size=300,
            context=model.context,
            heldout_fraction=0.1,
            name="bench",
        )
        dataset = TokenDataset.open(Path(folder) / "data")
        params = initial_parameters(model)
        miners = [to_address((number + 1).to_bytes(20, "big")) for number in range(PEERS)]
        pool = dataset.spec.train_samples
        yield Desk(
            spec=_spec(model, dataset, state_root(params)),
            dataset=dataset,
            exam=Exam(
                round=Round(1),
                params=params,
                payloads={miner: _update(model, rng) for miner in miners},
                selected=miners,
                peers=miners,
                random=rng.choice(pool, RANDOM // parts, replace=False).tolist(),
                own={
                    miner: rng.choice(pool, OWN // parts, replace=False).tolist()
                    for miner in miners
                },
            ),
        )


def _spec(model: LlamaSpec, dataset: TokenDataset, root: Hash32) -> RunSpec:
    return build_spec(
        replace(preset_named("default"), model=model),
        Crowd(miners=PEERS, processes=PEERS, cores=1),
        data=dataset.spec,
        genesis_root=root,
        genesis_time=1,
        rounds_per_epoch=10,
    )


def _update(model: LlamaSpec, rng: np.random.Generator) -> Payload:
    values = rng.standard_normal(flat_layout(model).size, np.float32) * np.float32(1e-3)
    return encode_flat(values, model, CODEC)


if __name__ == "__main__":
    main()
