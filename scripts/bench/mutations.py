"""Broken payloads against the decoder: each raises PayloadError or is a valid update, and takes no more memory than declared.

Several layouts: every number of bits, whole and edge tiles, one value kept of a chunk and all of them, the tests' smallest model
and the devnet's default one. Memory is counted for each payload, by tracemalloc for what Python and numpy take and by the kernels' word for
what they do; a leak or anything else would show in the peak of the whole process.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np

from protocol.model_spec import LlamaSpec
from protocol.spec import CodecSpec
from scripts.bench.figures import Figure, peak_mib, table, write_json
from scripts.bench.mutators import Stock, mutated
from syntience.devnet.presets import DEFAULT_MODEL
from training import kernels
from training.chunk import is_canonical_chunk
from training.codec import Payload, decode_payload, encode_flat
from training.errors import PayloadError
from training.kernels.build import build
from training.layout import ChunkLayout, chunk_layout

_DEFAULT = DEFAULT_MODEL
_TINY = replace(
    _DEFAULT, vocab_size=70, hidden_size=16, intermediate_size=36, layers=1, heads=2, kv_heads=1
)
_FULL = CodecSpec(version=2, chunk=4096, k=64, bits=2, feedback="0.95", transform="none")
_SMALL = replace(_FULL, chunk=64, k=3)
_SEEDS = 12
_DEFAULT_EVERY = 100
"""So seldom the default model: decoding it takes fifty times as long."""
_GROWTH_MIB = 32
_SANITIZE = (
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)


class NotValid(AssertionError):
    """The decoder took something that is no update, or took too much memory for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A run whose payloads are broken."""

    model: LlamaSpec
    codec: CodecSpec
    layout: ChunkLayout
    honest: Sequence[bytes]

    @staticmethod
    def of(model: LlamaSpec, codec: CodecSpec, rng: np.random.Generator) -> Target:
        """With payloads of values of several kinds."""
        layout = chunk_layout(model, codec)
        honest = []
        for number in range(_SEEDS):
            values = rng.standard_t(3, layout.flat.size).astype(np.float32)
            values *= np.float32(10.0) ** rng.integers(-12, 12)
            if number % 4 == 1:
                values[rng.random(layout.flat.size) < 0.97] = 0.0
            elif number % 4 == 2:
                values = np.full_like(values, values[0])
            honest.append(encode_flat(values, model, codec).to_bytes())
        honest.append(encode_flat(np.zeros(layout.flat.size, np.float32), model, codec).to_bytes())
        return Target(model=model, codec=codec, layout=layout, honest=tuple(honest))


Verdict: TypeAlias = "tuple[bytes, Payload | None]"
"""A broken payload, and what it is to the decoder; None: refused."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the payloads."""

    refused: Counter[str] = field(default_factory=Counter)
    taken: int = 0
    most_of_limit: float = 0.0


def targets() -> tuple[Target, ...]:
    """The default model's run last."""
    rng = np.random.default_rng(1)
    codecs = (
        _FULL,
        _SMALL,
        replace(_FULL, chunk=100, k=100),
        replace(_FULL, chunk=9, k=1),
        replace(_SMALL, bits=1),
        replace(_FULL, bits=1),
        replace(_SMALL, bits=4, k=20),
        replace(_SMALL, bits=8, k=20),
    )
    tiny = (Target.of(_TINY, codec, rng) for codec in codecs)
    return (*tiny, Target.of(_DEFAULT, _FULL, rng))


def fuzz(count: int, seed: int, runs: Sequence[Target], tally: Tally) -> Iterator[Verdict]:
    """Breaks `count` payloads and counts in `tally` what becomes of them.

    Raises NotValid, or whatever else than PayloadError the decoder raised; the note holds the payload.
    """
    rng = random.Random(seed)
    everything = [data for run in runs for data in run.honest]
    stocks = [Stock(own=run.honest, foreign=everything) for run in runs]
    tracemalloc.start(1)
    try:
        for number in range(count):
            which = len(runs) - 1 if number % _DEFAULT_EVERY == 0 else rng.randrange(len(runs) - 1)
            data = mutated(rng, stocks[which])
            try:
                payload = _attack(data, runs[which], tally)
            except Exception as error:
                error.add_note(f"payload {number} of seed {seed}, of run {which}: {data.hex()}")
                raise
            yield data, payload
    finally:
        tracemalloc.stop()


def _attack(data: bytes, run: Target, tally: Tally) -> Payload | None:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    payload = None
    try:
        payload = decode_payload(data, run.model, run.codec)
    except PayloadError as error:
        tally.refused[str(error).strip("0123456789 ")] += 1
    spent = tracemalloc.get_traced_memory()[1] - before + kernels.unpack_memory()
    share = spent / run.layout.decoding_bytes
    if share > 1:
        raise NotValid(f"{spent} bytes of memory, {run.layout.decoding_bytes} are declared")
    tally.most_of_limit = max(tally.most_of_limit, share)
    if payload is not None:
        tally.taken += 1
        check(payload, run)
    return payload


def check(payload: Payload, run: Target) -> None:
    """Raises NotValid unless an encoder can have made this."""
    layout, codec = payload.layout, run.codec
    canonical, starts = payload.canonical(), layout.byte_starts.tolist()
    for number, (start, end) in enumerate(pairwise(starts)):
        if not is_canonical_chunk(canonical[start:end], size=codec.chunk, bits=codec.bits):
            raise NotValid(f"chunk {number} is not canonical: {canonical[start:end].hex()}")
    if not (payload.indices < layout.sizes[layout.chunk_of_entry]).all():
        raise NotValid("an index beyond the end of its chunk")
    again = decode_payload(payload.to_bytes(), run.model, run.codec)
    if again.canonical() != canonical:
        raise NotValid("coded once more it is another update")


def main() -> None:
    """Fuzzes, prints what became of the payloads, and ends with status 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument(
        "--sanitize", action="store_true", help="with gcc's address and undefined-behaviour checks"
    )
    parser.add_argument("--kernels", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sanitize and not options.kernels:
        raise SystemExit(_sanitized())
    with kernels.using(options.kernels) if options.kernels else nullcontext():
        figures = list(_figures(options.payloads, options.seed, watched=bool(options.kernels)))
    print(table(figures))
    if options.json:
        write_json(options.json, figures)
    raise SystemExit(0 if all(figure.holds for figure in figures) else 1)


def _figures(count: int, seed: int, *, watched: bool) -> Iterator[Figure]:
    runs, tally, warm = targets(), Tally(), 0.0
    for number, _ in enumerate(fuzz(count, seed, runs, tally), start=1):
        if number == min(count, 10_000):
            warm = peak_mib()
        if number % 100_000 == 0:
            print(f"  {number:,} payloads, {tally.taken:,} of them valid", flush=True)
    for reason, times in tally.refused.most_common():
        print(f"  refused {times:9,}: {reason}")
    refused = tally.refused.total()
    yield Figure(name="payloads", value=refused + tally.taken, goal=count, unit="", at_least=True)
    yield Figure(name="of them valid", value=tally.taken, unit="")
    yield Figure(name="memory / declared, at most", value=tally.most_of_limit, goal=1, unit="")
    if not watched:  # a sanitizer keeps what is freed for a while
        growth = peak_mib() - warm
        yield Figure(name="growth of the peak", value=growth, goal=_GROWTH_MIB, unit="MiB")


def _sanitized() -> int:
    """The same command with kernels that check every access. Python itself isn't built so: the checker is loaded before it."""
    if not shutil.which("gcc"):
        print("--sanitize needs gcc and its libasan (Debian: apt install gcc)", file=sys.stderr)
        return 1
    found = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "sanitized.so"
        build(library, *_SANITIZE)
        environment = {
            **os.environ,
            "LD_PRELOAD": found,
            "ASAN_OPTIONS": "detect_leaks=0",  # Python's own; ours would show in the peak
            "PYTHONMALLOC": "malloc",  # so that each payload has borders of its own
        }
        command = [sys.executable, "-m", "scripts.bench.mutations", "--kernels", str(library)]
        return subprocess.run([*command, *sys.argv[1:]], env=environment, check=False).returncode


if __name__ == "__main__":
    main()
