"""Ids, assignment and public draws: canonical, repeatable, uniform."""

from __future__ import annotations

from collections import Counter

import pytest
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from protocol.assignment import assigned_samples
from protocol.beacon import Draw, seed_from
from protocol.errors import Rejected
from protocol.ids import Round, address_bytes, to_address, to_hash32
from tests.protocol.vectors import MINER, RUN, hash_of


@given(st.binary(min_size=20, max_size=20))
def test_to_address__any_bytes__equals_eip55_of_eth_utils(raw: bytes) -> None:
    address = to_address(raw)
    assert str(address) == to_checksum_address(raw)
    assert to_address(raw.hex()) == address
    assert address_bytes(address) == raw


def test_to_address__mistyped__is_rejected() -> None:
    good = to_address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
    swapped = good.swapcase().replace("0X", "0x")
    for bad in (swapped, good[:-1], "0xzz" + good[4:], b"\0" * 19):
        with pytest.raises(Rejected):
            to_address(bad)
    with pytest.raises(Rejected):
        to_hash32("0x12")


def test_assigned_samples__other_beacon__differ_and_stay_in_the_pool() -> None:
    def draw(label: str) -> tuple[int, ...]:
        return assigned_samples(
            run=RUN,
            round_=Round(1),
            beacon=hash_of(label),
            miner=MINER,
            count=80,
            train_samples=50,
        )

    assert draw("a") == draw("a")
    assert draw("a") != draw("b")
    assert all(0 <= sample < 50 for sample in draw("a"))


@given(st.integers(1, 60), st.data())
def test_sample__without_replacement__is_a_subset(population: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, population))
    drawn = Draw(hash_of("s")).sample(population, count)
    assert len(set(drawn)) == count
    assert all(0 <= item < population for item in drawn)


def test_sample__many_draws__every_item_equally_often() -> None:
    draw = Draw(hash_of("uniform"))
    seen = Counter(item for _ in range(3000) for item in draw.sample(5, 2))
    assert all(abs(seen[item] - 1200) < 150 for item in range(5))


def test_shuffled__any_order__is_a_permutation_and_repeats() -> None:
    items = list(range(20))
    once, again = (Draw(hash_of("p")).shuffled(items) for _ in range(2))
    assert once == again
    assert sorted(once) == items
    assert once != items


def test_seed_from__labels__never_collide_by_concatenation() -> None:
    beacon = hash_of("b")
    seeds = {
        seed_from(beacon, "ab", "c"),
        seed_from(beacon, "a", "bc"),
        seed_from(beacon, "abc"),
        seed_from(beacon, 1),
        seed_from(beacon, (1).to_bytes(32, "big")),
        seed_from(beacon),
    }
    assert len(seeds) == 6
    draw = Draw(beacon)
    assert draw.child("x").below(10**9) == draw.child("x").below(10**9)


def test_draw__impossible_question__raises() -> None:
    with pytest.raises(ValueError, match="bound"):
        Draw(hash_of("x")).below(0)
    with pytest.raises(ValueError, match="can't draw"):
        Draw(hash_of("x")).sample(2, 3)
