"""Spec, run file and canonical JSON: one form, strict, and refused by name when wrong."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical
from protocol.errors import Rejected
from protocol.ids import ZERO_ADDRESS, to_address
from protocol.runfile import RUN_FILE_VERSION, ContractAddresses, RunFile
from protocol.spec import RunSpec
from protocol.submission import run_id
from tests.specs import CHAIN, SPEC

REGISTRY = to_address("0x" + "11" * 20)
RUN_FILE = RunFile(
    version=RUN_FILE_VERSION,
    run=run_id(chain_id=31337, registry=REGISTRY, nonce=0),
    chain_id=31337,
    nonce=0,
    deploy_block=1,
    contracts=ContractAddresses(
        **{item.name: ZERO_ADDRESS for item in fields(ContractAddresses)} | {"registry": REGISTRY}
    ),
    spec=SPEC,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_canonical__any_value__round_trips(value: canonical.Json) -> None:
    assert canonical.loads(canonical.dumps(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,"a":1}',
        b"1.5",
        b"1e3",
        b"NaN",
        b"",
        b"[" * 9999,
    ],
)
def test_canonical__another_form__is_rejected(data: bytes) -> None:
    with pytest.raises(Rejected):
        canonical.loads(data)


def test_canonical__nesting_that_would_overflow_the_parser__is_rejected() -> None:
    for opening in (b"[", b'{"a":', b'["[",'):
        with pytest.raises(Rejected, match="nested deeper"):
            canonical.loads(opening * 100_000)
    brackets_in_text = canonical.dumps(["[" * 1000, '\\"[{' * 100])
    assert canonical.loads(brackets_in_text) == ["[" * 1000, '\\"[{' * 100]


def test_canonical__float__is_refused() -> None:
    with pytest.raises(TypeError, match="decimals as strings"):
        canonical.dumps({"x": [0.5]})  # type: ignore[list-item]


def test_spec__to_bytes_and_back__is_equal_and_hash_is_stable() -> None:
    assert RunSpec.from_bytes(SPEC.to_bytes()) == SPEC
    assert SPEC.hash() == RunSpec.from_bytes(SPEC.to_bytes()).hash()
    assert replace(SPEC, model=replace(SPEC.model, layers=3)).hash() != SPEC.hash()


def test_run_file__to_bytes_and_back__is_equal() -> None:
    assert RunFile.from_bytes(RUN_FILE.to_bytes() + b"\n") == RUN_FILE


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("spec", "model", "layers"), "2", "LlamaSpec.layers: expected int"),
        (("spec", "model", "layers"), True, "LlamaSpec.layers: expected int"),
        (("spec", "inner", "learning_rate"), "fast", "learning_rate is not a decimal"),
        (("spec", "inner", "learning_rate"), "NaN", "learning_rate is not a decimal"),
        (("spec", "compute", "tolerance"), "1", "tolerance is not a decimal number from 0 to 1"),
        (("spec", "compute", "tolerance"), "NaN", "tolerance is not a decimal"),
        (("spec", "compute", "tolerance"), "small", "tolerance is not a decimal"),
        (("spec", "outer", "rule"), "adam", "outer.rule 'adam' is none of sparseloco, demo"),
        (("spec", "outer", "alpha"), "demo", "alpha is not a decimal"),
        (("spec", "codec", "transform"), "fft", "codec.transform 'fft' is none of none, dct"),
        (("spec", "chain", "steps"), 3, "steps differ"),
        (("spec", "chain", "dataset_root"), "00", "expected 32 bytes"),
        (("nonce",), 1, "does not follow"),
        (("version",), 2, "version 2"),
        (("contracts", "extra"), 1, "unknown"),
    ],
)
def test_run_file__wrong_field__is_rejected_by_name(
    path: tuple[str, ...], value: object, message: str
) -> None:
    obj = json.loads(RUN_FILE.to_bytes())
    target = obj
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    raw = json.dumps(obj, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(Rejected, match=message):
        RunFile.from_bytes(raw)


def test_spec__depth_of_the_training_samples_alone__is_rejected() -> None:
    data = replace(SPEC.data, total_samples=200)
    with pytest.raises(Rejected, match="dataset_depth is not 8"):
        replace(SPEC, data=data)


def test_spec__samples_not_steps_times_batch__is_rejected() -> None:
    with pytest.raises(Rejected, match="steps \\* batch"):
        replace(SPEC, chain=replace(CHAIN, samples_per_round=9))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"heads": 3}, "heads does not divide"),
        ({"heads": 16}, "size is odd"),
        ({"kv_heads": 3}, "kv_heads does not divide"),
        ({"heads": 0}, "heads is not positive"),
        ({"layers": -1}, "layers is not positive"),
        ({"context": 0}, "context is not positive"),
    ],
)
def test_model_spec__shape_that_no_model_has__is_rejected(
    changes: dict[str, int], what: str
) -> None:
    with pytest.raises(Rejected, match=what):
        replace(SPEC.model, **changes)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("k", [0, -4, SPEC.codec.chunk + 1])
def test_codec_spec__k_outside_a_chunk__is_rejected(k: int) -> None:
    with pytest.raises(Rejected, match=r"codec\.k is not"):
        replace(SPEC.codec, k=k)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"mode": "exact"}, "unknown compute mode"),
        ({"dtype": "float16"}, "unknown compute dtype"),
        ({"threads": 0}, "threads is not positive"),
        ({"micro_batch": 0}, "micro_batch is not positive"),
    ],
)
def test_compute_spec__way_to_compute_that_there_is_not__is_rejected(
    changes: dict[str, object], what: str
) -> None:
    with pytest.raises(Rejected, match=what):
        replace(SPEC.compute, **changes)  # type: ignore[arg-type]  # fields by name


def test_spec__micro_batches_that_leave_a_rest__are_rejected() -> None:
    assert SPEC.inner.batch == 4
    for micro_batch in (1, 2, 4):
        replace(SPEC, compute=replace(SPEC.compute, micro_batch=micro_batch))
    for micro_batch in (3, 8):
        with pytest.raises(Rejected, match="micro_batch does not divide"):
            replace(SPEC, compute=replace(SPEC.compute, micro_batch=micro_batch))
