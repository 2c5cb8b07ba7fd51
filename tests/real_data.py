"""Real models and texts, which are too large or not ours to keep here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "SYNTIENCE_TEST_DATA"


def real_file(name: str) -> Path:
    """A file in the folder that the variable names; skips the test where there is none."""
    path = Path(os.environ.get(VARIABLE, "")) / name
    if VARIABLE not in os.environ or not path.is_file():
        pytest.skip(f"{name} is not here; put it in a folder and name that with {VARIABLE}")
    return path
