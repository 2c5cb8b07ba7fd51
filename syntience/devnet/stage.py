"""What a devnet needs before its chain starts: the data set, the first model, how long booting takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.ids import Hash32
from protocol.model_spec import LlamaSpec
from protocol.spec import DataSpec
from syntience.devnet.data import prepare_data
from syntience.devnet.presets import Preset, preset_named
from syntience.errors import ConfigError

if TYPE_CHECKING:
    from training.parameters import Parameters
    from training.vocabulary import GivenTokenizer

_IMPORT_CORE_S = 2.0
"""What importing the numeric libraries takes of one core where `_BOOT_CORE_S` was measured."""
_BOOT_CORE_S = 10.0
"""More than one role's process takes of one core until it works. Time that is left is skipped."""
_LIBRARY_CORE_S = 5.0
"""What importing transformers takes on top."""
_FOUNDING_S = 30
_EVALUATED = 256
"""Samples of the first evaluation."""
_FINE_TUNING_RATE = "0.0005"
"""Of a trained model; the presets' rate, made for random weights, would first spoil what it knows."""
_ROOMY = "small"
"""Whose windows a model gets of which nobody has measured how long it takes to examine."""
_BACKWARD = 3.5
"""A training step takes so many times a forward pass: twice as much for the gradients, and the optimiser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that does not depend on the chain.

    Attributes:
        preset: with the seed in its model, or with the model to start from.
        dataset: folder of the prepared data set.
        parameters: how many the model has.
        first_loss: held-out loss of the first model, in nats per token.
        slowness: how much longer imports take here than where the estimates come from, at least 1.
    """

    preset: Preset
    dataset: Path
    data: DataSpec
    genesis_root: Hash32
    parameters: int
    first_loss: float
    slowness: float


def set_stage(
    preset: Preset,
    *,
    seed: int,
    start: Path | None,
    text: Path | None,
    cache_dir: Path,
    work: Path,
) -> Stage:
    """Prepares the data set and the first model. Takes seconds of one core; run it in a thread.

    Args:
        preset: how it is trained, and what, unless there is something to start from.
        seed: of the first weights.
        start: a folder with the model to start from.
        text: to train on; None takes the default.
        cache_dir: where the default text is kept.
        work: where prepared data sets are kept.

    Raises:
        OperatorError: no model that can be trained, no text, or no room.
    """
    began = time.process_time()
    from training.evaluate import Evaluator

    slowness = max(1.0, (time.process_time() - began) / _IMPORT_CORE_S)
    from training.dataset import TokenDataset
    from training.roots import state_root

    opening = _from_seed(preset, seed) if start is None else _from_folder(preset, start)
    preset, params = opening.preset, opening.params
    folder, data = prepare_data(
        preset, text, cache_dir=cache_dir, work=work, tokenizer=opening.tokenizer
    )
    dataset = TokenDataset.open(folder)
    began = time.process_time()
    first_loss = Evaluator(preset.model).heldout_loss(params, dataset, limit=_EVALUATED)
    if start is not None:
        samples = min(_EVALUATED, data.total_samples - data.train_samples)
        per_sample_s = (time.process_time() - began) / samples
        trained = preset.inner.steps * preset.inner.batch
        preset = replace(preset, train_core_s=_BACKWARD * per_sample_s * trained)
    return Stage(
        preset=preset,
        dataset=folder,
        data=data,
        genesis_root=state_root(params),
        parameters=sum(tensor.size for tensor in params.values()),
        first_loss=first_loss,
        slowness=slowness,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """The first model, and its own tokenizer if it has one."""

    preset: Preset
    params: Parameters
    tokenizer: GivenTokenizer | None


def _from_seed(preset: Preset, seed: int) -> _Opening:
    from training.parameters import initial_parameters

    assert isinstance(preset.model, LlamaSpec), "presets train the project's own model"
    model = replace(preset.model, init_seed=seed)
    return _Opening(
        preset=replace(preset, model=model), params=initial_parameters(model), tokenizer=None
    )


def _from_folder(preset: Preset, folder: Path) -> _Opening:
    """The model in a folder, seeing no more tokens at once than the preset's."""
    from training.dataset import TOKENIZER
    from training.model_folder import read_model
    from training.tokenizer import vocabulary_size
    from training.vocabulary import GivenTokenizer

    stored = read_model(folder, context=preset.model.context)
    if stored.words is None or stored.words.end is None:
        raise ConfigError(
            f"the model in {folder} has no tokenizer with an end of text",
            "add its tokenizer.json, and a tokenizer_config.json that names the eos_token",
        )
    if vocabulary_size(stored.words.tokenizer()) > stored.model.vocab_size:
        raise ConfigError(
            f"the tokenizer in {folder} has more tokens than its model", "get an intact copy"
        )
    roomy = preset_named(_ROOMY)
    return _Opening(
        preset=replace(
            preset,
            model=stored.model,
            inner=replace(preset.inner, learning_rate=_FINE_TUNING_RATE),
            start="checkpoint",
            windows=roomy.windows,
            brisk=roomy.brisk,
        ),
        params=stored.params,
        tokenizer=GivenTokenizer(path=folder / TOKENIZER, end_token=stored.words.end),
    )


def lead_s(stage: Stage, *, processes: int, cores: int) -> int:
    """Seconds from the deployment to genesis: ample time for everybody to boot and to be registered."""
    own = isinstance(stage.preset.model, LlamaSpec)
    boot_core_s = _BOOT_CORE_S + (0.0 if own else _LIBRARY_CORE_S)
    return _FOUNDING_S + round(stage.slowness * boot_core_s * processes / cores)
