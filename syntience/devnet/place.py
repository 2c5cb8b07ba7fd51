"""Where a devnet runs: its folder, its log, its share of this machine."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from syntience.config import LogSettings
from syntience.files import require_writable
from syntience.logging import configure_logging


@dataclass(slots=True)
class Place:
    """A run's folder, and whether it stays."""

    path: Path
    keep: bool


@contextmanager
def run_folder(work: Path, *, keep: bool) -> Iterator[Place]:
    """A fresh folder for a run; removed at the end unless `keep` says otherwise or it failed."""
    runs = work / "runs"
    require_writable(runs / "run")
    place = Place(
        path=Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=runs)),
        keep=keep,
    )
    try:
        yield place
    except Exception:  # nothing is swallowed: whatever failed, its logs have to stay
        place.keep = True
        raise
    finally:
        if not place.keep:
            shutil.rmtree(place.path, ignore_errors=True)


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """What this process logs goes to a file: the terminal belongs to the table."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    with path.open("w") as stream:
        configure_logging(LogSettings(level="info"), stream=stream)
        try:
            yield
        finally:
            root.handlers[:] = before
            root.setLevel(level)


def usable_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1
