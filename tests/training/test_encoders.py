"""Several processes: the same tokens in the same order, and a clear word when one dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.training.texts import documents
from training.encoders import Encoding, encode_in_order
from training.errors import DatasetError
from training.tokenizer import train_tokenizer

BATCHES = [
    [text.encode() for text in documents(30)[first : first + size]]
    for first, size in ((0, 1), (1, 20), (21, 2), (23, 7), (0, 1))
]


@pytest.fixture
def encoding(tmp_path: Path) -> Encoding:
    train_tokenizer(documents(), 300).save(str(tmp_path / "tokenizer.json"))
    return Encoding(tokenizer_file=tmp_path / "tokenizer.json", end_token=0, dtype="<u2")


def test_encode_in_order__several_processes__equals_one(encoding: Encoding) -> None:
    alone = list(encode_in_order(BATCHES, encoding, workers=1))
    together = list(encode_in_order(BATCHES, encoding, workers=2))
    assert [batch for batch, _ in together] == [batch for batch, _ in alone] == BATCHES
    for (_, ours), (_, theirs) in zip(together, alone, strict=True):
        assert np.array_equal(ours.tokens, theirs.tokens)
        assert np.array_equal(ours.lengths, theirs.lengths)


def test_encode_in_order__left_early__ends_its_processes(encoding: Encoding) -> None:
    results = encode_in_order(BATCHES * 8, encoding, workers=2)
    next(results)
    results.close()
    assert multiprocessing.active_children() == []


def test_encode_in_order__reading_fails__ends_its_processes(encoding: Encoding) -> None:
    def broken() -> Iterator[list[bytes]]:
        yield from BATCHES
        raise DatasetError("no more", "")

    with pytest.raises(DatasetError, match="no more"):
        list(encode_in_order(broken(), encoding, workers=2))
    assert multiprocessing.active_children() == []


def test_encode_in_order__a_process_dies__says_so(encoding: Encoding) -> None:
    def murderous() -> Iterator[list[bytes]]:
        yield BATCHES[0]
        for child in multiprocessing.active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
        while True:
            yield BATCHES[1]

    with pytest.raises(DatasetError, match=r"ended by itself.*fewer --workers"):
        list(encode_in_order(murderous(), encoding, workers=2))
    assert multiprocessing.active_children() == []
