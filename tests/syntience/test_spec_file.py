"""A new run's spec from an old one: what follows from the data set follows, and what can't be is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import OperatorError
from protocol.spec import RunSpec
from syntience.cli.app import run
from syntience.spec_file import changed_spec, derive_spec
from tests.chain import ROOT
from tests.specs import SPEC
from training.parameters import initial_parameters
from training.prepare import prepare_dataset
from training.roots import state_root


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spec") / "data"
    prepare_dataset([(ROOT / "LICENSE").read_text()], folder, vocab_size=300, context=24)
    return folder


def test_derive_spec__other_data_and_numbers__everything_follows(data: Path) -> None:
    changes = ["chain.train_s=60", "inner.steps=3", "inner.learning_rate=0.01", "model.layers=1"]
    spec = derive_spec(SPEC, data=data, changes=changes)
    assert (spec.model.vocab_size, spec.model.context, spec.model.layers) == (300, 24, 1)
    assert (spec.chain.train_s, spec.chain.steps, spec.chain.samples_per_round) == (60, 3, 12)
    assert spec.inner.learning_rate == "0.01"
    assert spec.chain.genesis_root == state_root(initial_parameters(spec.model))
    assert spec.chain.dataset_root == spec.data.dataset_root
    assert derive_spec(spec, data=data, changes=[]) == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("chain.nothing=1", "nothing to set"),
        ("outer.rul=demo", "nothing to set .* outer has rule, alpha, top_g"),
        ("outer.rule=adam", "outer.rule 'adam' is none of"),
        ("chain.steps=3", "chain.steps follows from inner.steps"),
        ("data.name=other", "data.name follows from the data set"),
        ("model.context=32", "model.context follows from the data set"),
        ("train_s=1", "nothing to set"),
        ("chain.train_s", "nothing to set"),
        ("chain.train_s=soon", "whole number"),
        ("inner.learning_rate=fast", "not a decimal"),
        ("inner.batch=1000000", "fewer training samples"),
        ("compute.dtype=float16", "unknown compute dtype"),
        ("compute.micro_batch=3", "micro_batch does not divide"),
    ],
)
def test_derive_spec__wrong_change__says_so(data: Path, change: str, message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        derive_spec(SPEC, data=data, changes=[change])


def test_changed_spec__other_numbers__keep_the_data_and_carry_over_to_the_chain() -> None:
    changes = [
        "inner.batch=2",
        "compute.micro_batch=2",
        "codec.chunk=64",
        "codec.k=4",
        "codec.transform=dct",
        "outer.rule=demo",
    ]
    spec = changed_spec(SPEC, changes)
    assert (spec.chain.samples_per_round, spec.chain.codec_chunk) == (4, 64)
    assert (spec.codec.transform, spec.outer.rule) == ("dct", "demo")
    assert (spec.data, spec.chain.genesis_root) == (SPEC.data, SPEC.chain.genesis_root)
    assert changed_spec(spec, []) == spec


def test_changed_spec__another_model__has_another_genesis_root() -> None:
    spec = changed_spec(SPEC, ["model.layers=1"])
    assert spec.chain.genesis_root == state_root(initial_parameters(spec.model))


def test_spec_command__writes_what_deploy_takes_and_never_overwrites(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    like, out = tmp_path / "like.json", tmp_path / "spec.json"
    like.write_bytes(SPEC.to_bytes())
    command = ["spec", "--like", str(like), "--data", str(data), "--out", str(out)]
    assert run(command) == 0
    assert RunSpec.from_bytes(out.read_bytes().rstrip()) == derive_spec(SPEC, data=data, changes=[])
    assert run(command) == 1
    assert "exists" in capsys.readouterr().err
