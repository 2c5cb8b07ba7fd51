"""A round's samples, read from disk before they are needed.

The beacon that assigns a round's samples is drawn while the round before is still being concluded; what is read meanwhile is in
memory when training starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from training.dataset import TokenDataset


class Prefetch:
    """Reads one list of samples ahead, in a thread that lives as long as the reading."""

    def __init__(self, dataset: TokenDataset) -> None:
        self._dataset = dataset
        self._indices: tuple[int, ...] = ()
        self._reading: Future[NDArray[np.int64]] | None = None

    def begin(self, indices: Sequence[int]) -> None:
        """Starts to read these, once; what was read ahead before is dropped."""
        if tuple(indices) == self._indices:
            return
        self._indices = tuple(indices)
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")
        self._reading = pool.submit(self._dataset.samples, self._indices)
        pool.shutdown(wait=False)

    def samples(self, indices: Sequence[int]) -> NDArray[np.int64]:
        """(N, L+1) token ids, in the order asked for. Those that were read ahead are handed out, and let go of, once."""
        if self._reading is None or tuple(indices) != self._indices:
            return self._dataset.samples(indices)
        reading, self._reading = self._reading, None
        return reading.result()
