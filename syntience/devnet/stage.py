"""What a devnet needs before its chain starts: the data set, the first model, how long booting takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from protocol.ids import Hash32
from protocol.spec import DataSpec
from syntience.devnet.data import prepare_data
from syntience.devnet.presets import Preset

_IMPORT_CORE_S = 2.0
"""What importing the numeric libraries takes of one core where `_BOOT_CORE_S` was measured."""
_BOOT_CORE_S = 10.0
"""More than one role's process takes of one core until it works. Time that is left is skipped."""
_FOUNDING_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that does not depend on the chain.

    Attributes:
        preset: with the seed in its model.
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
    preset: Preset, *, seed: int, text: Path | None, cache_dir: Path, work: Path
) -> Stage:
    """Prepares the data set and the first model. Takes seconds of one core; run it in a thread."""
    began = time.process_time()
    from training.evaluate import Evaluator

    slowness = max(1.0, (time.process_time() - began) / _IMPORT_CORE_S)
    from training.dataset import TokenDataset
    from training.parameters import initial_parameters
    from training.roots import state_root

    preset = replace(preset, model=replace(preset.model, init_seed=seed))
    folder, data = prepare_data(preset, text, cache_dir=cache_dir, work=work)
    params = initial_parameters(preset.model)
    return Stage(
        preset=preset,
        dataset=folder,
        data=data,
        genesis_root=state_root(params),
        parameters=sum(tensor.size for tensor in params.values()),
        first_loss=Evaluator(preset.model).heldout_loss(params, TokenDataset.open(folder)),
        slowness=slowness,
    )


def lead_s(stage: Stage, *, processes: int, cores: int) -> int:
    """Seconds from the deployment to genesis: ample time for everybody to boot and to be registered."""
    return _FOUNDING_S + round(stage.slowness * _BOOT_CORE_S * processes / cores)
