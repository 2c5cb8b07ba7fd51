"""Models in folders: `transformers` loads what we write, we load what it writes, and what is no whole model of ours is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from protocol.errors import OperatorError
from tests.specs import MODEL
from tests.training.foreigners import CONTEXT, KINDS, VOCABULARY, add_tokenizer, save_model
from training.errors import ModelError
from training.flat_model import FlatModel
from training.model_folder import CONFIG, INDEX, WEIGHTS, StoredModel, read_model, write_model
from training.parameters import initial_parameters
from training.roots import state_root
from training.tokenizer import END_OF_TEXT, train_tokenizer
from training.words import Words

pytest.importorskip("transformers", reason="transformers is not installed (an extra)")
pytestmark = pytest.mark.filterwarnings("ignore")
UNTIED = replace(MODEL, tie_embeddings=False, init_seed=0)
TEXT = "Once upon a time there was a cat who saw the sea, and a dog who did not. " * 20
LLAMA = replace(MODEL, vocab_size=VOCABULARY, init_seed=0)
WORDS = Words(
    json=train_tokenizer([TEXT], VOCABULARY).to_str().encode(), start=END_OF_TEXT, end=END_OF_TEXT
)


def stored_llama(model=LLAMA) -> StoredModel:  # type: ignore[no-untyped-def]
    return StoredModel(model=model, params=initial_parameters(model), words=WORDS)


def some_tokens(rows: int = 3, length: int = 16) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(5).integers(0, 64, (rows, length)))


def our_logits(stored: StoredModel, tokens: torch.Tensor) -> torch.Tensor:
    flat = FlatModel(stored.model)
    flat.load(stored.params)
    with torch.inference_mode():
        logits: torch.Tensor = flat.network(tokens)
    return logits


def their_logits(folder: Path, tokens: torch.Tensor) -> torch.Tensor:
    from transformers import AutoModelForCausalLM

    with torch.inference_mode():
        logits: torch.Tensor = AutoModelForCausalLM.from_pretrained(folder)(tokens).logits
    return logits


@pytest.mark.parametrize("model", [LLAMA, replace(LLAMA, tie_embeddings=False, kv_heads=4)])
def test_write_model__our_llama__transformers_computes_the_same(tmp_path: Path, model) -> None:  # type: ignore[no-untyped-def]
    stored = stored_llama(model)
    write_model(stored, tmp_path / "out", extra={"README.md": b"# card\n"})
    difference = their_logits(tmp_path / "out", some_tokens()) - our_logits(stored, some_tokens())
    assert difference.abs().max().item() <= 1e-5
    again = read_model(tmp_path / "out")
    assert again.model == model
    assert again.words == WORDS
    assert state_root(again.params) == state_root(stored.params)
    assert (tmp_path / "out" / "README.md").read_bytes() == b"# card\n"


@pytest.mark.parametrize("kind", KINDS)
def test_read_model__foreign_kind__computes_what_it_did_and_goes_back(
    tmp_path: Path, kind: str
) -> None:
    theirs = save_model(tmp_path / "in", kind)
    stored = read_model(tmp_path / "in", context=16)
    with torch.inference_mode():
        expected = theirs(some_tokens()).logits
    assert (our_logits(stored, some_tokens()) - expected).abs().max().item() <= 1e-5
    write_model(stored, tmp_path / "out")
    assert (their_logits(tmp_path / "out", some_tokens()) - expected).abs().max().item() <= 1e-5
    again = read_model(tmp_path / "out", context=16)
    assert again.model == stored.model
    assert state_root(again.params) == state_root(stored.params)


def test_write_model__with_words__the_tokenizer_loads_and_text_is_generated(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    write_model(stored_llama(), tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert tokenizer(TEXT).input_ids == WORDS.tokenizer().encode(TEXT).ids
    assert tokenizer.decode(tokenizer(TEXT).input_ids) == TEXT
    assert (tokenizer.bos_token, tokenizer.eos_token) == (END_OF_TEXT, END_OF_TEXT)
    assert model.generation_config.eos_token_id == 0
    made = model.generate(**tokenizer("Once", return_tensors="pt"), do_sample=False)
    assert 1 < made.shape[1] <= len(tokenizer("Once").input_ids) + LLAMA.context // 2


def test_read_model__a_llama_as_transformers_saves_it__is_ours(tmp_path: Path) -> None:
    theirs = save_model(tmp_path, "llama", num_key_value_heads=2)
    tokenizer = add_tokenizer(tmp_path, [TEXT])
    stored = read_model(tmp_path)
    assert stored.model == replace(
        stored.model, hidden_size=32, heads=4, kv_heads=2, context=CONTEXT, norm_eps="0.000001"
    )
    assert stored.words is not None
    assert stored.words.json == tokenizer.to_str().encode()
    assert (stored.words.start, stored.words.end) == (END_OF_TEXT, END_OF_TEXT)
    with torch.inference_mode():
        difference = our_logits(stored, some_tokens()) - theirs(some_tokens()).logits
    assert difference.abs().max().item() <= 1e-5


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_bias": True},
        {"mlp_bias": True},
        {"hidden_act": "gelu"},
        {"head_dim": 16},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10_000.0}},
    ],
)
def test_read_model__a_llama_unlike_ours__is_transformers_own(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    theirs = save_model(tmp_path, "llama", **changes)
    stored = read_model(tmp_path, context=16)
    assert getattr(stored.model, "architecture", None) == "LlamaForCausalLM"
    with torch.inference_mode():
        difference = our_logits(stored, some_tokens()) - theirs(some_tokens()).logits
    assert difference.abs().max().item() <= 1e-5


def test_read_model__half_precision_in_several_files__is_read_as_fp32(tmp_path: Path) -> None:
    stored = stored_llama(UNTIED)
    write_model(replace(stored, words=None), tmp_path / "whole")
    tensors = {name: torch.from_numpy(each).bfloat16() for name, each in stored.params.items()}
    from safetensors.torch import save_file as save_torch

    names, parts = sorted(tensors), tmp_path / "parts"
    parts.mkdir()
    shutil.copy(tmp_path / "whole" / CONFIG, parts)
    places = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(names)}
    for file in set(places.values()):
        save_torch({name: tensors[name] for name in names if places[name] == file}, parts / file)
    (parts / INDEX).write_text(json.dumps({"weight_map": places}))
    found = read_model(parts).params
    assert all(np.array_equal(found[name], tensors[name].float().numpy()) for name in names)


def _config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**config, **changes}))


def _tensors(folder: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / CONFIG).unlink(), "can't read"),
        (lambda f: (f / CONFIG).write_text("{"), "can't read"),
        (lambda f: (f / CONFIG).write_text("[1]"), "no JSON object"),
        (lambda f: (f / WEIGHTS).unlink(), "no weights in safetensors"),
        (lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin"), "no weights in safetensors"),
        (lambda f: (f / WEIGHTS).write_bytes(b"x" * 100), "can't read"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "no tokenizer"),
        (lambda f: _config(f, auto_map={"AutoModelForCausalLM": "code.Mine"}), "its own code"),
        (lambda f: _config(f, num_hidden_layers=3), "missing"),
        (lambda f: _config(f, num_hidden_layers=1), "unknown"),
        (lambda f: _config(f, num_hidden_layers="2"), "no whole number"),
        (lambda f: _config(f, num_attention_heads=0), "can't read"),
        (lambda f: _config(f, intermediate_size=41), "is .* not"),
        (lambda f: _config(f, rms_norm_eps="small"), "no number"),
        (lambda f: _tensors(f, lambda t: t["model.norm.weight"].fill(np.nan)), "NaN"),
        (
            lambda f: _tensors(
                f, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"] + 1})
            ),
            "not tied",
        ),
    ],
)
def test_read_model__damaged_folder__is_refused(tmp_path: Path, damage, message: str) -> None:  # type: ignore[no-untyped-def]
    write_model(stored_llama(), tmp_path / "out")
    damage(tmp_path / "out")
    with pytest.raises(OperatorError, match=message):
        read_model(tmp_path / "out")


def test_read_model__tied_head_written_out_and_old_tables__are_as_nothing(tmp_path: Path) -> None:
    write_model(stored_llama(), tmp_path / "out")
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2, np.float32)}
    _tensors(
        tmp_path / "out",
        lambda t: t.update({**extra, "lm_head.weight": t["model.embed_tokens.weight"]}),
    )
    assert state_root(read_model(tmp_path / "out").params) == state_root(stored_llama().params)


def test_write_model__folder_that_exists__is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="exists"):
        write_model(stored_llama(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_write_model__killed_in_the_middle__leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(ModelError, match="No space left"):
        write_model(stored_llama(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_read_model__our_llama__does_not_import_transformers(tmp_path: Path) -> None:
    """It takes seconds, and is an extra."""
    write_model(stored_llama(), tmp_path / "out")
    code = (
        "import sys; from pathlib import Path; from training.model_folder import read_model, write_model;"
        "stored = read_model(Path(sys.argv[1])); write_model(stored, Path(sys.argv[2]));"
        "sys.exit('transformers' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out"), str(tmp_path / "again")]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
