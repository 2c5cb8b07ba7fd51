"""The one layout of a run's payloads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.specs import MODEL, SPEC
from training import layout
from training.layout import chunk_layout


def test_chunk_layout__asked_for_by_many_threads_at_once__is_one_object() -> None:
    layout._chunk_layout.cache_clear()
    start = Barrier(8)

    def ask(_: int) -> int:
        start.wait()
        return id(chunk_layout(MODEL, SPEC.codec))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(8)))) == 1
