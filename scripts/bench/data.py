"""Data sets: tokens a second that are prepared, and what opening, sampling and verifying two million samples takes.

The text is encoded twice, with one worker and with several, and the results are compared to the byte. The large set is random tokens
cut by the code that cuts any: what it costs depends on sizes alone. Goals hold for processor time, which other processes on the
machine change less than the time on the wall; that stands beside it.
"""

from __future__ import annotations

import argparse
import filecmp
import resource
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from scripts.bench.figures import Figure, table, write_json
from syntience import corpus
from syntience.documents import Documents, ListedDocuments, open_documents
from training.dataset import TokenDataset
from training.prepare import Pace, prepare_dataset
from training.samples import Cut, Text, write_samples
from training.sources import DOCUMENT
from training.verification import verify
from training.watch import unwatched

VOCABULARY, REPEATED = 4096, 6
SAMPLES, CONTEXTS = 2_000_000, (128, 1024)
CHOSEN = 10_000
MIB = 1 << 20


def main() -> None:
    """Measures, prints, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a text, or a folder of texts, to encode")
    parser.add_argument("--workers", type=int, default=2, help="processes, against one")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = [*_encoding(Path(folder), options.data, options.workers)]
        for context in CONTEXTS:
            figures += _reading(Path(folder) / str(context), context)
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _documents(text: Path | None) -> Documents:
    cache = Path.home() / ".cache" / "syntience"
    if text is not None:
        return open_documents(text, cache_dir=cache)
    works = corpus.fetch_default_corpus(cache)
    # In pieces of a few pages, and often enough that starting the processes plays no part.
    pages = [work[at : at + 8_000] for work in works for at in range(0, len(work), 8_000)]
    return ListedDocuments(corpus.NAME, pages * REPEATED)


class _Stopwatch:
    """When the encoding began, and when which token was on disk."""

    def __init__(self) -> None:
        self.began = self.ended = 0.0
        self.tokens = 0

    def watch(self, stage: str, done: int, total: int | None) -> None:
        if stage == "encode":
            self.began = self.began or time.perf_counter()
            self.ended, self.tokens = time.perf_counter(), done

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / (self.ended - self.began)


def _encoding(folder: Path, text: Path | None, workers: int) -> Iterator[Figure]:
    documents = _documents(text)
    for count in (1, workers):
        clock, before = _Stopwatch(), _children_s()
        prepare_dataset(
            documents,
            folder / f"set-{count}",
            vocab_size=VOCABULARY,
            context=128,
            pace=Pace(workers=count, watch=clock.watch),
        )
        yield Figure(name=f"encode, workers: {count}", value=clock.tokens_per_s, unit="tokens/s")
        if count > 1:
            yield Figure(
                name="encode, a worker's processor second",
                value=clock.tokens / (_children_s() - before),
                unit="tokens",
            )
    one, several = folder / "set-1", folder / f"set-{workers}"
    names = [path.name for path in one.iterdir()]
    same, _, _ = filecmp.cmpfiles(one, several, names, shallow=False)
    yield Figure(
        name="files that are equal, of both",
        value=len(same),
        goal=len(names),
        unit="",
        at_least=True,
    )


def _reading(folder: Path, context: int) -> Iterator[Figure]:
    samples = SAMPLES * CONTEXTS[0] // context
    what = f"{samples / 1e6:.2g} M samples of {context}"
    size = samples * (context + 1) * 2
    text = _random_text(folder, samples, context)
    cut = Cut(name="random", context=context, heldout_fraction=0.05, seed=1)
    yield from _timed(
        f"{what}: cut and hash",
        lambda: write_samples(text, cut, folder / "set", watch=unwatched),
        size=size,
    )
    chosen = np.random.default_rng(1).integers(0, samples, CHOSEN).tolist()
    tracemalloc.start()
    try:
        began = time.process_time()
        dataset = TokenDataset.open(folder / "set")
        open_s = time.process_time() - began
        for index in chosen:
            dataset.sample(index)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    yield Figure(name=f"{what}: open", value=1e3 * open_s, unit="ms", goal=100)
    yield Figure(
        name=f"{what}: open and draw {CHOSEN:,}, memory", value=peak / MIB, unit="MiB", goal=4
    )
    yield from _timed(f"{what}: verify", lambda: verify(folder / "set"), size=size, goal_s=5)


def _random_text(folder: Path, samples: int, context: int) -> Text:
    length, rng = samples * (context + 1), np.random.default_rng(context)
    folder.mkdir()
    with (folder / "tokens").open("wb") as file:
        for first in range(0, length, MIB):
            count = min(MIB, length - first)
            file.write(rng.integers(0, VOCABULARY, count, np.uint16).tobytes())
    starts = np.arange(0, length, 250, dtype="<u8")
    documents = np.zeros(len(starts), DOCUMENT)
    documents["start"] = starts
    documents.tofile(folder / "documents")
    return Text(
        tokens=np.memmap(folder / "tokens", "<u2", mode="r"),
        starts=starts,
        documents_file=folder / "documents",
        tokenizer=b"{}",
        end_token=0,
    )


def _timed(
    name: str, work: Callable[[], object], *, size: int, goal_s: float | None = None
) -> Iterator[Figure]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    yield Figure(name=f"{name}, processor", value=processor, unit="s", goal=goal_s)
    yield Figure(name=f"{name}, wall", value=wall, unit="s")
    yield Figure(name=f"{name}, a processor second", value=size / 1e6 / processor, unit="MB")


def _children_s() -> float:
    """Processor time of the processes that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


if __name__ == "__main__":
    main()
