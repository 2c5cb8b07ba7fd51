"""Public randomness: what a beacon is, and the draws that everybody can repeat from it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

from protocol.hashing import abi_words, keccak256
from protocol.ids import Hash32, Round

_Item = TypeVar("_Item")


class Purpose(IntEnum):
    """What a round's beacon is for; both are drawn, at different times, in every round."""

    ASSIGNMENT = 1
    """Which samples each miner trains on; its target follows the attest deadline before."""
    EVALUATION = 2
    """How the round is examined; its target follows the publish deadline."""


def beacon_value(*, block_hash: bytes, run: Hash32, round_: Round, purpose: Purpose) -> Hash32:
    """The beacon that the contract derives from the hash of its target block."""
    return Hash32(keccak256(abi_words(block_hash, run, round_, int(purpose))))


class Draw:
    """A deterministic stream of draws: keccak of (seed, counter).

    Two nodes with the same seed that ask the same questions in the same order get the same
    answers. `below` rejects the biased tail, so every answer is exactly uniform.
    """

    def __init__(self, seed: Hash32) -> None:
        self._seed = seed
        self._counter = 0

    def child(self, *labels: int | str | bytes) -> Draw:
        """An independent stream for a sub-purpose; does not advance this one."""
        return Draw(seed_from(self._seed, *labels))

    def below(self, bound: int) -> int:
        """A uniform whole number in [0, bound)."""
        if bound < 1:
            raise ValueError("bound must be at least 1")
        limit = (1 << 256) - (1 << 256) % bound
        while True:
            value = int.from_bytes(keccak256(self._seed + abi_words(self._counter)), "big")
            self._counter += 1
            if value < limit:
                return value % bound

    def unit(self) -> float:
        """A uniform float in [0, 1) on the grid of 2^-53."""
        return self.below(1 << 53) / (1 << 53)

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        """A uniformly random order (Fisher–Yates)."""
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.below(last + 1)
            result[last], result[other] = result[other], result[last]
        return result

    def sample(self, population: int, count: int) -> list[int]:
        """``count`` distinct numbers below ``population``, in the order drawn; O(count) memory."""
        if not 0 <= count <= population:
            raise ValueError(f"can't draw {count} of {population}")
        moved: dict[int, int] = {}
        drawn = []
        for position in range(count):
            other = position + self.below(population - position)
            drawn.append(moved.get(other, other))
            moved[other] = moved.get(position, position)
        return drawn


def seed_from(beacon: Hash32, *labels: int | str | bytes) -> Hash32:
    """A seed for one purpose under a beacon; each label is length-prefixed, so none can collide."""
    parts = [beacon]
    for label in labels:
        raw = label.encode() if isinstance(label, str) else label
        data = abi_words(raw) if isinstance(raw, int) else raw
        kind = b"i" if isinstance(raw, int) else b"b"
        parts.append(Hash32(kind + len(data).to_bytes(4, "big") + data))
    return Hash32(keccak256(b"".join(parts)))
