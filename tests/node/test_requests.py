"""Whose turn it is to answer a data request."""

from __future__ import annotations

import pytest

from ledger.contracts.requests import Item, ItemKind
from node.requests import OpenRequest, turn_at, turn_to_answer
from protocol.ids import Round, Slot
from tests.specs import some_hash
from tests.subnet.stepped import key_named

TURN = 3
ITEM = Item(round=Round(4), miner=Slot(2), digest=some_hash("d"), kind=ItemKind.PAYLOAD, index=7)
REQUEST = OpenRequest(
    item=ITEM,
    requester=key_named("requester").address,
    setters=(Slot(5), Slot(0), Slot(3)),
    opened_block=100,
    deadline=100 + 3 * TURN + 20,
)


@pytest.mark.parametrize(
    ("block", "number", "slot", "last"),
    [
        (100, 0, 5, 103),
        (101, 0, 5, 103),
        (103, 0, 5, 103),
        (104, 1, 0, 106),
        (106, 1, 0, 106),
        (107, 2, 3, 109),
        (109, 2, 3, 109),
        (110, 3, None, 129),
        (129, 3, None, 129),
    ],
)
def test_turn_at__each_block__belongs_to_one(
    block: int, number: int, slot: int | None, last: int
) -> None:
    turn = turn_at(REQUEST, block, TURN)
    assert (turn.number, turn.slot, turn.last_block) == (number, slot, last)


def _answers(slot: int | None) -> list[int]:
    """The blocks after which this slot (or the miner) answers in the next one."""
    return [
        block
        for block in range(100, 135)
        if turn_to_answer(
            REQUEST, block=block, turn_blocks=TURN, slot=None if slot is None else Slot(slot)
        )
    ]


def test_turn_to_answer__in_turn_then_one_after_the_other__until_the_deadline() -> None:
    """In the block after the one that is known; nobody sends what comes too late."""
    assert _answers(5) == [100, 101, 102, *range(109, 129)]
    assert _answers(0) == [103, 104, 105, *range(111, 129)]
    assert _answers(3) == [106, 107, 108, *range(113, 129)]
    assert _answers(None) == list(range(115, 129))


def test_turn_to_answer__validator_that_set_no_bit__never_answers() -> None:
    assert _answers(4) == []


def test_turn_to_answer__short_time_after_many_turns__nobody_waits_too_long() -> None:
    slots = tuple(Slot(number) for number in range(32))
    request = OpenRequest(
        item=ITEM,
        requester=REQUEST.requester,
        setters=slots,
        opened_block=0,
        deadline=32 * TURN + 11,
    )
    last = turn_to_answer(request, block=32 * TURN + 5, turn_blocks=TURN, slot=slots[-1])
    assert last is not None
    assert last.slot is None


def test_item_id__any_field_changed__is_another() -> None:
    others = [
        Item(round=Round(5), miner=ITEM.miner, digest=ITEM.digest, kind=ITEM.kind, index=7),
        Item(round=ITEM.round, miner=Slot(3), digest=ITEM.digest, kind=ITEM.kind, index=7),
        Item(round=ITEM.round, miner=ITEM.miner, digest=ITEM.digest, kind=ItemKind.LOCAL, index=7),
        Item(round=ITEM.round, miner=ITEM.miner, digest=ITEM.digest, kind=ITEM.kind, index=8),
    ]
    assert len({item.id for item in [ITEM, *others]}) == 5
