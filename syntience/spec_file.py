"""Making the spec of a new run from an old one: another data set, other numbers, and all that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from protocol import canonical, record
from protocol.canonical import Json
from protocol.errors import OperatorError, Rejected
from protocol.ids import Hash32
from protocol.merkle import depth_of
from protocol.model_spec import LlamaSpec, ModelSpec, read_model_spec
from protocol.spec import DataSpec, RunSpec
from syntience.start import read_start
from training.dataset import TokenDataset
from training.parameters import initial_parameters
from training.roots import state_root
from training.tokenizer import load_tokenizer, vocabulary_size

Parts: TypeAlias = Mapping[str, dict[str, Json]]
"""The fields of a spec's parts, by part."""

_CHOOSE = "choose other values for --set"
_DATA_SET = "the data set"
FOLLOWS: Mapping[str, str] = MappingProxyType(
    {
        "data": _DATA_SET,
        "chain.dataset_depth": _DATA_SET,
        "chain.dataset_root": _DATA_SET,
        "chain.train_samples": _DATA_SET,
        "chain.genesis_root": "the model",
        "chain.samples_per_round": "inner.steps and inner.batch",
        "chain.steps": "inner.steps",
        "chain.trace_every": "inner.trace_every",
        "chain.codec_chunk": "codec.chunk",
        "chain.codec_bits": "codec.bits",
    }
)
"""Parts and fields that nobody sets, and what they follow from."""


def derive_spec(
    template: RunSpec, *, data: Path, changes: Sequence[str], start: Path | None = None
) -> RunSpec:
    """A spec like the template, for the data set in a folder.

    Args:
        template: everything that is not changed comes from here.
        data: a prepared data set; vocabulary and context follow from it.
        start: a folder with the model to begin with, which then is the run's; else its weights come from its seed.
        changes: ``part.field=value``, such as ``chain.train_s=60`` or ``inner.schedule.final=0.1``.

    Returns:
        The spec. Samples per round, steps, trace interval, data set and genesis root of the chain's part follow from the
        rest.

    Raises:
        OperatorError: a change of nothing that there is, or a spec that contradicts itself.
    """
    dataset = TokenDataset.open(data)
    parts = parts_of(template)
    parts["data"].update(record.to_json(dataset.spec))
    if start is not None:
        apply_changes(parts, changes, fixed={**FOLLOWS, "model": "--start"})
        stored = read_start(start, dataset)
        started = {**parts, "model": dict(record.to_json(stored.model))}
        return _whole(template, started, genesis_root=state_root(stored.params))
    if template.start != "seed":
        raise OperatorError(
            "the run to be like starts from a checkpoint", "give the one to start from with --start"
        )
    fixed = {**FOLLOWS, "model.context": _DATA_SET, "model.vocab_size": _DATA_SET}
    apply_changes(parts, changes, fixed=fixed)
    parts["model"]["context"] = dataset.spec.sample_tokens - 1
    parts["model"]["vocab_size"] = vocabulary_size(load_tokenizer(dataset))
    return _whole(template, parts)


def changed_spec(
    template: RunSpec, changes: Sequence[str], *, fixed: Mapping[str, str] = FOLLOWS
) -> RunSpec:
    """A spec like the template, for the same data set; see `derive_spec`. `fixed`: as for `apply_changes`."""
    parts = parts_of(template)
    apply_changes(parts, changes, fixed=fixed)
    return _whole(template, parts)


def parts_of(spec: RunSpec) -> Parts:
    """The parts of a spec, to be changed."""
    return {
        name: dict(value)
        for name, value in record.to_json(spec).items()
        if isinstance(value, Mapping)
    }


def apply_changes(
    parts: Parts, changes: Sequence[str], *, fixed: Mapping[str, str] = FOLLOWS
) -> None:
    """Sets fields by ``part.field=value``.

    Args:
        parts: what is changed.
        changes: one after the other.
        fixed: parts and fields that can't be set, and what they follow from.

    Raises:
        OperatorError: there is no such field, it is fixed, or the value is of another kind.
    """
    for change in changes:
        _apply(parts, change, fixed)


def _whole(template: RunSpec, parts: Parts, *, genesis_root: Hash32 | None = None) -> RunSpec:
    """The spec of these parts, with all that follows from them; `genesis_root`: of the checkpoint that it starts from."""
    start = template.start if genesis_root is None else "checkpoint"
    try:
        data = record.from_json(DataSpec, parts["data"])
        model = read_model_spec(parts["model"])
        steps, batch = parts["inner"]["steps"], parts["inner"]["batch"]
        if not isinstance(steps, int) or not isinstance(batch, int):
            raise Rejected("inner.steps and inner.batch are whole numbers")
        parts["chain"].update(
            {
                "dataset_depth": depth_of(data.total_samples),
                "dataset_root": data.dataset_root.hex(),
                "samples_per_round": steps * batch,
                "steps": steps,
                "trace_every": parts["inner"]["trace_every"],
                "codec_chunk": parts["codec"]["chunk"],
                "codec_bits": parts["codec"]["bits"],
                "train_samples": data.train_samples,
            }
        )
        if genesis_root is None and model != template.model:  # it takes a while
            genesis_root = _seeded_root(model, start)
        if genesis_root is not None:
            parts["chain"]["genesis_root"] = genesis_root.hex()
        whole = {**record.to_json(template), **parts, "start": start}
        return RunSpec.from_bytes(canonical.dumps(whole))
    except Rejected as error:
        raise OperatorError(str(error), _CHOOSE) from error


def _seeded_root(model: ModelSpec, start: str) -> Hash32:
    if start != "seed" or not isinstance(model, LlamaSpec):
        raise OperatorError("--set changes the model to start from", "leave model.… out of --set")
    return state_root(initial_parameters(model))


def _apply(parts: Parts, change: str, fixed: Mapping[str, str]) -> None:
    path, equals, text = change.partition("=")
    *groups, name = path.split(".")
    source = fixed.get(path) or fixed.get(groups[0] if groups else "")
    if source:
        raise OperatorError(f"{path} follows from {source}", "leave it out of --set")
    holder: Mapping[str, Json] = parts
    for group in groups:
        inside = holder.get(group)
        holder = inside if isinstance(inside, dict) else {}
    before = holder.get(name)
    if not equals or not isinstance(holder, dict) or before is None or isinstance(before, Mapping):
        fields = parts.get(groups[0]) if groups else None
        known = ", ".join(fields or (f"{each}.…" for each in parts))
        raise OperatorError(
            f"there is nothing to set by {change!r}",
            f"write part.field=value; {groups[0] + ' has' if fields else 'parts are'} {known}",
        )
    if isinstance(before, bool):
        holder[name] = text == "true"
    elif isinstance(before, int):
        try:
            holder[name] = int(text)
        except ValueError as error:
            raise OperatorError(
                f"{path} is a whole number, not {text!r}", "write digits"
            ) from error
    else:
        holder[name] = text
