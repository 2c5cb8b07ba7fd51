"""The two kinds of models: told apart by their fields, and refused where no machine could build them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol import canonical, record
from protocol.errors import Rejected
from protocol.model_spec import MAX_CONFIG_CHARS, TransformersSpec, config_text
from protocol.spec import RunSpec
from tests.specs import CHAIN, MODEL, SPEC

GPT2 = TransformersSpec(
    architecture="GPT2LMHeadModel",
    config=config_text({"model_type": "gpt2", "layer_norm_epsilon": 1e-05, "n_embd": 32}),
    vocab_size=300,
    context=16,
)


def test_run_spec__either_kind_of_model__comes_back_from_its_bytes() -> None:
    foreign = replace(SPEC, model=GPT2, start="checkpoint")
    assert RunSpec.from_bytes(SPEC.to_bytes()).model == MODEL
    assert RunSpec.from_bytes(foreign.to_bytes()) == foreign


def test_run_spec__llama_from_a_checkpoint__is_a_spec_of_its_own() -> None:
    started = replace(SPEC, start="checkpoint")
    assert RunSpec.from_bytes(started.to_bytes()) == started
    assert started.hash() != SPEC.hash()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": "anywhere"}, "unknown start"),
        ({"model": GPT2}, "only the project's own Llama"),
        ({"model": replace(GPT2, context=8), "start": "checkpoint"}, "sample_tokens"),
    ],
)
def test_run_spec__start_that_does_not_fit__is_rejected(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(Rejected, match=message):
        replace(SPEC, chain=CHAIN, **changes)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("architecture", r"TransformersSpec: missing \['architecture'\]"),
        ("layers", "LlamaSpec: missing"),
    ],
)
def test_run_spec__model_with_a_field_missing__is_rejected_as_the_nearest_kind(
    missing: str, message: str
) -> None:
    spec = SPEC if missing == "layers" else replace(SPEC, model=GPT2, start="checkpoint")
    value = record.to_json(spec)
    value["model"] = {k: v for k, v in record.to_json(spec.model).items() if k != missing}
    with pytest.raises(Rejected, match=message):
        RunSpec.from_bytes(canonical.dumps(value))


@pytest.mark.parametrize("model", [7, None, [], {}])
def test_run_spec__model_that_is_no_object_of_ours__is_rejected(model: canonical.Json) -> None:
    with pytest.raises(Rejected):
        RunSpec.from_bytes(canonical.dumps({**record.to_json(SPEC), "model": model}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ("{}", "no model_type"),
        ('{"model_type": "gpt2"}', "not in its one form"),
        ('{"model_type":"gpt2","a":1,"a":2}', "not in its one form"),
        ('{"b":1,"a":2,"model_type":"gpt2"}', "not in its one form"),
        ('{"eps":1e400,"model_type":"gpt2"}', "no JSON"),
        ('{"eps":NaN,"model_type":"gpt2"}', "no JSON"),
        ('{"a":' + "[" * 100 + "]" * 100 + ',"model_type":"gpt2"}', "nested too deeply"),
        ('{"model_type":"' + "x" * MAX_CONFIG_CHARS + '"}', "too long"),
        ('{"model_type":"gpt2","n":' + "9" * 5000 + "}", "no JSON"),
    ],
)
def test_transformers_spec__config_without_one_form__is_rejected(config: str, message: str) -> None:
    with pytest.raises(Rejected, match=message):
        replace(GPT2, config=config)


@pytest.mark.parametrize(
    ("field", "value"), [("architecture", "os.system"), ("vocab_size", 0), ("context", -1)]
)
def test_transformers_spec__impossible_value__is_rejected(field: str, value: object) -> None:
    with pytest.raises(Rejected, match=field):
        replace(GPT2, **{field: value})  # type: ignore[arg-type]  # a field by name


@pytest.mark.parametrize("text", ["much", "0", "-1", "NaN", "Infinity"])
def test_llama_spec__no_positive_decimal__is_rejected(text: str) -> None:
    for name in ("rope_theta", "norm_eps"):
        with pytest.raises(Rejected, match=name):
            replace(MODEL, **{name: text})  # type: ignore[arg-type]  # a field by name
