"""Architectures of `transformers` as networks of ours: what is refused, and that nothing random takes part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.ids import Round
from protocol.model_spec import TransformersSpec, config_text
from tests.specs import SPEC
from tests.training.foreigners import CONTEXT, KINDS, VOCABULARY, save_model
from training import foreign
from training.arithmetic import Arithmetic
from training.errors import ModelError
from training.flat_model import FlatModel
from training.inner import InnerState, RoundStart, RoundWork, train_round
from training.local_state import LocalState
from training.model_folder import read_model
from training.parameters import shapes
from training.roots import state_root

pytest.importorskip("transformers", reason="transformers is not installed (an extra)")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> TransformersSpec:
    folder = tmp_path_factory.mktemp("gpt2")
    save_model(folder, "gpt2")
    model = read_model(folder, context=16).model
    assert isinstance(model, TransformersSpec)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_shapes__foreign_kind__are_those_of_its_parameters_tied_ones_once(
    tmp_path: Path, kind: str
) -> None:
    theirs = save_model(tmp_path, kind)
    model = read_model(tmp_path).model
    expected = {name: tuple(each.shape) for name, each in theirs.named_parameters()}
    assert dict(shapes(model)) == expected
    assert list(shapes(model)) == sorted(expected)
    tied = theirs.get_input_embeddings().weight is theirs.get_output_embeddings().weight
    assert ("lm_head.weight" in expected or "embed_out.weight" in expected) != tied


def test_build__gpt2__leaves_the_global_generator_alone(gpt2: TransformersSpec) -> None:
    before = torch.get_rng_state()
    FlatModel(gpt2)
    foreign.tensor_shapes(gpt2)
    assert torch.equal(before, torch.get_rng_state())


def test_flat_model__gpt2__its_ties_are_kept_and_its_memory_is_flat(gpt2: TransformersSpec) -> None:
    flat = FlatModel(gpt2)
    flat.theta.copy_(torch.linspace(-1, 1, flat.layout.size))
    head = flat.network.get_output_embeddings().weight  # type: ignore[operator]
    assert head is flat.network.get_input_embeddings().weight  # type: ignore[operator]
    assert np.array_equal(head.detach().numpy(), flat.parameters()["transformer.wte.weight"])
    flat.network(torch.arange(12).view(2, 6)).sum().backward()
    assert all(each.grad is not None for each in flat.network.parameters())


def test_flat_model__gpt2_with_checkpointed_activations__is_refused(gpt2: TransformersSpec) -> None:
    with pytest.raises(ModelError, match="activation checkpointing"):
        FlatModel(gpt2, checkpoint_activations=True)


def test_train_round__gpt2_with_dropout_in_its_configuration__is_the_same_twice_and_learns(
    tmp_path: Path,
) -> None:
    save_model(tmp_path, "gpt2", resid_pdrop=0.5, embd_pdrop=0.5)
    stored = read_model(tmp_path, context=16)
    inner = replace(SPEC.inner, steps=20, learning_rate="0.01", trace_every=10)
    samples = np.tile(np.arange(17, dtype=np.int64), (inner.steps, inner.batch, 1))

    state = InnerState(params=stored.params, local=LocalState.zeros(stored.model))
    start = RoundStart(round=Round(1), state=state, root=state_root(stored.params), samples=samples)

    def work() -> RoundWork:
        compute = replace(SPEC.compute, micro_batch=2)
        return train_round(
            start,
            Arithmetic(model=stored.model, inner=inner, codec=SPEC.codec, compute=compute),
        )

    first, second = work(), work()
    assert (first.payload_root, first.trace_root) == (second.payload_root, second.trace_root)
    assert first.mean_loss < 0.7 * np.log(VOCABULARY)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "GPT2Model"}, "is of a GPT2LMHeadModel"),
        ({"vocab_size": 301}, "vocabulary has 300"),
        ({"context": CONTEXT + 1}, "sees 64 tokens"),
        ({"config": config_text({"model_type": "no-such-model"})}, "can't build"),
        ({"config": config_text({"model_type": "t5"})}, "can't build"),
        ({"config": config_text({"model_type": "gpt2", "n_head": 0})}, "can't build"),
    ],
)
def test_shapes__spec_that_the_library_can_t_build__is_the_operator_s_to_mend(
    gpt2: TransformersSpec, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        foreign.tensor_shapes(replace(gpt2, **changes))  # type: ignore[arg-type]  # fields by name


def test_read_model__architecture_that_sees_the_future__is_refused(tmp_path: Path) -> None:
    save_model(tmp_path / "encoder", "bert")
    with pytest.raises(ModelError, match="not causal"):
        read_model(tmp_path / "encoder")
    save_model(tmp_path / "decoder", "bert", is_decoder=True)
    assert read_model(tmp_path / "decoder").model.vocab_size == VOCABULARY


def test_read_model__architecture_without_a_longest_context__gets_the_one_asked_for(
    tmp_path: Path,
) -> None:
    save_model(tmp_path, "bloom")
    assert read_model(tmp_path).model.context == foreign.UNBOUNDED_CONTEXT
    assert read_model(tmp_path, context=48).model.context == 48


def test_read_model__tensor_missing__is_refused_and_not_made_up(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_model(tmp_path, "gpt2")
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["transformer.h.1.ln_1.weight"]
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="lacks 1 tensors"):
        read_model(tmp_path)


def test_read_model__quantised__is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="quantised"):
        foreign._relevant({"model_type": "gpt2", "quantization_config": {"bits": 4}})


def test_library__not_installed__says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    foreign.library.cache_clear()
    monkeypatch.setattr("training.foreign.importlib.import_module", absent)
    with pytest.raises(ModelError, match="pip install 'syntience\\[transformers\\]'"):
        foreign.library()
