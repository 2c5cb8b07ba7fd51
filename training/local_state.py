"""What a miner carries from round to round: AdamW's moments, the error feedback and the step count.

It is deposited each round, so that anyone can recompute the next round from public data alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from safetensors.numpy import save as save_safetensors

from protocol.model_spec import ModelSpec
from training.errors import BlobError
from training.parameters import Parameters, Shape, shapes, tensors_from_blob, zeros

# The count travels as fp32, which holds every integer up to here.
MAX_STEP = 1 << 24
PARTS = ("m", "v", "e")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalState:
    """m, v: AdamW's moments; e: what earlier payloads left unsent; step: AdamW steps taken so far."""

    m: Parameters
    v: Parameters
    e: Parameters
    step: int

    def __post_init__(self) -> None:
        if not 0 <= self.step <= MAX_STEP:
            raise ValueError(f"step {self.step} is outside [0, {MAX_STEP}]")

    @classmethod
    def zeros(cls, model: ModelSpec) -> LocalState:
        """The state of a new or reset miner."""
        return cls(m=zeros(model), v=zeros(model), e=zeros(model), step=0)

    def to_blob(self) -> bytes:
        """Safetensors bytes with the tensors `m.*`, `v.*`, `e.*` and `step`."""
        tensors = {
            f"{part}.{name}": np.ascontiguousarray(array)
            for part, params in zip(PARTS, (self.m, self.v, self.e), strict=True)
            for name, array in params.items()
        }
        tensors["step"] = np.array([self.step], np.float32)
        return save_safetensors({name: tensors[name] for name in sorted(tensors)})

    @classmethod
    def from_blob(cls, data: bytes, model: ModelSpec) -> LocalState:
        """The local state in `data`. Raises BlobError for wrong names, shapes, types, non-finite or negative second moments."""
        expected: dict[str, Shape] = {
            f"{part}.{name}": shape for part in PARTS for name, shape in shapes(model).items()
        }
        expected["step"] = (1,)
        tensors = tensors_from_blob(data, expected)
        step = float(tensors.pop("step")[0])
        if not (step.is_integer() and 0 <= step <= MAX_STEP):
            raise BlobError(f"step {step} is no count")
        m, v, e = ({name: tensors[f"{part}.{name}"] for name in shapes(model)} for part in PARTS)
        if any((array < 0).any() for array in v.values()):
            raise BlobError("a second moment is negative")
        return cls(m=m, v=v, e=e, step=int(step))
