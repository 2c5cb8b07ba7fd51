from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.ids import ZERO32, Epoch, Slot, Units
from protocol.settlement import MAX_MINERS, SettlementTree, cells_root
from scoring.consensus import consensus_weights
from scoring.errors import Contradiction
from scoring.settlement import EarlierLeaf, EpochFacts, ValidatorSeat, settle, split
from tests.scoring.peers import peer


def seat(number: int, stake: int) -> ValidatorSeat:
    return ValidatorSeat(account=peer(100 + number), stake=Units(stake))


FACTS = EpochFacts(
    epoch=Epoch(5),
    miners={Slot(0): peer(0), Slot(1): peer(1), Slot(3): peer(3)},
    validators={Slot(0): seat(0, 60), Slot(1): seat(1, 40), Slot(2): seat(2, 20)},
    reveals={Slot(0): (10, 30, 99), Slot(1): (20, 20)},
    pot=Units(1001),
    miners_bps=6000,
    earlier={peer(1): EarlierLeaf(epoch=Epoch(3), cumulative=Units(7))},
)


def settled(facts: EpochFacts) -> SettlementTree:
    tree = settle(facts)
    assert tree is not None
    return tree


def test_settle__hand_worked_epoch__pays_by_weight_and_agreement() -> None:
    # Consensus (10, 30, 99): 60 of 100 revealed stake. Empty slot 2 counts for nobody.
    # Miners share floor(1001 * 6 / 10) = 600 as 10 : 30; validators 401 as 60 * 40 : 40 * 30.
    leaves = settled(FACTS).leaves
    miners = [(leaf.w, leaf.amount) for index, leaf in leaves.items() if index < MAX_MINERS]
    assert miners == [(10, 150), (30, 450), (0, 0)]
    validators = [(leaf.w, leaf.amount) for index, leaf in leaves.items() if index >= MAX_MINERS]
    assert validators == [(2400, 267), (1200, 133), (0, 0)]
    assert list(leaves) == [0, 1, 3, MAX_MINERS, MAX_MINERS + 1, MAX_MINERS + 2]


def test_settle__cumulative__continues_the_earlier_leaf() -> None:
    leaves = settled(FACTS).leaves
    assert (leaves[1].cumulative, leaves[1].prev_epoch) == (457, 3)
    assert (leaves[0].cumulative, leaves[0].prev_epoch) == (150, 0)


def test_settle__cells__cover_the_taken_slots_and_are_zero_without_a_reveal() -> None:
    leaves = settled(FACTS).leaves
    assert leaves[0].cells == ZERO32
    assert leaves[MAX_MINERS].cells == cells_root({Slot(0): 10, Slot(1): 30, Slot(3): 0})
    assert leaves[MAX_MINERS + 1].cells == cells_root({Slot(0): 10, Slot(1): 20, Slot(3): 0})
    assert leaves[MAX_MINERS + 2].cells == ZERO32


def test_settle__less_than_half_revealed__settles_nothing() -> None:
    assert settle(replace(FACTS, reveals={Slot(1): (1, 1), Slot(2): (1,)})) is not None
    assert settle(replace(FACTS, reveals={Slot(1): (1, 1)})) is None
    assert settle(replace(FACTS, reveals={})) is None


def test_settle__nobody_weighs_anything__pays_nobody() -> None:
    tree = settled(replace(FACTS, reveals={Slot(0): (), Slot(1): ()}))
    assert tree.root.amount == 0
    assert len(tree.leaves) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"miners": {Slot(0): peer(0), Slot(1): peer(0)}},
        {"miners": {Slot(MAX_MINERS): peer(0)}},
        {"miners": {Slot(0): FACTS.validators[Slot(0)].account}},
        {"reveals": {Slot(9): (1,)}},
        {"miners_bps": 10001},
        {"earlier": {peer(0): EarlierLeaf(epoch=Epoch(5), cumulative=Units(1))}},
    ],
)
def test_facts__contradictions__are_refused(change: dict[str, object]) -> None:
    with pytest.raises(Contradiction):
        replace(FACTS, **change)  # type: ignore[arg-type]


def test_split__nobody__shares_nothing() -> None:
    assert split(Units(10), {Slot(0): 0}) == {0: 0}


weights = st.lists(st.integers(0, 65535), max_size=6).map(tuple)


@settings(max_examples=40, deadline=None)
@given(
    pot=st.integers(0, 10**27),
    miners_bps=st.integers(0, 10_000),
    stakes=st.lists(st.integers(1, 10**27), min_size=1, max_size=4),
    vectors=st.lists(weights, min_size=4, max_size=4),
    taken=st.sets(st.integers(0, 7)),
)
def test_settle__any_epoch__never_pays_more_than_the_shares(
    pot: int, miners_bps: int, stakes: list[int], vectors: list[tuple[int, ...]], taken: set[int]
) -> None:
    facts = EpochFacts(
        epoch=Epoch(1),
        miners={Slot(slot): peer(slot) for slot in taken},
        validators={Slot(i): seat(i, stake) for i, stake in enumerate(stakes)},
        reveals={Slot(i): vectors[i] for i in range(len(stakes))},
        pot=Units(pot),
        miners_bps=miners_bps,
        earlier={},
    )
    tree = settled(facts)
    for_miners, for_validators = facts.shares()
    assert for_miners + for_validators == pot
    assert for_miners * 10_000 <= pot * miners_bps
    for half, share in ((tree.miners, for_miners), (tree.validators, for_validators)):
        assert half.amount <= share
        count = len(tree.leaves)
        assert half.w == 0 or half.amount > share - count
    consensus = consensus_weights(facts.all_reveals())
    paid = {slot: consensus[slot] if slot < len(consensus) else 0 for slot in taken}
    assert {i: leaf.w for i, leaf in tree.leaves.items() if i < MAX_MINERS} == paid
    assert all(leaf.w < 2**128 for leaf in tree.leaves.values())
