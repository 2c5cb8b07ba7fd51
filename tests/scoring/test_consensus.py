from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.ids import Slot, Units
from scoring.consensus import (
    Reveal,
    agreement,
    consensus_weights,
    has_quorum,
    weights_by_address,
)
from scoring.errors import Contradiction
from tests.scoring.peers import peer, slots_of

rows = st.lists(st.tuples(st.integers(0, 50), st.lists(st.integers(0, 9), max_size=5)), max_size=7)


def revealed(*cases: tuple[int, list[int]]) -> list[Reveal]:
    return [
        Reveal(validator=peer(i), slot=Slot(i), stake=Units(stake), weights=tuple(weights))
        for i, (stake, weights) in enumerate(cases)
    ]


def slow_consensus(cases: list[tuple[int, list[int]]], slot: int) -> int:
    """The definition, tried out for every weight there is."""
    total = sum(stake for stake, _ in cases)
    given_ = [weights[slot] if slot < len(weights) else 0 for _, weights in cases]
    best = 0
    for w in range(max(given_, default=0) + 1):
        if 2 * sum(s for (s, _), v in zip(cases, given_, strict=True) if v >= w) > total:
            best = w
    return best


@given(rows)
def test_consensus__any_reveals__equals_the_definition(cases: list[tuple[int, list[int]]]) -> None:
    found = consensus_weights(revealed(*cases))
    assert len(found) == max((len(weights) for _, weights in cases), default=0)
    for slot, weight in enumerate(found):
        assert weight == slow_consensus(cases, slot)


@given(rows)
def test_consensus__order_of_the_validators__does_not_matter(
    cases: list[tuple[int, list[int]]],
) -> None:
    assert consensus_weights(revealed(*cases)[::-1]) == consensus_weights(revealed(*cases))


def test_consensus__hand_worked__is_clipped_where_more_than_half_agree() -> None:
    # Of 100: at least 9 has 30, at least 5 has 30 + 30 = 60.
    assert consensus_weights(revealed((30, [9]), (30, [5]), (40, [2]))) == (5,)
    # Exactly half is not more than half: both halves agree on 2 only.
    assert consensus_weights(revealed((50, [9]), (50, [2]))) == (2,)
    assert consensus_weights(revealed((51, [9]), (49, [2]))) == (9,)


def test_consensus__short_vector__says_zero() -> None:
    assert consensus_weights(revealed((60, [7]), (40, [7, 7]))) == (7, 0)


def test_consensus__minority__can_neither_raise_nor_lower() -> None:
    honest = [(20, [100, 50]), (20, [101, 49]), (20, [99, 51])]
    for lie in ([0, 0], [65535, 65535]):
        first, second = consensus_weights(revealed(*honest, (59, lie)))
        assert 99 <= first <= 101
        assert 49 <= second <= 51


def test_consensus__two_reveals_of_one_slot__are_our_bug() -> None:
    twice = revealed((1, [1]))
    with pytest.raises(Contradiction):
        consensus_weights([*twice, *twice])


def test_quorum__is_half_of_the_snapshot() -> None:
    assert has_quorum(revealed((50, [])), total_stake=Units(100))
    assert not has_quorum(revealed((49, [])), total_stake=Units(100))
    assert not has_quorum([], total_stake=Units(0))


def test_agreement__is_the_smaller_weight_on_taken_slots_only() -> None:
    reveal = revealed((1, [9, 9, 0, 9]))[0]
    slots = [Slot(0), Slot(2), Slot(3), Slot(7)]
    assert agreement(reveal, (5, 20, 3), slots) == {0: 5, 2: 0, 3: 0, 7: 0}


def test_by_address__every_account_has_an_entry() -> None:
    assert weights_by_address((5, 0), slots_of(3)) == {peer(0): 5, peer(1): 0, peer(2): 0}
