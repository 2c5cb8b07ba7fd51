"""Round 1 starts as soon as everybody is ready, however fast or slow this machine is.

Genesis is fixed when the run is deployed, before anyone knows how long a dozen processes take to
boot. So it lies generously ahead, and once every node stands at the start of round 1 the clock of
the local chain is put forward to just before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ledger.connection import Connection
from protocol.beacon import Purpose
from protocol.clock import RoundClock
from protocol.ids import Round
from syntience.devnet.boards import Boards
from syntience.devnet.players import Player

_FIRST = Round(1)
_SPARE_S = 2
"""Left before the first beacon may be fixed, so that nobody is late for it."""
_LOOK_S = 0.5


async def raise_curtain(
    connection: Connection,
    clock: RoundClock,
    boards: Boards,
    players: Sequence[Player],
    meanwhile: Callable[[], Awaitable[None]],
) -> bool:
    """Waits for all nodes and puts the chain's clock forward.

    Args:
        meanwhile: called again and again while waiting.

    Returns:
        False if genesis came before everybody was ready.
    """
    opens = clock.beacon_opens_after(_FIRST, Purpose.ASSIGNMENT)
    while len(boards.roots(_FIRST)) < len(players):
        await meanwhile()
        await boards.look(_FIRST)
        if (await connection.head()).time >= opens:
            return False
        await asyncio.sleep(_LOOK_S)
    skipped = opens - _SPARE_S - (await connection.head()).time
    if skipped > 0:
        await connection.request("evm_increaseTime", [skipped])
    return True
