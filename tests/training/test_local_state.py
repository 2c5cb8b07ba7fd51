"""The local state's blob: every bit back, and nothing else accepted."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load, save

from tests.specs import MODEL
from tests.training.samples import random_tensors, same_bits
from training.errors import BlobError
from training.local_state import MAX_STEP, LocalState
from training.roots import local_root


def some_state(step: int = 12) -> LocalState:
    squares = {name: np.square(array) for name, array in random_tensors(2).items()}
    return LocalState(m=random_tensors(1), v=squares, e=random_tensors(3), step=step)


@pytest.mark.parametrize("step", [0, 1, 12, MAX_STEP])
def test_blob__round_trip__keeps_every_bit(step: int) -> None:
    state = some_state(step)
    again = LocalState.from_blob(state.to_blob(), MODEL)
    assert again.step == step
    assert same_bits(again.m, state.m)
    assert same_bits(again.v, state.v)
    assert same_bits(again.e, state.e)
    assert local_root(again) == local_root(state)


@pytest.mark.parametrize("step", [-1.0, 0.5, float(MAX_STEP * 2), float("nan"), float("inf")])
def test_from_blob__step_that_is_no_count__raises_blob_error(step: float) -> None:
    tensors = load(some_state().to_blob())
    tensors["step"] = np.array([step], np.float32)
    with pytest.raises(BlobError):
        LocalState.from_blob(save(tensors), MODEL)


def test_from_blob__negative_second_moment__raises_blob_error() -> None:
    tensors = {name: array.copy() for name, array in load(some_state().to_blob()).items()}
    tensors["v.model.norm.weight"][0] = -1.0
    with pytest.raises(BlobError, match="second moment"):
        LocalState.from_blob(save(tensors), MODEL)


def test_from_blob__checkpoint__raises_blob_error() -> None:
    with pytest.raises(BlobError):
        LocalState.from_blob(save(random_tensors(1)), MODEL)


@pytest.mark.parametrize("step", [-1, MAX_STEP + 1])
def test_local_state__step_out_of_range__raises_value_error(step: int) -> None:
    with pytest.raises(ValueError, match="step"):
        some_state(step)
