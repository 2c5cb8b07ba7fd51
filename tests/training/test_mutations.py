"""Broken payloads against the decoder, and that the fuzzer would notice what it is there for."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from scripts.bench.mutations import NotValid, Tally, Target, check, fuzz, targets
from scripts.bench.mutators import MUTATORS, Mutator, Stock, Stream, packed_tables
from tests.training.codec_reference import SlowReader, slow_is_canonical
from training import kernels
from training.codec import decode_payload

PAYLOADS = 20_000
READ_SLOWLY = 100


@pytest.fixture(scope="module")
def runs() -> tuple[Target, ...]:
    return targets()


@pytest.fixture(scope="module")
def stock(runs: tuple[Target, ...]) -> Stock:
    return Stock(own=runs[1].honest, foreign=runs[4].honest)


@pytest.mark.timeout(300)
def test_decode__twenty_thousand_mutations__are_refused_or_valid_in_the_declared_memory(
    runs: tuple[Target, ...],
) -> None:
    tally = Tally()
    for data, payload in fuzz(PAYLOADS, 7, runs, tally):
        if payload is None or tally.taken > READ_SLOWLY or payload.layout.entries > 1000:
            continue
        read = SlowReader(data, payload.layout).read()
        assert payload.indices.tolist() == read.indices
        assert payload.codes.tolist() == read.codes
        assert payload.scales.tolist() == read.scales
        assert payload.ratios.tolist() == read.ratios
        size = max(payload.layout.sizes.tolist())
        assert all(slow_is_canonical(leaf, size, payload.layout.bits) for leaf in payload.leaves())
    assert tally.refused.total() + tally.taken == PAYLOADS
    assert READ_SLOWLY < tally.taken < PAYLOADS / 10
    assert len(tally.refused) == 5, "some way of refusing was never taken"


def test_fuzz__more_memory_than_declared__fails_and_names_the_payload(
    runs: tuple[Target, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "unpack_memory", lambda: 1 << 30)
    with pytest.raises(NotValid, match="memory") as caught:
        list(fuzz(1, 1, runs, Tally()))
    assert "payload 0 of seed 1" in caught.value.__notes__[0]


def test_check__no_update__raises_not_valid(runs: tuple[Target, ...]) -> None:
    run = runs[1]
    payload = decode_payload(run.honest[0], run.model, run.codec)
    check(payload, run)
    for forged in (
        replace(payload, indices=payload.indices[::-1].copy()),
        replace(payload, scales=np.full_like(payload.scales, 1.01)),
        replace(payload, ratios=np.full_like(payload.ratios, 16)),
    ):
        with pytest.raises(NotValid):
            check(forged, run)


def test_stream__honest_payloads__come_apart_and_together_again(runs: tuple[Target, ...]) -> None:
    for data in (data for run in runs for data in run.honest):
        stream = Stream.parse(data)
        assert stream is not None
        assert stream.to_bytes() == data
        tables = stream.frequencies()
        assert packed_tables(tables) == stream.tables
        assert {sum(table) for table in tables} <= {0, 4096}


@pytest.mark.parametrize("mutator", MUTATORS)
def test_mutators__anything__give_bytes_and_mostly_others(mutator: Mutator, stock: Stock) -> None:
    rng = random.Random(1)
    for data in (b"", b"\0" * 20, b"\xff" * 60, stock.own[0]):
        for _ in range(50):
            assert isinstance(mutator(rng, data, stock), bytes)
    changed = sum(mutator(rng, stock.own[0], stock) != stock.own[0] for _ in range(50))
    assert changed > 25
