"""Runs training trials so that none is lost or repeated: a checkpoint on the way, the curve at the end, both named by all that decides the bits."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as save_safetensors

from protocol import canonical, record
from scripts.bench.outer import Progress, Trial, advance, begin
from syntience.files import write_atomically
from training.dataset import TokenDataset
from training.evaluate import Evaluator
from training.layout import flat_layout
from training.local_state import LocalState
from training.parameters import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The held-out loss after so many inner steps, in nats per token."""

    step: int
    loss: float


Curve = tuple[Point, ...]


class Laboratory:
    """Runs trials on one data set and keeps what it has in a folder.

    `every`: inner steps from one point of a curve to the next, in whole rounds; each is a checkpoint as well.
    """

    def __init__(self, dataset: TokenDataset, folder: Path, *, every: int) -> None:
        self._dataset, self._folder, self._every = dataset, folder, every

    def curve(self, trial: Trial) -> Curve:
        """The trial's curve: from the folder, or by training on from where it was left."""
        result = self._folder / f"{name_of(trial)}.json"
        if result.is_file():
            return _points(json.loads(result.read_bytes())["curve"])
        curve = self._train(trial)
        document = {"trial": record.to_json(trial), "curve": _rows(curve)}
        write_atomically(result, json.dumps(document, indent=1).encode() + b"\n")
        self._checkpoint(trial).unlink()
        return curve

    def _train(self, trial: Trial) -> Curve:
        path, evaluator = self._checkpoint(trial), Evaluator(trial.model)
        heldout = self._dataset.total_samples - self._dataset.train_samples
        leg = max(1, self._every // trial.inner.steps)
        progress, curve = load(path, trial) if path.is_file() else (begin(trial), ())
        while progress.round < trial.rounds:
            started, first = time.monotonic(), progress.round
            for _ in range(min(leg, trial.rounds - first)):
                progress = advance(trial, progress, self._dataset)
            tokens = (progress.round - first) * trial.inner.steps * trial.tokens_per_step
            speed = tokens / (time.monotonic() - started)
            loss = evaluator.heldout_loss(progress.params, self._dataset, heldout)
            curve = (*curve, Point(step=progress.round * trial.inner.steps, loss=loss))
            write_atomically(path, dump(progress, curve))
            print(
                f"  {trial.setting}, seed {trial.seed}, round {progress.round}: {loss:.4f}"
                f" ({speed:,.0f} tokens/s)",
                flush=True,
            )
        return curve

    def _checkpoint(self, trial: Trial) -> Path:
        return self._folder / f"{name_of(trial)}.safetensors"


def name_of(trial: Trial) -> str:
    """Setting and seed for people; the digest of the whole trial keeps different ones apart."""
    digest = hashlib.sha256(canonical.dumps(record.to_json(trial))).hexdigest()
    return f"{trial.setting}-{trial.seed}-{digest[:12]}"


def dump(progress: Progress, curve: Curve) -> bytes:
    """Everything that the trial needs to go on, in one file."""
    tensors = {f"theta.{name}": array for name, array in progress.params.items()}
    tensors |= {f"velocity.{name}": array for name, array in progress.velocity.items()}
    for worker, local in enumerate(progress.locals):
        for part in ("m", "v", "e"):
            for name, array in getattr(local, part).items():
                tensors[f"{worker}.{part}.{name}"] = array
    notes = {
        "round": progress.round,
        "steps": [local.step for local in progress.locals],
        "curve": _rows(curve),
    }
    whole = {name: np.ascontiguousarray(tensors[name]) for name in sorted(tensors)}
    return save_safetensors(whole, {"progress": json.dumps(notes)})


def load(path: Path, trial: Trial) -> tuple[Progress, Curve]:
    """Inverse of `dump`."""
    names = flat_layout(trial.model).shapes
    with safe_open(path, framework="np") as file:
        notes = json.loads(file.metadata()["progress"])

        def part(prefix: str) -> Parameters:
            return {name: file.get_tensor(f"{prefix}.{name}") for name in names}

        progress = Progress(
            round=notes["round"],
            params=part("theta"),
            velocity=part("velocity"),
            locals=tuple(
                LocalState(
                    m=part(f"{worker}.m"), v=part(f"{worker}.v"), e=part(f"{worker}.e"), step=step
                )
                for worker, step in enumerate(notes["steps"])
            ),
        )
    return progress, _points(notes["curve"])


def _rows(curve: Curve) -> list[list[float]]:
    return [[point.step, point.loss] for point in curve]


def _points(rows: list[list[float]]) -> Curve:
    return tuple(Point(step=int(step), loss=loss) for step, loss in rows)
