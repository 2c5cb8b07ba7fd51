"""The Llama against Hugging Face's, and by its own properties."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protocol.model_spec import ModelSpec
from tests.specs import MODEL
from training.flat_model import FlatModel
from training.model import Llama, token_losses
from training.parameters import initial_parameters, shapes

UNTIED = replace(MODEL, tie_embeddings=False)
WIDE = replace(MODEL, hidden_size=96, heads=4, kv_heads=4, vocab_size=256, context=64)


def loaded(model: ModelSpec) -> Llama:
    flat = FlatModel(model)
    flat.load(initial_parameters(model))
    return flat.network


def tokens(model: ModelSpec, rows: int = 3) -> torch.Tensor:
    rng = np.random.default_rng(1)
    return torch.from_numpy(rng.integers(0, model.vocab_size, (rows, model.context)))


@pytest.mark.parametrize("model", [MODEL, UNTIED, WIDE])
def test_llama__parameters__are_those_of_shapes(model: ModelSpec) -> None:
    found = {name: tuple(p.shape) for name, p in loaded(model).named_parameters()}
    assert found == dict(shapes(model))


@pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None,
    reason="transformers is not installed (an extra: pip install transformers)",
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [MODEL, UNTIED, WIDE])
def test_llama__same_weights__computes_what_hugging_face_computes(model: ModelSpec) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=model.vocab_size,
        hidden_size=model.hidden_size,
        intermediate_size=model.intermediate_size,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        max_position_embeddings=model.context,
        rms_norm_eps=float(model.norm_eps),
        rope_theta=float(model.rope_theta),
        tie_word_embeddings=model.tie_embeddings,
        attention_bias=False,
        mlp_bias=False,
    )
    theirs = LlamaForCausalLM(config).eval()
    state = {name: torch.from_numpy(a) for name, a in initial_parameters(model).items()}
    if model.tie_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    theirs.load_state_dict(state)
    ids = tokens(model)
    with torch.inference_mode():
        expected = theirs(ids).logits
        found = loaded(model)(ids)
    assert (found - expected).abs().max().item() <= 1e-6
    assert torch.equal(found.argmax(-1), expected.argmax(-1))


def test_llama__future_tokens__change_nothing_before_them() -> None:
    llama, ids = loaded(MODEL), tokens(MODEL)
    changed = ids.clone()
    changed[:, 10:] = (changed[:, 10:] + 1) % MODEL.vocab_size
    with torch.inference_mode():
        assert torch.allclose(llama(ids)[:, :10], llama(changed)[:, :10], atol=1e-6)
        assert not torch.allclose(llama(ids)[:, 10:], llama(changed)[:, 10:], atol=1e-6)


def test_llama__first_weights__are_close_to_a_uniform_guess() -> None:
    samples = torch.cat([tokens(MODEL), tokens(MODEL)[:, :1]], dim=1)
    with torch.inference_mode():
        loss = token_losses(loaded(MODEL), samples)
    assert loss.shape == (3, MODEL.context)
    assert loss.mean().item() == pytest.approx(np.log(MODEL.vocab_size), abs=0.1)


def test_llama__construction__leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    Llama(MODEL)
    assert torch.equal(before, torch.get_rng_state())


def test_llama__construction__does_not_load_torchs_compiler() -> None:
    """It takes a second and 80 MB of every process."""
    code = (
        "import sys; from training.model import Llama; from tests.specs import MODEL; Llama(MODEL);"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
