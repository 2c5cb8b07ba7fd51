"""Round 1 starts as soon as everybody is ready, however fast or slow this machine is.

Genesis is fixed when the run is deployed, before anyone knows how long a dozen processes take to
boot. So it lies generously ahead, and once every node stands at the start of round 1 the clock of
the local chain is put forward to just before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ledger.connection import Connection
from protocol.clock import RoundClock
from protocol.ids import Round
from syntience.devnet.boards import Boards
from syntience.devnet.players import Player

_FIRST = Round(1)
_DRAW_S = 4
"""Left until genesis: what fixing and recording the first beacon takes."""
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
    latest = clock.start(_FIRST) - _DRAW_S
    while len(boards.roots(_FIRST)) < len(players):
        await meanwhile()
        await boards.look(_FIRST)
        if (await connection.head()).time >= latest:
            return False
        await asyncio.sleep(_LOOK_S)
    skipped = latest - (await connection.head()).time
    if skipped > 0:
        await connection.request("evm_increaseTime", [skipped])
    return True
