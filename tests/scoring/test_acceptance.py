from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import Hash32, Slot, Units
from scoring.acceptance import Attestation, Tally, accepted_slots, bitmap_of, bits_of, tally
from scoring.errors import Contradiction, SubmissionMissing, VectorRejected
from tests.protocol.vectors import SUBMISSION
from tests.scoring.peers import peer
from tests.specs import some_hash

ROOT, OTHER = some_hash("root"), some_hash("other")


def attested(
    slot: int, stake: int, bits: set[int], root: Hash32 = ROOT, slot_count: int = 10
) -> Attestation:
    return Attestation(
        validator=peer(slot),
        slot=Slot(slot),
        stake=Units(stake),
        root=root,
        bitmap=bitmap_of({Slot(bit) for bit in bits}, slot_count),
    )


def test_bitmap__known_slots__are_least_significant_bit_first() -> None:
    assert bitmap_of([Slot(0), Slot(9)], 10) == b"\x01\x02"
    assert bits_of(b"\x01\x02", 10) == (True, *[False] * 8, True)


def test_bits__short_bitmap__reads_zeros() -> None:
    assert bits_of(b"", 3) == (False, False, False)
    assert bits_of(b"\x80", 12)[7:] == (True, False, False, False, False)


@given(st.integers(1, 70).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_bitmap__any_set__round_trips(case: tuple[int, set[int]]) -> None:
    count, slots = case
    bits = bits_of(bitmap_of({Slot(slot) for slot in slots}, count), count)
    assert {slot for slot, bit in enumerate(bits) if bit} == slots
    assert len(bits) == count


@pytest.mark.parametrize("bitmap", [b"\x04", b"\x00\x00", b"\xff"])
def test_bits__beyond_the_slots__is_refused(bitmap: bytes) -> None:
    with pytest.raises(VectorRejected):
        bits_of(bitmap, 2)


def test_bitmap__slot_out_of_range__is_our_bug() -> None:
    with pytest.raises(Contradiction):
        bitmap_of([Slot(2)], 2)


def test_tally__exactly_half_of_the_total__is_no_majority() -> None:
    half = tally([attested(0, 50, {1})], Units(100), 10)
    assert half == Tally(root=None, bits=(False,) * 10)
    more = tally([attested(0, 51, {1})], Units(100), 10)
    assert more.root == ROOT
    assert [slot for slot, bit in enumerate(more.bits) if bit] == [1]


def test_tally__bits_and_roots__are_counted_apart() -> None:
    outcome = tally(
        [attested(0, 30, {1, 2}), attested(1, 30, {1}), attested(2, 40, {2, 3}, OTHER)],
        Units(100),
        10,
    )
    assert outcome.root == ROOT
    assert [slot for slot, bit in enumerate(outcome.bits) if bit] == [1, 2]


def test_tally__silence__counts_against() -> None:
    assert tally([attested(0, 30, {1}), attested(1, 30, {1})], Units(120), 10).root is None


def test_tally__impossible_attesters__are_our_bug() -> None:
    with pytest.raises(Contradiction, match="twice"):
        tally([attested(0, 1, set()), attested(0, 1, set())], Units(9), 10)
    with pytest.raises(Contradiction, match="more stake"):
        tally([attested(0, 10, set())], Units(9), 10)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.sets(st.integers(0, 9)), st.booleans()), max_size=6),
    st.integers(0, 60),
)
def test_tally__any_order__gives_the_same_and_a_slow_count_agrees(
    rows: list[tuple[int, set[int], bool]], silent: int
) -> None:
    attestations = [
        attested(i, stake, bits, ROOT if same else OTHER)
        for i, (stake, bits, same) in enumerate(rows)
    ]
    total = Units(sum(stake for stake, _, _ in rows) + silent)
    outcome = tally(attestations, total, 10)
    assert tally(attestations[::-1], total, 10) == outcome
    for slot in range(10):
        behind = sum(stake for stake, bits, _ in rows if slot in bits)
        assert outcome.bits[slot] == (behind > total / 2)


def test_accepted__wrong_root_or_beacon__is_left_out() -> None:
    right = replace(SUBMISSION, initial_root=ROOT, beacon=some_hash("beacon"))
    submissions = {
        Slot(0): right,
        Slot(1): replace(right, initial_root=OTHER),
        Slot(2): replace(right, beacon=OTHER),
        Slot(3): right,
    }
    outcome = Tally(root=ROOT, bits=(True, True, True, False))
    assert accepted_slots(outcome, submissions, beacon=some_hash("beacon")) == (0,)


def test_accepted__no_majority_root__accepts_nobody() -> None:
    outcome = Tally(root=None, bits=(True,))
    assert accepted_slots(outcome, {}, beacon=ROOT) == ()


def test_accepted__submission_not_at_hand__must_be_fetched() -> None:
    with pytest.raises(SubmissionMissing):
        accepted_slots(Tally(root=ROOT, bits=(True,)), {}, beacon=ROOT)
