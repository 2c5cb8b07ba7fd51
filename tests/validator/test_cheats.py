"""What rogue validators post and vote."""

from __future__ import annotations

import pytest

from protocol.errors import OperatorError
from protocol.ids import ZERO32, Address, Epoch, Units, to_address
from protocol.settlement import MAX_MINERS, SettlementLeaf, SettlementTree
from validator.cheats import CHEATS, behaviour_named

ME, OTHER, RICH, MINER = (to_address(number.to_bytes(20, "big")) for number in (1, 2, 3, 4))


def leaf(index: int, account: Address, amount: int) -> SettlementLeaf:
    return SettlementLeaf(
        index=index,
        account=account,
        w=amount,
        amount=Units(amount),
        cumulative=Units(7 * amount),
        prev_epoch=Epoch(1),
        cells=ZERO32,
    )


def tree(*leaves: SettlementLeaf) -> SettlementTree:
    return SettlementTree(Epoch(2), {each.index: each for each in leaves})


RIGHT = tree(
    leaf(0, MINER, 500),
    leaf(MAX_MINERS, ME, 105),
    leaf(MAX_MINERS + 1, OTHER, 100),
    leaf(MAX_MINERS + 2, RICH, 200),
)


def test_overpayer__settlement__takes_a_tenth_more_from_the_richest_other() -> None:
    false = behaviour_named("overpay").settlement(RIGHT, ME)
    assert [false.leaves[index].amount for index in sorted(false.leaves)] == [500, 115, 100, 190]
    assert false.leaves[MAX_MINERS].cumulative == 7 * 105 + 10
    assert false.root.amount == RIGHT.root.amount, "the budget still holds"
    assert false.root.hash != RIGHT.root.hash
    assert false.miners == RIGHT.miners


@pytest.mark.parametrize("right", [tree(leaf(MAX_MINERS, ME, 100)), tree(leaf(0, MINER, 5))])
def test_overpayer__nobody_to_take_from__posts_the_right_one(right: SettlementTree) -> None:
    assert behaviour_named("overpay").settlement(right, ME) is right


def test_false_voter__votes__the_opposite_and_posts_right() -> None:
    liar = behaviour_named("false-vote")
    assert (liar.vote(guilty=True), liar.vote(guilty=False)) == (False, True)
    assert liar.settlement(RIGHT, ME) is RIGHT


def test_behaviour_named__known_and_unknown__are_told_apart() -> None:
    assert behaviour_named("honest").vote(guilty=True)
    assert [behaviour_named(kind).name for kind in CHEATS] == list(CHEATS)
    with pytest.raises(OperatorError, match="choose one of honest, overpay"):
        behaviour_named("saint")
