"""Text for data sets: small, with structure, the same on every machine."""

from __future__ import annotations

from pathlib import Path

from protocol.spec import DataSpec
from tests.specs import MODEL
from training.prepare import prepare_dataset

TEXT = "to be or not that is the question whether tis nobler in mind suffer ümlaut 世界 🙂"
WORDS = TEXT.split()


def documents(count: int = 12) -> list[str]:
    """Text with structure from a small linear generator, the same on every machine."""
    state, texts = 7, []
    for _ in range(count):
        words = []
        for _ in range(120):
            state = (state * 1103515245 + 12345) % (1 << 31)
            words.append(WORDS[(state >> 16) % len(WORDS)])
        texts.append(" ".join(words) + "\n")
    return texts


def prepared(out: Path, seed: int = 3) -> DataSpec:
    return prepare_dataset(
        documents(), out, vocab_size=300, context=MODEL.context, heldout_fraction=0.2, seed=seed
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
