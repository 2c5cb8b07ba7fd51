"""Who owes which leaf on chain, and whose turn it is to show it. Pure, over the stored events.

The validators that vouched for a submission take turns in the order of their slots, from a drawn one on. In its turn a
validator alone may answer, and is paid; after all turns anyone may, until the deadline. Blocks are less pauses.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.contracts.requests import Item, slots_of
from ledger.event_types import ItemAnswered, ItemRequested, ItemWithheld
from ledger.events import EventReader
from protocol.ids import Address, Hash32, Slot

LATE_STEP_BLOCKS = 2
"""After all turns the validators still leave each other so many blocks: only one of them is paid."""
LATE_MARGIN_BLOCKS = 6
"""But nobody waits so long that less than this is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """A request that nobody answered yet.

    Attributes:
        setters: validator slots that owe it, in the order of their turns.
        opened_block, deadline: of the request, and the last one for an answer.
    """

    item: Item
    requester: Address
    setters: tuple[Slot, ...]
    opened_block: int
    deadline: int

    @property
    def id(self) -> Hash32:
        """Names the request."""
        return self.item.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn: its number, whose it is (None: anyone's, after all others), and its last block."""

    number: int
    slot: Slot | None
    last_block: int


def open_requests(events: EventReader) -> list[OpenRequest]:
    """All requests that were neither answered nor decided, oldest first."""
    asked = events.events(ItemRequested)
    if not asked:
        return []
    closed = {event.id for event in events.events(ItemAnswered)}
    closed |= {event.id for event in events.events(ItemWithheld)}
    return [_opened(event) for event in asked if event.id not in closed]


def turn_at(request: OpenRequest, block: int, turn_blocks: int) -> Turn:
    """Whose turn a block belongs to. The block of the request belongs to the first one."""
    number = max(0, block - request.opened_block - 1) // turn_blocks
    if number >= len(request.setters):
        return Turn(number=len(request.setters), slot=None, last_block=request.deadline)
    last = request.opened_block + (number + 1) * turn_blocks
    return Turn(number=number, slot=request.setters[number], last_block=last)


def turn_to_answer(
    request: OpenRequest, *, block: int, turn_blocks: int, slot: Slot | None
) -> Turn | None:
    """The turn in which to answer in the next block; None if it is not ours.

    Args:
        block: the newest one.
        slot: the validator slot that we held in the item's round; None for its miner, who comes after all validators.
    """
    turn = turn_at(request, block + 1, turn_blocks)
    if block + 1 > request.deadline:
        return None
    if turn.slot is not None:
        return turn if turn.slot == slot else None
    if slot is not None and slot not in request.setters:
        return None
    place = len(request.setters) if slot is None else request.setters.index(slot)
    opened = request.opened_block + len(request.setters) * turn_blocks
    patience = min(LATE_STEP_BLOCKS * place, request.deadline - opened - LATE_MARGIN_BLOCKS)
    return turn if block + 1 > opened + patience else None


def _opened(event: ItemRequested) -> OpenRequest:
    slots = slots_of(event.setters)
    first = slots.index(event.first_slot)
    return OpenRequest(
        item=event.item,
        requester=event.requester,
        setters=slots[first:] + slots[:first],
        opened_block=event.opened_block,
        deadline=event.deadline,
    )
