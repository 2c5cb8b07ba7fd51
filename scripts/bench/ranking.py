"""Do two validators rank graded miners alike? Real training, two processes with other numbers of threads, the weights' rank correlation.

Sixteen miners train one model, each on its own assigned samples and with its own part of the round's steps: the first a sixteenth of
them, the last all. Two validators of equal stake, each in a process of its own with its own draws and number of threads, follow the
run, score everybody, and give their weights after the last round. The ratings' own correlation stands beside the weights', which
hold the proof of computation too; and so does who really did more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protocol.assignment import assigned_samples
from protocol.hashing import keccak256
from protocol.ids import Address, Epoch, Hash32, Round, Slot, to_address
from protocol.model_spec import LlamaSpec, ModelSpec
from protocol.spec import RunSpec
from scoring.book import RoundObservation, ScoreBook
from scoring.rules import Rules
from scoring.sampling import evaluation_draw, own_samples, random_samples
from scoring.selection import select
from scripts.bench.figures import Figure, table, write_json
from syntience import corpus
from syntience.devnet.presets import Crowd, build_spec, preset_named
from syntience.documents import ListedDocuments
from training.aggregate import aggregate
from training.arithmetic import Arithmetic
from training.codec import Payload, decode_payload
from training.dataset import TokenDataset
from training.inner import InnerState, RoundStart, train_round
from training.local_state import LocalState
from training.outer import OuterStep
from training.parameters import Parameters, initial_parameters
from training.prepare import prepare_dataset
from training.roots import state_root
from training.threads import pin_threads
from validator.evaluation import Exam, Examiner

MINERS, ROUNDS = 16, 10
GOAL = 0.95
RUN = Hash32(keccak256(b"ranking"))
ADDRESSES = [to_address((number + 1).to_bytes(20, "big")) for number in range(MINERS)]
THREADS = {to_address(b"\xf1" * 20): 1, to_address(b"\xf2" * 20): 2}
"""The validators, and with how many threads each computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What validators and miners of the run share, in a folder."""

    folder: Path
    dataset: TokenDataset
    spec: RunSpec

    def assigned(self, round_: Round, miner: Address) -> tuple[int, ...]:
        """A miner's samples."""
        return assigned_samples(
            run=RUN,
            round_=round_,
            beacon=beacon(round_, "assignment"),
            miner=miner,
            count=self.spec.chain.samples_per_round,
            train_samples=self.spec.data.train_samples,
        )

    def payload(self, round_: Round, miner: Address) -> Path:
        """Where its update is published."""
        return self.folder / f"{round_}-{miner}"

    def selected(self, round_: Round) -> list[Address]:
        """Whose updates enter the aggregate, in slot order."""
        outer = self.spec.outer
        chosen = select(
            ADDRESSES,
            {},
            beacon(round_, "evaluation"),
            top_g=outer.top_g,
            newcomer_slots=outer.newcomer_slots,
        )
        return [miner for miner in ADDRESSES if miner in chosen]

    def after(
        self, params: Parameters, round_: Round, payloads: dict[Address, Payload]
    ) -> Parameters:
        """The model at the start of the next round."""
        chosen = [payloads[miner] for miner in self.selected(round_)]
        return aggregate(params, chosen, OuterStep.of(self.spec.outer, round_))


def main() -> None:
    """Trains, scores twice, prints, and ends with status 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--validator", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.validator is not None:
        pin_threads(THREADS[options.validator])
        print(json.dumps(_judged(_open(options.folder), options.validator)))
        return
    pin_threads(1)
    with tempfile.TemporaryDirectory(prefix="syntience-bench-") as folder:
        figures = _measure(Path(folder))
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _measure(folder: Path) -> list[Figure]:
    _prepare(folder)
    _train(_open(folder))
    vectors, ratings = [], []
    for validator, threads in THREADS.items():
        call = [sys.executable, "-m", "scripts.bench.ranking", "--validator", validator]
        done = subprocess.run(
            [*call, "--folder", str(folder)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "passive"},  # who spins is slow on a busy machine
        )
        found = json.loads(done.stdout)
        vectors.append(found["weights"])
        ratings.append(found["ordinals"])
        print(f"weights with {threads} threads: {vectors[-1]}")
    steps = list(range(1, MINERS + 1))
    return [
        Figure(
            name="rank correlation of two validators' weights",
            value=spearman(*vectors),
            goal=GOAL,
            unit="",
            at_least=True,
        ),
        Figure(name="the same of their ratings", value=spearman(*ratings), unit=""),
        *(
            Figure(
                name=f"rank correlation with the steps taken, validator {number}",
                value=spearman(vector, steps),
                unit="",
            )
            for number, vector in enumerate(vectors, start=1)
        ),
    ]


def _start(model: ModelSpec) -> Parameters:
    assert isinstance(model, LlamaSpec)
    return initial_parameters(model)


def _prepare(folder: Path) -> None:
    cache = Path.home() / ".cache" / "syntience"
    prepare_dataset(
        ListedDocuments(corpus.NAME, corpus.fetch_default_corpus(cache)),
        folder / "data",
        vocab_size=preset_named("tiny").vocab_size,
        context=preset_named("tiny").model.context,
        heldout_fraction=0.05,
        name="bench",
    )


def _open(folder: Path) -> Run:
    dataset, preset = TokenDataset.open(folder / "data"), preset_named("tiny")
    spec = build_spec(
        # A step more for each grade, and as many samples as a devnet's miner gets.
        replace(preset, inner=replace(preset.inner, steps=MINERS, batch=5, trace_every=MINERS)),
        Crowd(miners=MINERS, processes=2, cores=2),
        data=dataset.spec,
        genesis_root=state_root(_start(preset.model)),
        genesis_time=1,
        rounds_per_epoch=ROUNDS,
    )
    return Run(folder=folder, dataset=dataset, spec=spec)


def _train(run: Run) -> None:
    """Every miner's rounds; what they hand in lies in the folder."""
    params = _start(run.spec.model)
    locals_ = [LocalState.zeros(run.spec.model)] * MINERS
    for round_ in _rounds():
        payloads, losses = {}, []
        for number, miner in enumerate(ADDRESSES):
            inner = replace(run.spec.inner, steps=number + 1)
            samples = run.dataset.samples(run.assigned(round_, miner)[: inner.steps * inner.batch])
            start = RoundStart(
                round=round_,
                state=InnerState(params=params, local=locals_[number]),
                root=state_root(params),
                samples=samples.reshape(inner.steps, inner.batch, -1),
            )
            done = train_round(start, replace(Arithmetic.of(run.spec), inner=inner))
            locals_[number], payloads[miner] = done.local_out, done.payload
            run.payload(round_, miner).write_bytes(done.payload.to_bytes())
            losses.append(done.mean_loss)
        params = run.after(params, round_, payloads)
        print(f"round {round_}: training loss {sum(losses) / MINERS:.3f}", flush=True)


def _judged(run: Run, validator: Address) -> dict[str, list[float]]:
    """One validator's weights and rating ordinals by miner after all rounds."""
    spec, examiner = run.spec, Examiner(run.spec, run.dataset)
    params, book = _start(spec.model), ScoreBook.empty(Rules.of(spec.scoring))
    for round_ in _rounds():
        payloads = {
            miner: decode_payload(run.payload(round_, miner).read_bytes(), spec.model, spec.codec)
            for miner in ADDRESSES
        }
        draw = evaluation_draw(beacon(round_, "evaluation"), validator)
        assigned = {miner: run.assigned(round_, miner) for miner in ADDRESSES}
        exam = Exam(
            round=round_,
            params=params,
            payloads=payloads,
            selected=run.selected(round_),
            peers=ADDRESSES,
            random=random_samples(
                train_samples=spec.data.train_samples,
                assigned={sample for found in assigned.values() for sample in found},
                count=spec.scoring.rand_samples,
                draw=draw,
            ),
            own={
                miner: own_samples(
                    assigned[miner], miner=miner, count=len(assigned[miner]), draw=draw
                )
                for miner in ADDRESSES
            },
        )
        book = book.observe_round(
            RoundObservation(
                round=round_,
                epoch=Epoch(1),
                void=False,
                accepted=tuple(ADDRESSES),
                faults={},
                payload_roots={miner: payload.root() for miner, payload in payloads.items()},
                evaluations=examiner.examine(exam),
            )
        )
        params = run.after(params, round_, payloads)
    slots = {Slot(number): miner for number, miner in enumerate(ADDRESSES)}
    return {
        "weights": list(book.weights(Epoch(1), slots=slots, slot_count=MINERS)),
        "ordinals": [book.record(miner).rating.ordinal for miner in ADDRESSES],
    }


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2
        for value in values
    ]


def beacon(round_: Round, purpose: str) -> Hash32:
    """Made up: there is no chain here."""
    return Hash32(keccak256(f"{purpose} {round_}".encode()))


def _rounds() -> list[Round]:
    return [Round(number) for number in range(1, ROUNDS + 1)]


if __name__ == "__main__":
    main()
