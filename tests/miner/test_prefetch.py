"""Samples that are read ahead are those that would be read."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from miner.prefetch import Prefetch
from training.dataset import TokenDataset

WANTED, OTHERS = (5, 1, 5, 0), (2, 3)


class Watched(TokenDataset):
    """Notes who reads what, and lets the reading wait."""

    def watch(self) -> None:
        self.gate, self.read = threading.Event(), list[tuple[tuple[int, ...], bool]]()
        self.gate.set()

    def samples(self, indices: Iterable[int]) -> NDArray[np.int64]:
        asked = tuple(indices)
        self.read.append((asked, threading.current_thread() is threading.main_thread()))
        assert self.gate.wait(10)
        return super().samples(asked)


def watched(text: TokenDataset) -> Watched:
    dataset = Watched.open(text.folder)
    dataset.watch()
    return dataset


def test_prefetch__begun__reads_in_another_thread_and_once(text: TokenDataset) -> None:
    dataset = watched(text)
    prefetch = Prefetch(dataset)
    dataset.gate.clear()
    prefetch.begin(WANTED)  # does not wait
    prefetch.begin(list(WANTED))
    dataset.gate.set()
    assert np.array_equal(prefetch.samples(list(WANTED)), text.samples(WANTED))
    assert dataset.read == [(WANTED, False)]


def test_prefetch__asked_again_or_for_others__reads_there_and_then(text: TokenDataset) -> None:
    dataset = watched(text)
    prefetch = Prefetch(dataset)
    prefetch.begin(WANTED)
    assert np.array_equal(prefetch.samples(OTHERS), text.samples(OTHERS))
    for _ in range(2):
        assert np.array_equal(prefetch.samples(WANTED), text.samples(WANTED))
    assert sorted(dataset.read) == [(OTHERS, True), (WANTED, False), (WANTED, True)]


def test_prefetch__another_beacon__drops_what_was_read(text: TokenDataset) -> None:
    dataset = watched(text)
    prefetch = Prefetch(dataset)
    prefetch.begin(WANTED)
    prefetch.begin(OTHERS)
    assert np.array_equal(prefetch.samples(OTHERS), text.samples(OTHERS))
    assert sorted(dataset.read) == [(OTHERS, False), (WANTED, False)]
