"""The data set of a devnet is made once for each text and vocabulary."""

from __future__ import annotations

from pathlib import Path

import pytest

from syntience.devnet.data import prepare_data
from syntience.devnet.presets import preset_named
from syntience.errors import DataMissing
from training.verification import verify

SENTENCE = "It was the best of times, it was the worst of times. {number} "
TINY = preset_named("tiny")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text("".join(SENTENCE.format(number=number) for number in range(1_600)))
    return path


def test_prepare_data__own_text__is_a_whole_data_set_of_the_preset(
    text: Path, tmp_path: Path
) -> None:
    folder, spec = prepare_data(TINY, text, cache_dir=tmp_path, work=tmp_path / "work")
    assert spec.name == "mine"
    assert spec.sample_tokens == TINY.model.context + 1
    assert verify(folder, spec.dataset_root).spec == spec


def test_prepare_data__the_same_text__is_found_again(text: Path, tmp_path: Path) -> None:
    folder, spec = prepare_data(TINY, text, cache_dir=tmp_path, work=tmp_path / "work")
    before = (folder / "manifest.json").stat().st_mtime_ns
    assert prepare_data(TINY, text, cache_dir=tmp_path, work=tmp_path / "work") == (folder, spec)
    assert (folder / "manifest.json").stat().st_mtime_ns == before


def test_prepare_data__changed_text__is_another_data_set(text: Path, tmp_path: Path) -> None:
    folder, spec = prepare_data(TINY, text, cache_dir=tmp_path, work=tmp_path / "work")
    text.write_text(text.read_text() + "The end.")
    other, changed = prepare_data(TINY, text, cache_dir=tmp_path, work=tmp_path / "work")
    assert other != folder
    assert changed.dataset_root != spec.dataset_root


def test_prepare_data__no_such_text__says_so(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="no file or folder"):
        prepare_data(TINY, tmp_path / "none", cache_dir=tmp_path, work=tmp_path / "work")
