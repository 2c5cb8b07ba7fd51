"""What the numbers of a round follow from, besides where it begins."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec, ComputeSpec, InnerSpec, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """The parts of a run's spec that decide the bits of a round.

    Raises ValueError where micro batches don't fill a batch.
    """

    model: ModelSpec
    inner: InnerSpec
    codec: CodecSpec
    compute: ComputeSpec

    def __post_init__(self) -> None:
        if self.inner.batch % self.compute.micro_batch:
            raise ValueError(
                f"micro batches of {self.compute.micro_batch} don't fill a batch of {self.inner.batch}"
            )

    @classmethod
    def of(cls, spec: RunSpec) -> Arithmetic:
        """A run's."""
        return cls(model=spec.model, inner=spec.inner, codec=spec.codec, compute=spec.compute)
