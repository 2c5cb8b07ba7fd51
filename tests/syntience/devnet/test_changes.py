"""`--set`: a preset with other values, what follows from them, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.errors import OperatorError
from syntience.devnet.changes import changed_preset, changed_run
from syntience.devnet.presets import Crowd, build_spec, preset_named
from tests.specs import SPEC, some_hash

CROWD = Crowd(miners=4, processes=8, cores=2)
DEMO = (
    "outer.rule=demo",
    "outer.alpha=0.012",
    "outer.schedule.shape=cosine",
    "outer.schedule.decay_to=20",
    "outer.schedule.final=0.1",
    "codec.transform=dct",
    "codec.feedback=0.999",
)


def test_changed_preset__nothing__is_the_preset() -> None:
    assert changed_preset(preset_named("tiny"), ()) == preset_named("tiny")


def test_changed_preset__model_and_inner_loop__are_its_own_and_take_longer() -> None:
    before = preset_named("tiny")
    changes = ("model.context=128", "inner.steps=20", "inner.learning_rate=0.001", *DEMO)
    after = changed_preset(before, changes)
    assert (after.model.context, after.inner.steps) == (128, 20)
    assert after.inner.learning_rate == "0.001"
    assert after.train_core_s == 4 * before.train_core_s
    assert replace(after.model, context=before.model.context) == before.model


def test_changed_run__of_a_devnet__has_all_changes_and_the_presets_rest() -> None:
    changes = (*DEMO, "chain.train_s=30", "inner.batch=4", "scoring.phi=0.5")
    preset = changed_preset(preset_named("tiny"), changes)
    data = replace(SPEC.data, train_samples=1_000, sample_tokens=preset.model.context + 1)
    plain = build_spec(
        preset,
        CROWD,
        data=replace(data, total_samples=1_100),
        genesis_root=some_hash("genesis"),
        genesis_time=0,
        rounds_per_epoch=3,
    )
    spec = changed_run(plain, changes)
    assert (spec.outer.rule, spec.outer.alpha_at(20)) == ("demo", pytest.approx(0.0012))  # type: ignore[arg-type]
    assert (spec.codec.transform, spec.codec.feedback) == ("dct", "0.999")
    assert (spec.chain.train_s, spec.scoring.phi) == (30, "0.5")
    assert (spec.chain.samples_per_round, spec.inner.batch) == (40, 4)
    assert spec.chain.genesis_root == some_hash("genesis"), "the first model is the preset's"
    assert (spec.model, spec.inner) == (preset.model, preset.inner)
    longer = 3 * (spec.chain.round_s - plain.chain.round_s)
    assert spec.chain.unbonding_s == plain.chain.unbonding_s + 5 * longer, "bounds follow"
    chosen = changed_run(plain, ("chain.train_s=30", "chain.unbonding_s=9999"))
    assert chosen.chain.unbonding_s == 9999


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("outer.rule=adam", "none of sparseloco, demo"),
        ("outer.rul=demo", "nothing to set"),
        ("outer", "nothing to set"),
        ("codec.bits=3", "3 bits is not known"),
        ("codec.transform=fft", "none of none, dct"),
        ("model.heads=5", "does not divide"),
        ("model.init_seed=9", "follows from --seed"),
        ("inner.steps=none", "whole number"),
        ("inner.schedule.shape=step", "none of linear, cosine"),
        ("chain.rounds_per_epoch=2", "follows from --rounds-per-epoch"),
        ("chain.genesis_time=2", "follows from the chain's time"),
        ("chain.codec_bits=1", "follows from codec.bits"),
        ("data.train_samples=9", "follows from the data set"),
    ],
)
def test_changed_preset__a_change_that_makes_no_sense__is_refused(change: str, said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        changed_preset(preset_named("tiny"), (change,))
