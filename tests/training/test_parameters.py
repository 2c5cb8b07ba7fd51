"""First values and the checkpoint format."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from tests.specs import MODEL
from tests.training.samples import random_tensors, same_bits
from training.errors import BlobError
from training.parameters import (
    INIT_BOUND,
    Parameters,
    from_blob,
    initial_parameters,
    parameter_count,
    shapes,
    to_blob,
)


def test_shapes__any_model__are_sorted_by_name() -> None:
    for model in (MODEL, replace(MODEL, layers=12)):
        assert list(shapes(model)) == sorted(shapes(model))
    assert "lm_head.weight" in shapes(replace(MODEL, tie_embeddings=False))


def test_initial_parameters__by_definition__equal_a_slow_splitmix64() -> None:
    import hashlib

    name = "model.layers.1.mlp.up_proj.weight"
    key = hashlib.sha256(b"syntience.init.v1" + (1).to_bytes(8, "little") + name.encode()).digest()
    state = int.from_bytes(key[:8], "little")
    mask = (1 << 64) - 1
    expected = []
    for i in range(1, 101):
        z = (state + i * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        expected.append(np.float32(((z >> 40) * 2 - (2**24 - 1)) * (INIT_BOUND / 2**24)))
    assert initial_parameters(MODEL)[name].ravel()[:100].tolist() == [float(x) for x in expected]


def test_initial_parameters__weights__have_the_stated_spread() -> None:
    params = initial_parameters(replace(MODEL, vocab_size=4096))
    weights = params["model.embed_tokens.weight"]
    assert abs(float(weights.mean())) < 1e-3
    assert float(weights.std()) == pytest.approx(0.02, rel=0.02)
    assert float(np.abs(weights).max()) <= INIT_BOUND
    assert (params["model.norm.weight"] == 1).all()


def test_initial_parameters__other_seed__gives_other_weights() -> None:
    a, b = initial_parameters(MODEL), initial_parameters(replace(MODEL, init_seed=2))
    assert same_bits(a, initial_parameters(MODEL))
    assert not same_bits(a, b)


def test_blob__round_trip__keeps_every_bit() -> None:
    params = random_tensors(1)
    params["model.norm.weight"][0] = -0.0
    params["model.norm.weight"][1] = 1e-42
    assert same_bits(from_blob(to_blob(params), MODEL), params)
    assert to_blob(dict(reversed(params.items()))) == to_blob(params)


def _changed(kind: str) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    params: Parameters = random_tensors(1)
    name = "model.norm.weight"
    if kind == "missing":
        del params[name]
    elif kind == "shape":
        params[name] = params[name].reshape(4, 4)
    elif kind == "nan":
        params[name][2] = np.nan
    elif kind == "extra":
        params["extra"] = np.zeros(1, np.float32)
    elif kind == "half":
        return {**params, name: params[name].astype(np.float16)}
    elif kind == "integer":
        return {**params, name: params[name].view(np.int32)}
    return params


@pytest.mark.parametrize("kind", ["missing", "shape", "nan", "extra", "half", "integer"])
def test_from_blob__not_the_model__raises_blob_error(kind: str) -> None:
    with pytest.raises(BlobError):
        from_blob(save(_changed(kind)), MODEL)


def test_from_blob__oversized__raises_before_parsing() -> None:
    blob = to_blob(random_tensors(1))
    with pytest.raises(BlobError, match="bytes"):
        from_blob(blob + b"\0" * 100_000, MODEL)
    with pytest.raises(BlobError, match="bytes"):
        from_blob(b"", MODEL)


BLOB = to_blob(random_tensors(1))


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 255)), min_size=1, max_size=5))
@settings(max_examples=300)
def test_from_blob__mutated_header__raises_blob_error_or_gives_a_model(
    flips: list[tuple[int, int]],
) -> None:
    data = bytearray(BLOB)
    for place, flip in flips:
        data[place] ^= flip
    try:
        params = from_blob(bytes(data), MODEL)
    except BlobError:
        return
    assert {name: array.shape for name, array in params.items()} == dict(shapes(MODEL))
    assert all(np.isfinite(array).all() for array in params.values())


def test_parameter_count__test_model__is_the_sum_of_its_shapes() -> None:
    assert parameter_count(MODEL) == sum(a.size for a in initial_parameters(MODEL).values())
