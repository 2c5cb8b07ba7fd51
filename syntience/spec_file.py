"""Making the spec of a new run from an old one: another data set, other numbers, and all that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from protocol import canonical, record
from protocol.canonical import Json
from protocol.errors import OperatorError, Rejected
from protocol.merkle import depth_of
from protocol.spec import ModelSpec, RunSpec
from training.dataset import TokenDataset
from training.parameters import initial_parameters
from training.roots import state_root
from training.tokenizer import load_tokenizer, vocabulary_size


def derive_spec(template: RunSpec, *, data: Path, changes: Sequence[str]) -> RunSpec:
    """A spec like the template, for the data set in a folder.

    Args:
        template: everything that is not changed comes from here.
        data: a prepared data set; vocabulary and context follow from it.
        changes: ``part.field=value``, such as ``chain.train_s=60`` or ``inner.schedule.final=0.1``.

    Returns:
        The spec. Samples per round, steps, trace interval, data set and genesis root of the chain's part follow from the
        rest.

    Raises:
        OperatorError: a change of nothing that there is, or a spec that contradicts itself.
    """
    dataset = TokenDataset.open(data)
    parts = {name: dict(value) for name, value in _parts(template).items()}
    for change in changes:
        _apply(parts, change)
    parts["data"] = record.to_json(dataset.spec)
    parts["model"]["context"] = dataset.spec.sample_tokens - 1
    parts["model"]["vocab_size"] = vocabulary_size(load_tokenizer(dataset))
    try:
        model = record.from_json(ModelSpec, parts["model"])
        steps, batch = parts["inner"]["steps"], parts["inner"]["batch"]
        if not isinstance(steps, int) or not isinstance(batch, int):
            raise Rejected("inner.steps and inner.batch are whole numbers")
        parts["chain"] |= {
            "dataset_depth": depth_of(dataset.spec.total_samples),
            "dataset_root": dataset.spec.dataset_root.hex(),
            "genesis_root": state_root(initial_parameters(model)).hex(),
            "samples_per_round": steps * batch,
            "steps": steps,
            "trace_every": parts["inner"]["trace_every"],
            "codec_chunk": parts["codec"]["chunk"],
            "codec_bits": parts["codec"]["bits"],
            "train_samples": dataset.spec.train_samples,
        }
        whole = {**record.to_json(template), **parts}
        return RunSpec.from_bytes(canonical.dumps(whole))
    except Rejected as error:
        raise OperatorError(str(error), "choose other values for --set") from error


def _parts(spec: RunSpec) -> dict[str, Mapping[str, Json]]:
    return {
        name: value for name, value in record.to_json(spec).items() if isinstance(value, Mapping)
    }


def _apply(parts: Mapping[str, dict[str, Json]], change: str) -> None:
    path, equals, text = change.partition("=")
    *groups, name = path.split(".")
    holder: Mapping[str, Json] = parts
    for group in groups:
        inside = holder.get(group)
        holder = inside if isinstance(inside, dict) else {}
    before = holder.get(name)
    if not equals or not isinstance(holder, dict) or before is None or isinstance(before, Mapping):
        known = ", ".join(f"{each}.…" for each in parts)
        raise OperatorError(
            f"there is nothing to set by {change!r}", f"write part.field=value; parts are {known}"
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
