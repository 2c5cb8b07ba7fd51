"""State folders with curves that no node has made, for tests of what is drawn from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from node.curves import FILE, About, Curves, EvaluationRow, TrainingRow
from protocol.ids import Hash32, Round, to_address
from tests.specs import some_hash

RUN = some_hash("run")
STEPS = 4


def about(name: str, run: Hash32 = RUN) -> About:
    return About(
        run=run,
        spec_hash=some_hash("spec"),
        account=to_address(some_hash(name)[:20]),
        model="Llama of 429,408 parameters, vocabulary 1,024, context 128",
    )


def training_row(round_: int, *, luck: float = 0.0) -> TrainingRow:
    """A round of a miner that learns."""
    loss = 3.2 + 3.7 * math.exp(-round_ / 6) + luck
    losses = tuple(float(np.float32(loss + 0.125 * (STEPS / 2 - step))) for step in range(STEPS))
    return TrainingRow(
        round=Round(round_),
        at=1_800_000_000.0 + 25 * round_,
        mean_loss=sum(losses) / STEPS,
        losses=losses,
        learning_rate=0.003 * min(1.0, round_ / 5),
        compression_error=0.7 + luck,
        payload_bytes=7_900 + 50 * round_,
        dense_bytes=4 * 429_408,
        tokens=10_240,
        train_s=1.25 + luck,
        encode_s=0.02,
        accepted=True,
    )


def evaluation_row(round_: int) -> EvaluationRow:
    """A round of a validator."""
    return EvaluationRow(
        round=Round(round_),
        at=1_800_000_020.0 + 25 * round_,
        heldout_loss=3.3 + 3.5 * math.exp(-round_ / 6),
        alpha=1.25,
        accepted=2,
        selected=2,
        fetched_bytes=5_000_000,
        void="",
    )


def make_home(
    folder: Path, rows: Iterable[TrainingRow | EvaluationRow] = (), *, run: Hash32 = RUN
) -> Path:
    """A state folder with these rows; its account is that of its name."""
    folder.mkdir(parents=True)
    curves = Curves.open(folder / FILE, about(str(folder), run))
    for row in rows:
        curves.add(row)
    curves.close()
    return folder


def make_devnet(folder: Path, *, rounds: int = 12, miners: int = 2) -> Path:
    """A kept devnet's folder: miners, one of them refused once and away once, two validators, and a hunter without rows."""
    for number in range(miners):
        rows = [training_row(round_, luck=0.03 * number) for round_ in range(1, rounds + 1)]
        if number == 1:
            rows[2] = replace(rows[2], accepted=False)
            del rows[5:7]
        make_home(folder / f"miner-{number + 1}" / "state", rows)
    evaluated = [evaluation_row(round_) for round_ in range(1, rounds + 1)]
    still = evaluated[2].heldout_loss
    evaluated[3] = replace(evaluated[3], void="no accepted miner", heldout_loss=still)
    for number in (1, 2):
        make_home(folder / f"validator-{number}" / "state", evaluated[number - 1 :])
    make_home(folder / "hunter-1" / "state")
    return folder
