"""How far a round has come, on disk, so that a killed miner goes on instead of beginning again.

A file is one savepoint: safetensors with the parameters (`p.*`), AdamW's moments (`m.*`, `v.*`) and step count, the losses and
the trace so far. The error feedback isn't in it: it doesn't change before the round's end, and the start has it. The name says
for which inputs it was made, after how many steps, and the SHA-256 of its bytes: a file that was torn or damaged is known by it.
It gets that name after its bytes are on disk, so a kill at any instruction leaves the savepoints before it as they were.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from protocol.ids import Hash32
from protocol.model_spec import ModelSpec
from training.local_state import LocalState
from training.parameters import Parameters, Shape, shapes

logger = logging.getLogger(__name__)

_SUFFIX = ".safetensors"
_DRAFT = ".draft-"
_KEPT = 2
_TRACE_LEAF = 64
_PARTS = ("p", "m", "v")
_KINDS = {"<f4": "F32", "<f8": "F64", "|u1": "U8", "<i8": "I64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A round after its first `len(losses)` inner steps. `trace`: its leaves so far, 64 bytes each."""

    params: Parameters
    local: LocalState
    losses: tuple[float, ...]
    trace: tuple[bytes, ...]


class Savepoints:
    """The savepoints of one miner, in a folder that belongs to one process.

    Args:
        folder: made if absent.
        every_s: a savepoint is due so many seconds after the last one, or after the round was taken up.
        clock: seconds, from any start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        every_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._every_s, self._clock = folder, every_s, clock
        self._last = clock()

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next one."""
        return self._clock() - self._last >= self._every_s

    def latest(self, inputs: Hash32, *, model: ModelSpec, start: LocalState) -> Progress | None:
        """The furthest intact savepoint of a round with these inputs, which began with local state `start`.

        What is damaged is passed over, with a word in the log.
        """
        self._last = self._clock()
        for path in reversed(self._of(inputs)):
            try:
                progress = _read(path, model, start)
            except (OSError, ValueError) as error:
                logger.warning("savepoint %s is damaged, passed over: %s", path.name, error)
                continue
            logger.info("going on after %d steps from a savepoint", len(progress.losses))
            return progress
        return None

    def save(self, inputs: Hash32, progress: Progress) -> None:
        """Writes a savepoint and drops all but the two furthest of these inputs.

        Where the disk refuses, training goes on without.
        """
        try:
            self._write(inputs, progress)
            kept = self._of(inputs)[-_KEPT:]
            for path in self._files():
                if path not in kept:
                    path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("training goes on without a savepoint: %s", error.strerror or error)
        self._last = self._clock()

    def clear(self) -> None:
        """Drops all: the round is signed."""
        try:
            for path in self._files():
                path.unlink(missing_ok=True)
        except OSError as error:
            logger.warning("old savepoints stay: %s", error.strerror or error)

    def _write(self, inputs: Hash32, progress: Progress) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=_DRAFT, dir=self._folder)
        draft = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                digest = _write_tensors(file, _tensors(progress))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._folder / _name(inputs, len(progress.losses), digest))
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _files(self) -> list[Path]:
        """Everything in the folder, drafts of a killed process included."""
        return sorted(self._folder.glob(f"*{_SUFFIX}")) + list(self._folder.glob(f"{_DRAFT}*"))

    def _of(self, inputs: Hash32) -> list[Path]:
        return sorted(self._folder.glob(f"{inputs.hex()}-*{_SUFFIX}"))


def _name(inputs: Hash32, steps: int, digest: str) -> str:
    return f"{inputs.hex()}-{steps:08d}-{digest}{_SUFFIX}"


def _tensors(progress: Progress) -> dict[str, NDArray[np.generic]]:
    local = progress.local
    tensors: dict[str, NDArray[np.generic]] = {
        f"{part}.{name}": np.ascontiguousarray(array)
        for part, params in zip(_PARTS, (progress.params, local.m, local.v), strict=True)
        for name, array in params.items()
    }
    tensors["losses"] = np.array(progress.losses, np.float64)
    tensors["trace"] = np.frombuffer(b"".join(progress.trace), np.uint8)
    tensors["step"] = np.array([local.step], np.int64)
    return tensors


def _write_tensors(file: IO[bytes], tensors: dict[str, NDArray[np.generic]]) -> str:
    """Writes safetensors out of the arrays' own memory; returns the digest of all bytes.

    The library would copy the whole model twice for it.
    """
    header: dict[str, dict[str, object]] = {}
    end = 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        kind = _KINDS[array.dtype.str]
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    parts: list[bytes | memoryview] = [len(text).to_bytes(8, "little"), text]
    parts += [array.data for array in tensors.values()]
    for part in parts:
        digest.update(part)
        file.write(part)
    return digest.hexdigest()


def _read(path: Path, model: ModelSpec, start: LocalState) -> Progress:
    """Raises OSError or ValueError unless the file is whole."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not path.stem.endswith(digest):
        raise ValueError("its bytes are not those that were written")
    tensors = load_file(path)
    losses, trace, step = (tensors.pop(name) for name in ("losses", "trace", "step"))
    expected: dict[str, Shape] = {
        f"{part}.{name}": shape for part in _PARTS for name, shape in shapes(model).items()
    }
    if {name: array.shape for name, array in tensors.items()} != expected:
        raise ValueError("its tensors are not those of the model")
    params, m, v = ({name: tensors[f"{part}.{name}"] for name in shapes(model)} for part in _PARTS)
    leaves = trace.tobytes()
    return Progress(
        params=params,
        local=replace(start, m=m, v=v, step=int(step[0])),
        losses=tuple(losses.tolist()),
        trace=tuple(leaves[i : i + _TRACE_LEAF] for i in range(0, len(leaves), _TRACE_LEAF)),
    )
