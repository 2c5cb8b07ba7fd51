"""Fixtures that every package's tests may use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.chain import Anvil, start_anvil

if TYPE_CHECKING:
    from training.dataset import TokenDataset

# The cores are shared: how long an example takes says nothing about it.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def anvil() -> Iterator[Anvil]:
    """One chain for all tests of the session (of each worker); a block with every transaction."""
    with start_anvil() as chain:
        yield chain


@pytest.fixture
def own_anvil() -> Iterator[Anvil]:
    """A chain for one test alone, which may rewind it, stop its mining or kill it."""
    with start_anvil() as chain:
        yield chain


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> TokenDataset:
    """A small data set of real text, for whoever trains on something."""
    from tests.subnet.stepped import prepare_text

    return prepare_text(tmp_path_factory.mktemp("text") / "dataset")
