"""A bar on a terminal, and silence elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from syntience.documents import ListedDocuments
from syntience.progress import ProgressBar


def shown(*, terminal: bool) -> str:
    out, documents = io.StringIO(), ListedDocuments("mine", ["a"] * 4)
    console = Console(file=out, force_terminal=terminal, width=100, color_system=None)
    with ProgressBar(console, documents) as bar:
        reading = iter(documents)
        next(reading)
        bar.watch("train the tokenizer", 1, None)
        next(reading)
        bar.watch("encode", 123_456, None)
        bar.watch("write", 0, 1_000)
        bar.watch("write", 500, 1_000)
    return out.getvalue()


def test_bar__terminal__shows_every_stage_and_how_far_it_is() -> None:
    last = shown(terminal=True).split("train the tokenizer")[-1]
    assert "1 documents" in last
    assert "123,456 tokens" in last
    assert "500 samples" in last
    assert last.count("100%") == 2
    assert " 50%" in last


def test_bar__reading__goes_by_the_documents_position() -> None:
    out, documents = io.StringIO(), ListedDocuments("mine", ["a"] * 4)
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    with ProgressBar(console, documents) as bar:
        next(iter(documents))
        bar.watch("encode", 10, None)
    assert " 25%" in out.getvalue()


@pytest.mark.parametrize("documents", [None, ListedDocuments("mine", ["a"])])
def test_bar__elsewhere__shows_nothing(documents: ListedDocuments | None) -> None:
    assert shown(terminal=False) == ""
    out = io.StringIO()
    with ProgressBar(Console(file=out), documents) as bar:
        bar.watch("verify", 1, 2)
    assert out.getvalue() == ""
