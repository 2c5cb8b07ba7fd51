"""A trial that is stopped goes on to the same bits, and what is finished is never trained again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from scripts.bench.outer import RULES, Progress, advance, begin
from scripts.bench.trial import Laboratory, Point, dump, load, name_of
from tests.scripts.trials import prepared, trial
from training.dataset import TokenDataset

TRACK = (Point(step=2, loss=0.1 + 0.2),)


class Stopped(Exception):
    """What ends a process in the middle."""


class Mortal(TokenDataset):
    """A data set whose reader dies after so many reads."""

    reads_left = 0

    def samples(self, indices: Iterable[int]) -> NDArray[np.int64]:
        if self.reads_left == 0:
            raise Stopped
        self.reads_left -= 1
        return super().samples(indices)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> TokenDataset:
    return prepared(tmp_path_factory.mktemp("trial") / "set")


def mortal(dataset: TokenDataset, reads: int) -> TokenDataset:
    opened = Mortal.open(dataset.folder)
    opened.reads_left = reads
    return opened


def bits(progress: Progress) -> bytes:
    return dump(progress, ())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reads", range(1, 6))
def test_curve__stopped_anywhere__goes_on_to_the_same_bits(
    dataset: TokenDataset, tmp_path: Path, rule: str, reads: int
) -> None:
    wanted = trial(dataset, rule=rule, momentum="0.9")
    undisturbed = Laboratory(dataset, tmp_path / "whole", every=2).curve(wanted)
    # Of each round one read is of what it trains on and one of the held-out split.
    with pytest.raises(Stopped):
        Laboratory(mortal(dataset, reads), tmp_path / "halves", every=2).curve(wanted)
    assert (tmp_path / "halves" / f"{name_of(wanted)}.safetensors").exists() == (reads > 1)
    resumed = Laboratory(mortal(dataset, 6 - reads // 2 * 2), tmp_path / "halves", every=2)
    assert resumed.curve(wanted) == undisturbed
    assert [point.step for point in undisturbed] == [2, 4, 6]


def test_curve__finished_before__is_read_and_nothing_trained(
    dataset: TokenDataset, tmp_path: Path
) -> None:
    wanted = trial(dataset)
    curve = Laboratory(dataset, tmp_path, every=4).curve(wanted)
    assert [point.step for point in curve] == [4, 6]
    assert Laboratory(mortal(dataset, 0), tmp_path, every=4).curve(wanted) == curve
    assert [path.name for path in tmp_path.iterdir()] == [f"{name_of(wanted)}.json"]


def test_name__any_other_field__is_another_one(dataset: TokenDataset) -> None:
    plain = trial(dataset)
    others = [
        replace(plain, seed=2),
        replace(plain, rounds=4),
        replace(plain, alpha="1.0"),
        replace(plain, inner=replace(plain.inner, learning_rate="0.02")),
        replace(plain, codec=replace(plain.codec, feedback="0")),
    ]
    assert len({name_of(each) for each in (plain, *others)}) == 6


@pytest.mark.parametrize("rule", RULES)
def test_load__what_was_dumped__is_the_same_to_the_bit(
    dataset: TokenDataset, tmp_path: Path, rule: str
) -> None:
    wanted = trial(dataset, rule=rule, momentum="0.9")
    progress = advance(wanted, begin(wanted), dataset)
    (tmp_path / "checkpoint").write_bytes(dump(progress, TRACK))
    loaded, track = load(tmp_path / "checkpoint", wanted)
    assert (bits(loaded), track) == (bits(progress), TRACK)
    assert bits(advance(wanted, loaded, dataset)) == bits(advance(wanted, progress, dataset))
