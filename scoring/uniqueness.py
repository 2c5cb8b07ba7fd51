"""Is the work the miner's own? Reused payloads and overlapping updates.

A payload root seen in an earlier round is old work, whoever hands it in: commit-before-publish
means that nobody could have been copied from the future. Within a round, two updates that share too
many indices are told apart by the data: the copy is the one that gains less on its own assigned
batch. Time is no evidence (a faster machine could recompute the victim's round and commit first).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from protocol.ids import Address, Hash32, Round
from scoring.rules import OVERLAP_THRESHOLD, REUSE_MEMORY_ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a payload root was first seen."""

    round: Round
    miner: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadMemory:
    """The payload roots of recent rounds and who handed each in first."""

    seen: Mapping[Hash32, Origin] = field(default_factory=dict)

    def reused(self, payload_root: Hash32, round_: Round) -> Origin | None:
        """The earlier round's submission that had this payload; None if it is new."""
        origin = self.seen.get(payload_root)
        return origin if origin is not None and origin.round < round_ else None

    def after(self, round_: Round, payload_roots: Mapping[Address, Hash32]) -> PayloadMemory:
        """With the roots of one more round, and without those that are too old."""
        oldest = round_ - REUSE_MEMORY_ROUNDS
        seen = {root: origin for root, origin in self.seen.items() if origin.round > oldest}
        for miner in sorted(payload_roots):
            seen.setdefault(payload_roots[miner], Origin(round=round_, miner=miner))
        return PayloadMemory(seen=seen)


def overlap_threshold(overlaps: Sequence[float]) -> float:
    """The overlap above which a pair is suspect, given the overlaps of all pairs of a round.

    Honest overlap depends on data and progress, so the threshold lies half-way between the round's
    median and identity, and never below `OVERLAP_THRESHOLD`.
    """
    if not overlaps:
        return OVERLAP_THRESHOLD
    median = sorted(overlaps)[(len(overlaps) - 1) // 2]
    return max(OVERLAP_THRESHOLD, (1 + median) / 2)


def copies(
    overlaps: Mapping[tuple[Address, Address], float],
    own_scores: Mapping[Address, float],
    *,
    threshold: float,
) -> frozenset[Address]:
    """The copies among the overlapping pairs.

    Args:
        overlaps: fraction of shared indices of each pair, in [0, 1].
        own_scores: LossScore of each evaluated update on its own assigned batch.
        threshold: pairs at or below it are not looked at.

    Returns:
        Of each suspect pair the one with less gain on its own batch; neither if they gain the same
        or one was not evaluated: undecided is no penalty.
    """
    found = set()
    for (first, second), overlap in overlaps.items():
        if overlap <= threshold or first not in own_scores or second not in own_scores:
            continue
        gains = own_scores[first], own_scores[second]
        if gains[0] != gains[1]:
            found.add(first if gains[0] < gains[1] else second)
    return frozenset(found)
