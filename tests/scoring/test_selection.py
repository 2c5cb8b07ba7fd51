from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.hashing import abi_words, keccak256
from protocol.ids import Address
from scoring.errors import Contradiction
from scoring.selection import rank_hash, select
from tests.scoring.peers import peer
from tests.specs import some_hash

BEACON = some_hash("evaluation")


def chosen(
    candidates: list[Address], weights: dict[Address, int], top_g: int, newcomers: int
) -> list[Address]:
    return select(candidates, weights, BEACON, top_g=top_g, newcomer_slots=newcomers)


def by_hash(*numbers: int) -> list[Address]:
    return sorted((peer(i) for i in numbers), key=lambda miner: rank_hash(BEACON, miner))


def test_rank__hash__is_of_tag_beacon_and_miner() -> None:
    tag = keccak256(b"syntience.rank.v1")
    assert rank_hash(BEACON, peer(3)) == keccak256(abi_words(tag, BEACON, peer(3)))


def test_select__weights__go_first_heaviest_first() -> None:
    weights = {peer(0): 5, peer(1): 9, peer(2): 7}
    assert chosen([peer(i) for i in range(3)], weights, 2, 0) == [peer(1), peer(2)]


def test_select__at_the_start__goes_by_hash_alone() -> None:
    miners = [peer(i) for i in range(6)]
    assert chosen(miners, {}, 4, 1) == by_hash(*range(6))[:4]


def test_select__ties__go_by_hash() -> None:
    weights = {peer(i): 4 for i in range(5)}
    assert chosen([peer(i) for i in range(5)], weights, 3, 0) == by_hash(*range(5))[:3]


def test_select__newcomers__have_places_of_their_own() -> None:
    weights = {peer(i): 10 + i for i in range(4)}
    miners = [peer(i) for i in range(7)]
    assert chosen(miners, weights, 4, 2) == [peer(3), peer(2), *by_hash(4, 5, 6)[:2]]


def test_select__empty_places__go_to_the_other_group() -> None:
    weights = {peer(i): 10 + i for i in range(4)}
    assert chosen([peer(i) for i in range(4)], weights, 3, 2) == [peer(3), peer(2), peer(1)]
    miners = [peer(i) for i in (0, 4, 5, 6)]
    assert chosen(miners, weights, 3, 1) == [peer(0), *by_hash(4, 5, 6)[:2]]


def test_select__found_worthless__enters_only_where_nobody_else_is() -> None:
    weights = {peer(0): 0, peer(1): 0, peer(2): 3}
    assert chosen([peer(0), peer(1), peer(2)], weights, 3, 1) == [peer(2)]
    assert chosen([peer(0), peer(3)], weights, 3, 1) == [peer(3)]
    assert chosen([peer(0), peer(1)], weights, 3, 1) == by_hash(0, 1)


def test_select__nobody__is_empty() -> None:
    assert chosen([], {}, 3, 1) == []


def test_select__contradictions__are_refused() -> None:
    with pytest.raises(Contradiction):
        chosen([peer(0), peer(0)], {}, 3, 1)
    with pytest.raises(Contradiction):
        chosen([peer(0)], {}, 3, 4)


@given(
    st.lists(st.integers(0, 30), unique=True, max_size=12),
    st.dictionaries(st.integers(0, 30), st.integers(0, 5)),
    st.integers(0, 8).flatmap(lambda g: st.tuples(st.just(g), st.integers(0, g))),
    st.data(),
)
def test_select__any_order_of_candidates__gives_the_same_set(
    numbers: list[int], weighed: dict[int, int], sizes: tuple[int, int], data: st.DataObject
) -> None:
    miners = [peer(i) for i in numbers]
    weights = {peer(i): weight for i, weight in weighed.items()}
    found = chosen(miners, weights, *sizes)
    assert chosen(data.draw(st.permutations(miners)), weights, *sizes) == found
    assert len(set(found)) == len(found) <= sizes[0]
    assert set(found) <= set(miners)
    able = [miner for miner in miners if weights.get(miner) != 0]
    assert len(found) == min(sizes[0], len(able) or len(miners))
