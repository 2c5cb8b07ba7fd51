from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import Slot
from scoring.errors import Contradiction, VectorRejected
from scoring.weights import (
    FULL_WEIGHT,
    decode_weights,
    encode_weights,
    peer_score,
    weight_vector,
)
from tests.scoring.peers import peer, slots_of

scores = st.dictionaries(st.integers(0, 20), st.floats(-10, 1e6, allow_subnormal=True), max_size=12)


def test_score__two_negatives__never_pay() -> None:
    assert peer_score(-2.0, -3.0) == 0.0
    assert peer_score(2.0, 3.0, 0.5) == 3.0
    assert peer_score(-0.0, 5.0) == 0.0


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5))
def test_score__any_factor_not_positive__is_zero(factors: list[float]) -> None:
    score = peer_score(*factors)
    assert score == 0 if min(factors) <= 0 else score >= 0


def test_vector__squares__by_largest_remainder() -> None:
    # Squares 1, 4, 4 of 65535: 7281.67, 29126.67, 29126.67; two units left go to the lower slots.
    vector = weight_vector({peer(0): 1.0, peer(1): 2.0, peer(2): 2.0}, slots_of(4), slot_count=4)
    assert vector == (7282, 29127, 29126, 0)


def test_vector__one_strong_peer__out_earns_ten_weak_of_the_same_sum() -> None:
    weak = {peer(i): 1.0 for i in range(10)}
    vector = weight_vector({**weak, peer(10): 10.0}, slots_of(11), slot_count=11)
    assert vector[10] > 9 * sum(vector[:10])


def test_vector__nobody_positive__is_all_zero() -> None:
    assert weight_vector({peer(0): -1.0, peer(1): 0.0}, slots_of(3), slot_count=3) == (0, 0, 0)


def test_vector__extreme_scores__neither_overflow_nor_vanish() -> None:
    assert weight_vector({peer(0): 1e300}, slots_of(1), slot_count=1) == (FULL_WEIGHT,)
    assert weight_vector({peer(0): 5e-324}, slots_of(1), slot_count=1) == (FULL_WEIGHT,)


@given(scores)
def test_vector__any_scores__sum_to_full_weight_in_order(by_number: dict[int, float]) -> None:
    by_peer = {peer(i): score for i, score in by_number.items()}
    vector = weight_vector(by_peer, slots_of(21), slot_count=21)
    positive = {i: score for i, score in by_number.items() if score > 0}
    assert sum(vector) == (FULL_WEIGHT if positive else 0)
    assert all(vector[i] == 0 for i in range(21) if i not in positive)
    for i, one in positive.items():
        for k, other in positive.items():
            assert vector[i] >= vector[k] - 1 if one >= other else True
    largest = max(positive.values(), default=1.0)
    total = math.fsum((score / largest) ** 2 for score in positive.values())
    for i, score in positive.items():
        assert abs(vector[i] - FULL_WEIGHT * (score / largest) ** 2 / total) <= 1 + 1e-6


@given(scores, st.data())
def test_vector__order_of_scores_and_slots__does_not_matter(
    by_number: dict[int, float], data: st.DataObject
) -> None:
    by_peer = {peer(i): score for i, score in by_number.items()}
    shuffled = dict(data.draw(st.permutations(list(by_peer.items()))))
    slots = dict(data.draw(st.permutations(list(slots_of(21).items()))))
    assert weight_vector(shuffled, slots, slot_count=21) == weight_vector(
        by_peer, slots_of(21), slot_count=21
    )


def test_vector__weights_follow_the_account__not_the_slot() -> None:
    by_peer = {peer(0): 3.0, peer(1): 1.0}
    vector = weight_vector(by_peer, {Slot(2): peer(1), Slot(0): peer(0)}, slot_count=3)
    assert vector[0] > vector[2] > 0 == vector[1]


def test_vector__contradictions__are_refused() -> None:
    with pytest.raises(Contradiction):
        weight_vector({}, {Slot(0): peer(0), Slot(1): peer(0)}, slot_count=2)
    with pytest.raises(Contradiction):
        weight_vector({}, {Slot(2): peer(0)}, slot_count=2)


@given(st.lists(st.integers(0, FULL_WEIGHT), max_size=20))
def test_encoding__any_vector__round_trips(vector: list[int]) -> None:
    assert decode_weights(encode_weights(vector)) == tuple(vector)


def test_encoding__is_big_endian_and_even() -> None:
    assert encode_weights([1, 256]) == b"\x00\x01\x01\x00"
    with pytest.raises(VectorRejected):
        decode_weights(b"\x00")
