"""Prepares a data set in a process of its own, for tests that kill it: OUT WORKERS."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.training.texts import documents
from training.prepare import Pace, prepare_dataset

DOCUMENTS = 600


def main() -> None:
    prepare_dataset(
        documents(DOCUMENTS),
        Path(sys.argv[1]),
        vocab_size=300,
        context=16,
        pace=Pace(workers=int(sys.argv[2]), batch_bytes=12_000),
    )


if __name__ == "__main__":
    main()
