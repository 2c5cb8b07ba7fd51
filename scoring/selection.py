"""Which accepted miners enter the aggregate: the top G by consensus weight (integers only).

Everybody must find the same set, so the order is exact: weight descending, then a hash under the
evaluation beacon, which nobody knew when handing in. Newcomers (everybody, at the start) have only
that hash, and `newcomer_slots` of the places are kept for them. Ours: a miner that a quorum of
validators looked at and found worth nothing enters only where nobody else is accepted. It is still
evaluated, so it can earn its way back; but noise must not dilute the step of a small subnet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from protocol.hashing import abi_words, keccak256
from protocol.ids import Address, Hash32
from scoring.errors import Contradiction

_RANK_TAG = keccak256(b"syntience.rank.v1")


def rank_hash(beacon: Hash32, miner: Address) -> bytes:
    """Orders miners of equal weight; the lower hash goes first."""
    return keccak256(abi_words(_RANK_TAG, beacon, miner))


def select(
    candidates: Collection[Address],
    weights_by_address: Mapping[Address, int],
    beacon: Hash32,
    *,
    top_g: int,
    newcomer_slots: int,
) -> list[Address]:
    """The selected miners in order of rank: those with weight first, then newcomers.

    Args:
        candidates: the accepted miners.
        weights_by_address: the consensus weights to go by, of the newest epoch up to e - 2 that had
            a quorum. Who is missing is a newcomer; who has 0 was found worth nothing.
        beacon: the round's evaluation beacon.
        top_g: size of the aggregate at most.
        newcomer_slots: places of `top_g` kept for newcomers. A place that one group leaves empty
            goes to the other.
    """
    if len(set(candidates)) != len(candidates):
        raise Contradiction("a candidate is named twice")
    if not 0 <= newcomer_slots <= top_g:
        raise Contradiction(f"{newcomer_slots} newcomer slots of {top_g}")
    ranked = sorted(
        candidates,
        key=lambda miner: (-weights_by_address.get(miner, 0), rank_hash(beacon, miner)),
    )
    weighted = [miner for miner in ranked if weights_by_address.get(miner, 0) > 0]
    newcomers = [miner for miner in ranked if miner not in weights_by_address]
    kept = min(newcomer_slots, len(newcomers))
    chosen = weighted[: top_g - kept]
    chosen += newcomers[: top_g - len(chosen)]
    return chosen or ranked[:top_g]
