"""`--set part.field=value`: a devnet's run with other values than its preset's, refused before anything starts.

Values of the model and of the inner loop are the preset's, because the data set, the first weights and the length of a round
follow from them. All others replace what `build_spec` chose, and its bounds follow unless they are set too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from protocol import record
from protocol.errors import OperatorError, Rejected
from protocol.ids import ZERO32
from protocol.model_spec import LlamaSpec, ModelSpec
from protocol.spec import DataSpec, InnerSpec, RunSpec
from syntience.devnet.presets import Crowd, Preset, build_spec, with_bounds
from syntience.spec_file import FOLLOWS, apply_changes, changed_spec

FIXED: Mapping[str, str] = MappingProxyType(
    {
        **FOLLOWS,
        "chain.genesis_time": "the chain's time at the start",
        "chain.rounds_per_epoch": "--rounds-per-epoch",
        "model.init_seed": "--seed",
    }
)
"""What can't be set in a devnet, and what it follows from."""
_CHOOSE = "choose other values for --set"
_OWN_PARTS = ("model", "inner")
_ANY_CROWD = Crowd(miners=1, processes=1, cores=1)
_AMPLE_SAMPLES = 1 << 20


def changed_preset(preset: Preset, changes: Sequence[str]) -> Preset:
    """The preset with the changes of model and inner loop; a miner's training takes as much longer as it has to compute.

    Raises:
        OperatorError: any of the changes makes no sense, or no run.
    """
    own = [change for change in changes if change.startswith(tuple(f"{p}." for p in _OWN_PARTS))]
    parts = {
        "model": dict(record.to_json(preset.model)),
        "inner": dict(record.to_json(preset.inner)),
    }
    apply_changes(parts, own, fixed=FIXED)
    try:
        model = record.from_json(LlamaSpec, parts["model"])
        inner = record.from_json(InnerSpec, parts["inner"])
    except Rejected as error:
        raise OperatorError(str(error), _CHOOSE) from error
    work = _work(model, inner) / _work(preset.model, preset.inner)
    changed = replace(preset, model=model, inner=inner, train_core_s=preset.train_core_s * work)
    _try_out(changed, changes)
    return changed


def changed_run(spec: RunSpec, changes: Sequence[str]) -> RunSpec:
    """The spec of a devnet's run with all changes, those that its preset has already included; raises `OperatorError`."""
    changed = changed_spec(spec, changes, fixed=FIXED)
    chosen = [change.partition("=")[0].removeprefix("chain.") for change in changes]
    return replace(changed, chain=with_bounds(changed.chain, chosen=chosen))


def _try_out(preset: Preset, changes: Sequence[str]) -> None:
    """Makes the run's spec over a data set that has everything."""
    from training.layout import chunk_layout

    data = DataSpec(
        name="any",
        tokenizer_digest=ZERO32,
        dataset_root=ZERO32,
        sources_root=ZERO32,
        documents_root=ZERO32,
        documents=1,
        end_token=0,
        train_samples=_AMPLE_SAMPLES,
        total_samples=2 * _AMPLE_SAMPLES,
        sample_tokens=preset.model.context + 1,
        token_bytes=2,
    )
    try:
        spec = build_spec(
            preset,
            _ANY_CROWD,
            data=data,
            genesis_root=ZERO32,
            genesis_time=0,
            rounds_per_epoch=1,
        )
        chunk_layout(preset.model, changed_run(spec, changes).codec)
    except (Rejected, ValueError) as error:
        raise OperatorError(str(error), _CHOOSE) from error


def _work(model: ModelSpec, inner: InnerSpec) -> int:
    """What a round of training costs, up to a factor: tokens times parameters."""
    from training.parameters import parameter_count

    return inner.steps * inner.batch * model.context * parameter_count(model)
