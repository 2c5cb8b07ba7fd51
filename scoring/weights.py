"""From peer scores to the u16 vector that a validator commits and reveals.

Weights are the squares of the scores, normalised: convex on purpose, so that one strong peer
out-earns many weak identities. The vector sums to exactly 65535 (or is all zero) and is computed
with exact fractions, so the same scores give the same vector everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from protocol.ids import Address, Slot
from scoring.errors import Contradiction, VectorRejected

FULL_WEIGHT = (1 << 16) - 1


def peer_score(*factors: float) -> float:
    """The product of the factors, each clamped at 0 first: two negatives must never pay."""
    return math.prod(max(0.0, factor) for factor in factors)


def weight_vector(
    scores: Mapping[Address, float], slots: Mapping[Slot, Address], *, slot_count: int
) -> tuple[int, ...]:
    """The weights by miner slot: squares of the scores, by largest remainder, summing to 65535.

    Args:
        scores: finite peer scores; missing or not positive ones weigh nothing.
        slots: who holds which miner slot in the epoch.
        slot_count: length of the vector.
    """
    if len(set(slots.values())) != len(slots):
        raise Contradiction("an account holds two miner slots")
    if any(not 0 <= slot < slot_count for slot in slots):
        raise Contradiction("a miner slot lies outside of the vector")
    squares = {
        slot: Fraction(score) ** 2
        for slot, miner in sorted(slots.items())
        if (score := scores.get(miner, 0.0)) > 0
    }
    vector = [0] * slot_count
    if not squares:
        return tuple(vector)
    total = sum(squares.values())
    shares = {slot: FULL_WEIGHT * square / total for slot, square in squares.items()}
    for slot, share in shares.items():
        vector[slot] = int(share)
    rest = sorted(shares, key=lambda slot: (vector[slot] - shares[slot], slot))
    for slot in rest[: FULL_WEIGHT - sum(vector)]:
        vector[slot] += 1
    return tuple(vector)


def encode_weights(vector: Sequence[int]) -> bytes:
    """Big-endian uint16 per miner slot, as revealed in calldata."""
    return b"".join(weight.to_bytes(2, "big") for weight in vector)


def decode_weights(data: bytes) -> tuple[int, ...]:
    """Inverse of `encode_weights`; raises `VectorRejected` for an odd length."""
    if len(data) % 2:
        raise VectorRejected("weights have two bytes per miner slot")
    return tuple(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
