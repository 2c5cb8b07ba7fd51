"""Tiny causal language models of `transformers` with random weights, saved as anybody saves one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from training.dataset import TOKENIZER
from training.json_files import json_text
from training.tokenizer import END_OF_TEXT, train_tokenizer
from training.words import TOKENIZER_CONFIG

VOCABULARY, CONTEXT = 300, 64
_SIZES: dict[str, dict[str, object]] = {
    "gpt2": {"n_positions": CONTEXT, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "bloom": {"hidden_size": 32, "n_layer": 1, "n_head": 4},
    "mixtral": {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
        "max_position_embeddings": CONTEXT,
        "num_local_experts": 3,
    },
}
for _name in ("bert", "gpt_neox", "llama", "qwen2"):
    _SIZES[_name] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": CONTEXT,
    }
_SIZES["qwen2"]["num_key_value_heads"] = 2
KINDS = ("gpt2", "gpt_neox", "qwen2", "bloom", "mixtral")
"""Tied and not, with learnt, rotary and no positions, with experts."""


def save_model(folder: Path, kind: str, *, seed: int = 0, **changes: object) -> Any:
    """Makes a model of a kind, saves it to a folder and returns it, ready to evaluate."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    settings = {
        "vocab_size": VOCABULARY,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
        **_SIZES[kind],
        **changes,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **settings))
    model.save_pretrained(folder)
    return model.eval()


def add_tokenizer(folder: Path, documents: list[str]) -> Tokenizer:
    """Trains a tokenizer and puts it beside a model."""
    tokenizer = train_tokenizer(documents, VOCABULARY)
    (folder / TOKENIZER).write_text(tokenizer.to_str())
    special = {"bos_token": END_OF_TEXT, "eos_token": END_OF_TEXT}
    (folder / TOKENIZER_CONFIG).write_bytes(json_text(special))
    return tokenizer
