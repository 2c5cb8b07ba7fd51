"""The outer step: everybody moves the model by the same sum of the selected updates and must get the same bits.

Only elementwise fp32 operations take part, one peer after the other in slot order, and norms are sums of products that
are rounded once in fp64 by `math.fsum`. So neither threads, nor vector width, nor a torch setting can change a bit. Summands
below SUMMAND_FLOOR and results below `outer.TINY` become +0: no subnormal number decides anything, and the outcome is the same with and
without the processor's flush-to-zero mode.

Where an update consists of coefficients (`training.transform`), those are scaled and summed, and the sum is transformed back
once, by a kernel with an order of its own that is as fixed and knows no subnormal numbers either. The transform keeps norms, so
they are taken from the coefficients. Then the run's rule (`training.outer`) makes a direction of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from training import kernels, transform
from training.codec import LEVEL_UNIT, Payload
from training.outer import OuterStep
from training.parameters import Parameters

Scales = Mapping[str, np.float32]
# Summands below SUMMAND_FLOOR count as zero: what is left are multiples of 2**-113, so no sum of them is subnormal.
SUMMAND_FLOOR = np.float32(2.0**-90)


def norms(payload: Payload) -> dict[str, float]:
    """L2 norm of each tensor of an update as it was sent, by its scales and codes (exact up to two fp64 roundings)."""
    layout = payload.layout
    # Whole numbers below 2^53 (a chunk has at most 4096 levels of at most 1024 units), so their sum is exact in any order.
    units = (payload.units**2).astype(np.float64)
    counts = np.bincount(layout.chunk_of_entry, weights=units, minlength=layout.chunks)
    squares = ((payload.scales.astype(np.float64) / LEVEL_UNIT) ** 2 * counts).tolist()
    return {
        name: math.sqrt(math.fsum(squares[first:end]))
        for name, (first, end) in layout.tensor_chunks.items()
    }


def median_norms(payloads: Sequence[Payload]) -> dict[str, float]:
    """Median over the selected payloads of each tensor's non-zero norm; the lower one if their number is even.

    A tensor that nobody sent has no entry.
    """
    medians: dict[str, float] = {}
    found = [norms(payload) for payload in payloads]
    for name in found[0] if found else ():
        present = sorted(each[name] for each in found if each[name] > 0)
        if present:
            medians[name] = present[(len(present) - 1) // 2]
    return medians


def scale_of(payload: Payload, medians: Mapping[str, float]) -> dict[str, np.float32]:
    """min(1, median / own norm) per tensor, rounded down; 1 where the payload or everybody sent nothing."""
    return {name: _ratio(medians.get(name, own), own) for name, own in norms(payload).items()}


def tensor_scales(payloads: Sequence[Payload]) -> list[dict[str, np.float32]]:
    """The scales of the selected payloads, in their order."""
    medians = median_norms(payloads)
    return [scale_of(payload, medians) for payload in payloads]


def aggregate(params: Parameters, payloads: Sequence[Payload], step: OuterStep) -> Parameters:
    """Theta after `step` against the sum of the scaled updates. `payloads` come in slot order. None: theta as it is."""
    if not payloads:
        return {name: array.copy() for name, array in params.items()}
    return _moved(params, payloads, tensor_scales(payloads), step)


def apply_update(
    params: Parameters, payload: Payload, scales: Scales, step: OuterStep
) -> Parameters:
    """Theta after `step` against the scaled update of one peer: what scoring evaluates."""
    return _moved(params, [payload], [scales], step)


def _moved(
    params: Parameters, payloads: Sequence[Payload], scales: Sequence[Scales], step: OuterStep
) -> Parameters:
    layout = payloads[0].layout
    total = np.zeros(layout.flat.size, np.float32)
    for payload, its_scales in zip(payloads, scales, strict=True):
        if payload.layout is not layout:
            raise ValueError("payloads of different layouts")
        add_scaled(total, payload, its_scales)
    total = transform.from_coefficients(total, layout)
    return layout.flat.split(step.move(layout.flat.flatten(params), total, len(payloads)))


def add_scaled(total: NDArray[np.float32], payload: Payload, scales: Scales) -> None:
    """Adds what was sent times its tensor's scale; negligible values count as 0."""
    layout = payload.layout
    per_chunk = np.ones(layout.chunks, np.float32)
    for name, (first, end) in layout.tensor_chunks.items():
        per_chunk[first:end] = scales[name]
    kernels.add(total, layout, payload.update, per_chunk, SUMMAND_FLOOR)


def _ratio(median: float, own: float) -> np.float32:
    if own <= median:
        return np.float32(1.0)
    exact = median / own
    rounded = np.float32(exact)
    return rounded if float(rounded) <= exact else np.nextafter(rounded, np.float32(0.0))
