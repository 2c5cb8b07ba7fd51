"""Pinned threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.threads import pin_threads


def test_pin_threads__fresh_process__sets_both_pools() -> None:
    code = (
        "import torch; from training.threads import pin_threads; pin_threads(1); pin_threads(1)\n"
        "print(torch.get_num_threads(), torch.get_num_interop_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]


def test_pin_threads__none__raises_value_error() -> None:
    before = torch.get_num_threads()
    with pytest.raises(ValueError, match="thread"):
        pin_threads(0)
    assert torch.get_num_threads() == before
