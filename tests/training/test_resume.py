"""A preparation that is interrupted goes on, gives the same bytes, and only with the same text and tokenizer."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.training.prepare_child import DOCUMENTS
from tests.training.texts import contents, documents
from training import prepare, vocabulary
from training.errors import DatasetError
from training.prepare import Pace, prepare_dataset
from training.tokenizer import train_tokenizer
from training.vocabulary import GivenTokenizer
from training.workplace import JOURNAL, Workplace

TEXTS = documents(40)


class Interruption(Exception):
    """Stands for a kill in the middle of the work."""


def prepared(out: Path, texts: list[str] | None = None, **changes: object) -> None:
    settings: dict[str, object] = {
        "vocab_size": 300,
        "context": 16,
        "pace": Pace(batch_bytes=2048),
        **changes,
    }
    prepare_dataset(TEXTS if texts is None else texts, out, **settings)  # type: ignore[arg-type]


class BreaksAt:
    """Documents whose second reading, that for the encoding, breaks off at one of them."""

    def __init__(self, number: int) -> None:
        self.number, self.readings = number, 0

    def __iter__(self) -> Iterator[str]:
        self.readings += 1
        for number, text in enumerate(TEXTS):
            if self.readings == 2 and number == self.number:
                raise Interruption
            yield text


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """OUT of a preparation that broke off in the middle of the encoding."""
    with pytest.raises(Interruption):
        prepared(tmp_path / "set", BreaksAt(25))  # type: ignore[arg-type]
    journal = json.loads((tmp_path / ".set.partial" / JOURNAL).read_text())
    assert 0 < journal["documents"] <= 25
    return tmp_path / "set"


def documents_done(out: Path) -> int:
    try:
        journal = json.loads((out.with_name(f".{out.name}.partial") / JOURNAL).read_text())
    except FileNotFoundError:
        return 0
    return int(journal["documents"])


def is_cutting(out: Path) -> bool:
    return any(out.parent.glob(f".{out.name}.partial/set-*"))


def run_until(out: Path, workers: int, reached: Callable[[], bool]) -> bool:
    """Starts a preparation and kills it when that is reached; returns whether it was killed before its end."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.training.prepare_child", str(out), str(workers)],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    while child.poll() is None and not reached():
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    killed = child.wait() == -signal.SIGKILL
    wait_for_none_of_group(child.pid)
    return killed


def wait_for_none_of_group(group: int) -> None:
    """Workers must end by themselves when their parent is killed."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("a worker outlives its parent")


@pytest.mark.parametrize("workers", [1, 3])
def test_prepare__killed_again_and_again__gives_the_same_bytes(
    tmp_path: Path, workers: int
) -> None:
    out, chance = tmp_path / "set", random.Random(workers)
    moments = sorted(chance.randrange(1, DOCUMENTS - 50) for _ in range(3 if workers == 1 else 2))
    seen = []
    for moment in moments:
        assert run_until(out, workers, lambda moment=moment: documents_done(out) >= moment)  # type: ignore[misc]
        assert not out.exists()
        seen.append(documents_done(out))
    assert seen == sorted(seen)
    assert seen[0] > 0
    pause = chance.random() / 100
    run_until(out, workers, lambda: is_cutting(out) and time.sleep(pause) is None)
    if not out.exists():
        run_until(out, workers, lambda: False)
    prepare_dataset(documents(DOCUMENTS), tmp_path / "whole", vocab_size=300, context=16)
    assert contents(out) == contents(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "whole"]


@pytest.mark.parametrize("number", [0, 1, 13, 39])
def test_prepare__broken_off_at_a_document__gives_the_same_bytes(
    tmp_path: Path, number: int
) -> None:
    with pytest.raises(Interruption):
        prepared(tmp_path / "set", BreaksAt(number))  # type: ignore[arg-type]
    prepared(tmp_path / "set")
    prepared(tmp_path / "whole")
    assert contents(tmp_path / "set") == contents(tmp_path / "whole")


def test_prepare__more_workers_and_other_batches__give_the_same_bytes(tmp_path: Path) -> None:
    prepared(tmp_path / "one", pace=Pace())
    prepared(tmp_path / "three", pace=Pace(workers=3, batch_bytes=500))
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


def test_prepare__other_context_after_an_interruption__keeps_the_tokens(
    interrupted: Path, tmp_path: Path
) -> None:
    prepared(interrupted, context=24, seed=7)
    prepared(tmp_path / "whole", context=24, seed=7)
    assert contents(interrupted) == contents(tmp_path / "whole")


def test_prepare__other_vocabulary_after_an_interruption__says_so(interrupted: Path) -> None:
    with pytest.raises(DatasetError, match="another tokenizer or vocabulary"):
        prepared(interrupted, vocab_size=301)
    prepared(interrupted)


@pytest.mark.parametrize("number", [0, 15])
def test_prepare__text_changed_meanwhile__says_so(interrupted: Path, number: int) -> None:
    changed = list(TEXTS)
    changed[number] += "."
    with pytest.raises(DatasetError, match=rf"has changed .* \(up to document {number + 1}\)"):
        prepared(interrupted, changed)
    prepared(interrupted)


def test_prepare__text_of_the_tokenizer_changed_meanwhile__says_so(interrupted: Path) -> None:
    """Not encoded yet, but the tokenizer was trained on it."""
    changed = [*TEXTS[:-1], "other"]
    with pytest.raises(DatasetError, match="has changed"):
        prepared(interrupted, changed)


def test_prepare__much_text__trains_on_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what comes after it may still change while it is not encoded."""
    monkeypatch.setattr(vocabulary, "TRAIN_BYTES", sum(len(text.encode()) for text in TEXTS[:9]))
    with pytest.raises(Interruption):
        prepared(tmp_path / "set", BreaksAt(25))  # type: ignore[arg-type]
    prepared(tmp_path / "set", [*TEXTS[:-1], "other"])
    tokenizer = (tmp_path / "set" / "tokenizer.json").read_bytes()
    assert tokenizer == train_tokenizer(TEXTS[:9], 300).to_str().encode()


def test_prepare__text_cut_short_meanwhile__says_so(interrupted: Path) -> None:
    with pytest.raises(DatasetError, match="has changed"):
        prepared(interrupted, TEXTS[:10])


@pytest.mark.parametrize("name", ["stream.bin", "documents.bin"])
def test_prepare__damaged_work__says_so(interrupted: Path, name: str) -> None:
    path = interrupted.with_name(".set.partial") / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DatasetError, match="is damaged: remove that folder"):
        prepared(interrupted)


def test_prepare__bytes_behind_the_journal__are_dropped(interrupted: Path, tmp_path: Path) -> None:
    for name in ("stream.bin", "documents.bin"):
        with (interrupted.with_name(".set.partial") / name).open("ab") as file:
            file.write(b"half a batch")
    prepared(interrupted)
    prepared(tmp_path / "whole")
    assert contents(interrupted) == contents(tmp_path / "whole")


def test_prepare__at_work_already__is_left_alone(interrupted: Path) -> None:
    folder = interrupted.with_name(".set.partial")
    request = json.loads((folder / "request.json").read_text())
    with (
        Workplace(folder, request),
        pytest.raises(DatasetError, match="another process prepares"),
    ):
        prepared(interrupted)
    prepared(interrupted)


def test_prepare__killed_after_the_result_got_its_name__tidies_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, partial = tmp_path / "set", tmp_path / ".set.partial"
    remove = shutil.rmtree

    def refuse(folder: Path, **options: bool) -> None:
        raise Interruption

    monkeypatch.setattr(prepare.shutil, "rmtree", refuse)
    with pytest.raises(Interruption):
        prepared(out)
    assert out.exists()
    assert partial.exists()
    monkeypatch.setattr(prepare.shutil, "rmtree", remove)
    with pytest.raises(DatasetError, match="exists"):
        prepared(out)
    assert not partial.exists()


def test_prepare__only_iterable_once__is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="read twice"):
        prepared(tmp_path / "set", iter(TEXTS))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="either"):
        prepare_dataset(TEXTS, tmp_path / "set", context=16)
    with pytest.raises(TypeError, match="either"):
        prepared(tmp_path / "set", tokenizer=GivenTokenizer(path=tmp_path))
