"""The first model of a devnet: a preset's from its seed, or one from a folder, with its own tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.model_spec import LlamaSpec, TransformersSpec
from syntience.devnet.presets import Crowd, build_spec, preset_named
from syntience.devnet.stage import lead_s, set_stage
from syntience.errors import ConfigError
from tests.training.foreigners import VOCABULARY, add_tokenizer, save_model
from training.dataset import TOKENIZER
from training.model_folder import read_model
from training.parameters import initial_parameters
from training.roots import state_root
from training.words import TOKENIZER_CONFIG

TEXT = "".join(f"The ship {number} came in from the sea at dawn. " for number in range(600))
TINY = preset_named("tiny")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "ships.txt"
    path.write_text(TEXT)
    return path


def test_set_stage__no_folder__is_the_preset_from_its_seed(text: Path, tmp_path: Path) -> None:
    stage = set_stage(TINY, seed=5, start=None, text=text, cache_dir=tmp_path, work=tmp_path)
    assert isinstance(stage.preset.model, LlamaSpec)
    assert stage.genesis_root == state_root(initial_parameters(stage.preset.model))
    assert (stage.preset.start, stage.preset.model.init_seed) == ("seed", 5)


@pytest.mark.filterwarnings("ignore")
def test_set_stage__a_folder__is_its_model_with_its_words(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed (an extra)")
    folder = tmp_path / "gpt2"
    save_model(folder, "gpt2")
    tokenizer = add_tokenizer(folder, [TEXT])
    stage = set_stage(TINY, seed=5, start=folder, text=text, cache_dir=tmp_path, work=tmp_path)
    assert isinstance(stage.preset.model, TransformersSpec)
    assert stage.genesis_root == state_root(read_model(folder).params)
    assert (stage.dataset / TOKENIZER).read_bytes() == tokenizer.to_str().encode()
    assert stage.preset.train_core_s > 0
    spec = build_spec(
        stage.preset,
        Crowd(miners=1, processes=3, cores=2),
        data=stage.data,
        genesis_root=stage.genesis_root,
        genesis_time=1_000,
        rounds_per_epoch=2,
    )
    assert (spec.start, spec.model.vocab_size, spec.model.context) == ("checkpoint", VOCABULARY, 64)
    own = set_stage(TINY, seed=5, start=None, text=text, cache_dir=tmp_path, work=tmp_path)
    assert lead_s(stage, processes=4, cores=2) >= lead_s(own, processes=4, cores=2)


@pytest.mark.filterwarnings("ignore")
def test_set_stage__a_folder_without_fitting_words__says_so(text: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed (an extra)")
    folder = tmp_path / "llama"

    def stage() -> None:
        set_stage(TINY, seed=5, start=folder, text=text, cache_dir=tmp_path, work=tmp_path)

    save_model(folder, "llama", vocab_size=280)
    with pytest.raises(ConfigError, match="no tokenizer with an end of text"):
        stage()
    add_tokenizer(folder, [TEXT])
    with pytest.raises(ConfigError, match="more tokens than its model"):
        stage()
    (folder / TOKENIZER_CONFIG).write_text("{}")
    (folder / "generation_config.json").unlink()
    save_model(folder, "llama", eos_token_id=None)
    (folder / "generation_config.json").unlink()
    with pytest.raises(ConfigError, match="no tokenizer with an end of text"):
        stage()
