"""What a round's training is watched by. Nothing depends on these figures; they are drawn, not signed."""

from __future__ import annotations

from dataclasses import dataclass

from training.codec import Payload
from training.parameters import Parameters, l2_norm


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFigures:
    """One round of one miner.

    Attributes:
        losses: of each inner step's batch before the step, nats per token.
        learning_rate: of the last inner step.
        compression_error: see `compression_error`.
        train_s: wall time of the inner steps, the trace's roots among them.
        encode_s: wall time of choosing and quantising what is sent, and of the error feedback that it leaves.
    """

    losses: tuple[float, ...]
    learning_rate: float
    compression_error: float
    train_s: float
    encode_s: float


def compression_error(payload: Payload, left: Parameters) -> float:
    """norm(what stays in the error feedback) / norm(what was to be sent), L2 over all tensors; 0 if that was nothing.

    Both follow from what a miner deposits, so that anyone can compute it: what was to be sent is what is left plus what
    was sent.

    Args:
        payload: what was sent.
        left: the error feedback after it.
    """
    layout = payload.layout.flat
    whole = layout.flatten(left)
    payload.add_to(whole)
    norm = l2_norm(layout.split(whole).values())
    return l2_norm(left.values()) / norm if norm else 0.0
