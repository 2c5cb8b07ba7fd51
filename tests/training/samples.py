"""Small inputs that the training tests share: a model, codecs, random tensors and payloads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from protocol.model_spec import ModelSpec
from protocol.spec import CodecSpec
from tests.specs import MODEL, SPEC
from training.codec import Payload, encode
from training.outer import OuterStep
from training.parameters import Parameters, shapes

FULL = SPEC.codec
SMALL = replace(FULL, chunk=64, k=3)  # several full chunks a tensor, and short ones
DCT = replace(SMALL, transform="dct")
MEAN = OuterStep(rule="sparseloco", size=1.0)
SIGN = OuterStep(rule="demo", size=0.01)
CODECS = (
    FULL,
    SMALL,
    DCT,
    replace(FULL, transform="dct"),
    replace(FULL, chunk=100, k=100),
    replace(FULL, chunk=9, k=1),
    replace(SMALL, bits=1),
    replace(SMALL, bits=4, k=20),
    replace(SMALL, bits=8, k=20),
)


def random_tensors(seed: int, scale: float = 1.0, model: ModelSpec = MODEL) -> Parameters:
    """Normal values in the model's shapes."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) * scale).astype(np.float32)
        for name, shape in shapes(model).items()
    }


def random_payload(
    seed: int, scale: float = 1.0, codec: CodecSpec = SMALL, model: ModelSpec = MODEL
) -> Payload:
    """The encoding of `random_tensors`."""
    return encode(random_tensors(seed, scale, model), model, codec)


def round_samples(seed: int) -> NDArray[np.int64]:
    """(H, batch, L+1) tokens for one round: a text with structure, so that there is something to learn."""
    rng = np.random.default_rng(seed)
    inner = SPEC.inner
    shape = (inner.steps, inner.batch, 1)
    starts = rng.integers(0, MODEL.vocab_size, shape)
    return (starts + 3 * np.arange(MODEL.context + 1)) % MODEL.vocab_size


def same_bits(a: Parameters, b: Parameters) -> bool:
    """Equality of bytes, so that -0 and +0 differ."""
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


@contextmanager
def torch_settings(threads: int, flush: bool) -> Iterator[None]:
    """Meanwhile torch has so many threads, and the processor flushes subnormal numbers to zero or not."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(False)
