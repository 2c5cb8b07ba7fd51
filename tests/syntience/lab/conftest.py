"""What the laboratory's tests train on: a small text, prepared for the laboratory's model."""

from __future__ import annotations

from pathlib import Path

import pytest

from syntience.devnet.data import prepare_data
from syntience.lab.school import TINY
from tests.sockets import no_sockets
from tests.training.texts import documents

__all__ = ["no_sockets"]


@pytest.fixture(scope="session")
def lab_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("lab")
    text = work / "text.txt"
    text.write_text("".join(documents(60)))
    return prepare_data(TINY, text, cache_dir=work, work=work)[0]
