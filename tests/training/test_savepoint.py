"""Progress on disk: a round goes on from it to the same bits, after a kill at any moment and past any damage."""

from __future__ import annotations

import errno
import itertools
import logging
import os
import random
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import Hash32, Round
from tests.specs import MODEL, SPEC, some_hash
from tests.training.samples import SMALL, random_tensors, round_samples, same_bits
from training.arithmetic import Arithmetic
from training.errors import TrainingDiverged
from training.inner import InnerState, RoundStart, RoundWork, round_inputs, train_round
from training.local_state import LocalState
from training.parameters import initial_parameters
from training.roots import local_root, state_root
from training.savepoint import Progress, Savepoints

STEPS = 12
INPUTS, OTHERS = some_hash("inputs"), some_hash("other inputs")
THETA = initial_parameters(MODEL)
INNER = replace(SPEC.inner, steps=STEPS, trace_every=5)
ARITHMETIC = Arithmetic(model=MODEL, inner=INNER, codec=SMALL, compute=SPEC.compute)


def carried() -> LocalState:
    """What an earlier round left, error feedback included."""
    v = {name: array**2 for name, array in random_tensors(2, 0.01).items()}
    return LocalState(m=random_tensors(1, 0.01), v=v, e=random_tensors(3, 0.01), step=20)


def start(steps: int = STEPS) -> RoundStart:
    samples = np.concatenate([round_samples(seed) for seed in range(-(-steps // 2))])[:steps]
    return RoundStart(
        round=Round(3),
        state=InnerState(params=THETA, local=carried()),
        root=state_root(THETA),
        samples=samples,
    )


def ends(work: RoundWork) -> tuple[object, ...]:
    """Everything of a round that is signed or carried on."""
    return (
        work.payload.to_bytes(),
        work.trace_leaves,
        work.local_in_root,
        local_root(work.local_out),
        work.mean_loss,
    )


def progress(seed: int, steps: int = 3) -> Progress:
    local = replace(carried(), m=random_tensors(seed), step=20 + steps)
    losses = tuple(float(loss) for loss in np.random.default_rng(seed).standard_normal(steps))
    return Progress(
        params=random_tensors(seed + 1), local=local, losses=losses, trace=(b"a" * 64, b"b" * 64)
    )


def same(a: Progress | None, b: Progress) -> bool:
    return (
        a is not None
        and same_bits(a.params, b.params)
        and a.local.to_blob() == b.local.to_blob()
        and (a.losses, a.trace) == (b.losses, b.trace)
    )


def latest(folder: Path, inputs: Hash32 = INPUTS) -> Progress | None:
    return Savepoints(folder, every_s=0).latest(inputs, model=MODEL, start=carried())


class Crash(BaseException):
    """Ends a round from inside."""


class Dying(Savepoints):
    """Dies after some savepoints."""

    def __init__(self, folder: Path, lives: int) -> None:
        super().__init__(folder, every_s=0)
        self._lives = lives

    def save(self, inputs: Hash32, progress: Progress) -> None:
        super().save(inputs, progress)
        self._lives -= 1
        if not self._lives:
            raise Crash


def test_savepoints__saved__comes_back_to_the_bit(tmp_path: Path) -> None:
    assert latest(tmp_path / "none") is None
    Savepoints(tmp_path, every_s=0).save(INPUTS, progress(1))
    assert same(latest(tmp_path), progress(1))
    assert latest(tmp_path, OTHERS) is None


def test_savepoints__many__keeps_the_two_furthest_and_none_of_other_inputs(tmp_path: Path) -> None:
    saved = Savepoints(tmp_path, every_s=0)
    saved.save(OTHERS, progress(9, 40))
    for steps in (1, 2, 3):
        saved.save(INPUTS, progress(steps, steps))
    assert len(list(tmp_path.iterdir())) == 2
    assert same(latest(tmp_path), progress(3, 3))
    assert latest(tmp_path, OTHERS) is None
    (tmp_path / ".draft-left").write_bytes(b"of a killed process")
    saved.clear()
    assert list(tmp_path.iterdir()) == []
    saved.clear()


def test_savepoints__due__by_its_clock(tmp_path: Path) -> None:
    now = 100.0
    saved = Savepoints(tmp_path, every_s=60, clock=lambda: now)
    now += 59
    assert not saved.is_due
    now += 1
    assert saved.is_due
    saved.latest(INPUTS, model=MODEL, start=carried())
    assert not saved.is_due, "a round is taken up: its time counts from here"
    now += 60
    assert saved.is_due
    saved.save(INPUTS, progress(1))
    assert not saved.is_due


@pytest.fixture(scope="module")
def two_saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("savepoints")
    for steps in (1, 2):
        Savepoints(folder, every_s=0).save(INPUTS, progress(steps, steps))
    return folder


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_savepoints__damaged_anywhere__gives_the_one_before(
    data: st.DataObject, two_saved: Path
) -> None:
    newest = max(two_saved.iterdir())
    whole = newest.read_bytes()
    content = bytearray(whole)
    if data.draw(st.booleans(), label="torn"):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    newest.write_bytes(content)
    assert same(latest(two_saved), progress(1, 1))
    newest.write_bytes(whole)
    assert same(latest(two_saved), progress(2, 2))


def test_savepoints__all_damaged__says_so_and_begins_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    saved = Savepoints(tmp_path, every_s=0)
    for steps in (1, 2):
        saved.save(INPUTS, progress(steps, steps))
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert latest(tmp_path) is None
    assert caplog.text.count("damaged, passed over") == 2


def test_savepoints__disk_that_refuses__lets_training_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    undisturbed = ends(train_round(start(), ARITHMETIC))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        work = train_round(start(), ARITHMETIC, savepoints=Savepoints(tmp_path, every_s=0))
    assert ends(work) == undisturbed
    assert "without a savepoint: No space left" in caplog.text
    assert list(tmp_path.iterdir()) == [], "no draft is left"


@pytest.mark.parametrize("lives", range(1, STEPS))
def test_train_round__cut_off_after_any_step__goes_on_to_the_same_bits(
    tmp_path: Path, lives: int
) -> None:
    with pytest.raises(Crash):
        train_round(start(), ARITHMETIC, savepoints=Dying(tmp_path, lives))
    saved = latest(tmp_path, round_inputs(start(), ARITHMETIC, local_root(carried())))
    assert saved is not None
    assert len(saved.losses) == lives
    resumed = train_round(start(), ARITHMETIC, savepoints=Savepoints(tmp_path, every_s=1e9))
    assert ends(resumed) == ends(train_round(start(), ARITHMETIC))


def test_train_round__other_inputs__do_not_go_on_from_there(tmp_path: Path) -> None:
    with pytest.raises(Crash):
        train_round(start(), ARITHMETIC, savepoints=Dying(tmp_path, 5))
    here = start()
    others = [
        (replace(here, round=Round(4)), ARITHMETIC),
        (replace(here, samples=here.samples[::-1].copy()), ARITHMETIC),
        (replace(here, state=replace(here.state, local=LocalState.zeros(MODEL))), ARITHMETIC),
        (here, replace(ARITHMETIC, inner=replace(INNER, learning_rate="0.002"))),
        (here, replace(ARITHMETIC, compute=replace(SPEC.compute, micro_batch=2))),
    ]
    for begun, arithmetic in others:
        inputs = round_inputs(begun, arithmetic, local_root(begun.state.local))
        assert latest(tmp_path, inputs) is None
    assert latest(tmp_path, round_inputs(here, ARITHMETIC, local_root(carried()))) is not None


def test_train_round__diverged__is_not_saved(tmp_path: Path) -> None:
    broken = {name: array * np.float32(np.nan) for name, array in THETA.items()}
    begun = replace(start(), state=InnerState(params=broken, local=carried()))
    with pytest.raises(TrainingDiverged):
        train_round(begun, ARITHMETIC, savepoints=Savepoints(tmp_path, every_s=0))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- real kills


@pytest.fixture(scope="module")
def fork() -> ForkServerContext:
    """Processes that are there at once: their server imported everything before."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def save_for_ever(folder: Path) -> None:
    saved, made = Savepoints(folder, every_s=0), progress(0)
    for steps in itertools.count(1):
        saved.save(INPUTS, replace(made, losses=(0.5,) * steps))


def do_round(folder: Path, result: Path) -> None:
    """A round that saves after each step; its end is written whole or not at all."""
    work = train_round(start(), ARITHMETIC, savepoints=Savepoints(folder, every_s=0))
    draft = result.with_suffix(".draft")
    draft.write_text(repr(ends(work)))
    draft.replace(result)


def killed(process: ForkServerProcess, after_s: float) -> bool:
    """Starts it and kills it by SIGKILL; whether that came before its end."""
    process.start()
    process.join(after_s)
    process.kill()
    process.join()
    assert process.exitcode in (0, -9)
    return process.exitcode == -9


def test_save__killed_at_random_moments__leaves_a_good_one_that_is_never_older(
    tmp_path: Path, fork: ForkServerContext
) -> None:
    rng, drafts, furthest = random.Random(1), 0, 0
    Savepoints(tmp_path, every_s=0).save(INPUTS, progress(0))
    for _ in range(30):
        process = fork.Process(target=save_for_ever, args=(tmp_path,))
        assert killed(process, rng.uniform(0.1, 0.3))
        files = list(tmp_path.iterdir())
        drafts += any(path.name.startswith(".draft") for path in files)
        found = latest(tmp_path)
        assert found is not None
        assert same(found, replace(progress(0), losses=found.losses))
        steps = [int(path.name.split("-")[1]) for path in files if path.suffix == ".safetensors"]
        assert len(found.losses) == max(steps), "what has a name is whole"
        furthest = max(furthest, *steps)
    assert furthest > 3
    assert drafts > 5, "kills fell into saves"


def test_train_round__killed_again_and_again__ends_in_the_bits_of_an_undisturbed_one(
    tmp_path: Path, fork: ForkServerContext
) -> None:
    do_round(tmp_path / "whole", tmp_path / "undisturbed")
    undisturbed = (tmp_path / "undisturbed").read_text()
    rng, kills, rounds = random.Random(2), 0, 0
    while kills < 25:
        rounds += 1
        folder, result = tmp_path / str(rounds), tmp_path / f"result {rounds}"
        for patience in itertools.count(1):
            process = fork.Process(target=do_round, args=(folder, result))
            if not killed(process, rng.uniform(0.02, 0.2) * patience**0.5):
                break
            kills += 1
        assert result.read_text() == undisturbed
