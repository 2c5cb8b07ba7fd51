from __future__ import annotations

import pytest

from protocol.ids import Round
from scoring.rules import OVERLAP_THRESHOLD, REUSE_MEMORY_ROUNDS
from scoring.uniqueness import Origin, PayloadMemory, copies, overlap_threshold
from tests.scoring.peers import peer
from tests.specs import some_hash

ROOT = some_hash("payload")


def test_reused__root_of_an_earlier_round__names_who_had_it_first() -> None:
    memory = PayloadMemory().after(Round(3), {peer(0): ROOT})
    memory = memory.after(Round(4), {peer(1): ROOT})
    assert memory.reused(ROOT, Round(4)) == Origin(round=Round(3), miner=peer(0))
    assert memory.reused(some_hash("new"), Round(4)) is None


def test_reused__same_round__is_no_reuse() -> None:
    memory = PayloadMemory().after(Round(3), {peer(0): ROOT, peer(1): ROOT})
    assert memory.reused(ROOT, Round(3)) is None
    assert memory.reused(ROOT, Round(4)) is not None


def test_memory__old_roots__are_forgotten() -> None:
    memory = PayloadMemory().after(Round(1), {peer(0): ROOT})
    for round_ in (REUSE_MEMORY_ROUNDS, REUSE_MEMORY_ROUNDS + 1):
        memory = memory.after(Round(round_), {peer(0): some_hash(str(round_))})
        assert (memory.reused(ROOT, Round(round_ + 1)) is not None) == (
            round_ == REUSE_MEMORY_ROUNDS
        )
    assert len(memory.seen) == 2


def test_threshold__lies_half_way_from_the_honest_median_to_identity() -> None:
    assert overlap_threshold([]) == OVERLAP_THRESHOLD
    assert overlap_threshold([0.02, 0.03, 0.99]) == pytest.approx(0.515)
    assert overlap_threshold([0.6, 0.7, 0.8]) == pytest.approx(0.85)


def test_copies__the_one_with_less_gain_on_its_own_batch__is_the_copy() -> None:
    overlaps = {(peer(0), peer(1)): 0.9, (peer(1), peer(2)): 0.1, (peer(2), peer(3)): 0.9}
    gains = {peer(0): 0.05, peer(1): 0.02, peer(2): 0.01, peer(3): 0.03}
    assert copies(overlaps, gains, threshold=0.5) == {peer(1), peer(2)}
    swapped = {(b, a): overlap for (a, b), overlap in overlaps.items()}
    assert copies(swapped, gains, threshold=0.5) == {peer(1), peer(2)}


def test_copies__undecided__is_no_penalty() -> None:
    overlaps = {(peer(0), peer(1)): 1.0}
    assert copies(overlaps, {peer(0): 0.1, peer(1): 0.1}, threshold=0.5) == frozenset()
    assert copies(overlaps, {peer(0): 0.1}, threshold=0.5) == frozenset()
    assert copies(overlaps, {peer(0): 0.1, peer(1): 0.2}, threshold=1.0) == frozenset()
