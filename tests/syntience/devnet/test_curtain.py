"""Round 1 starts when everybody is ready, and not later."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ledger.connection import Connection
from protocol.clock import RoundClock
from protocol.ids import Round
from syntience.devnet import curtain
from syntience.devnet.curtain import raise_curtain
from tests.chain import Anvil
from tests.specs import CHAIN, some_hash
from tests.syntience.devnet.stage import PLAYERS, FakeBoards, boards_of


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curtain, "_LOOK_S", 0.01)


async def test_raise_curtain__everybody_ready__skips_the_wait(own_anvil: Anvil) -> None:
    clock = RoundClock(replace(CHAIN, genesis_time=own_anvil.time() + 1_000))
    nodes, looks = FakeBoards(), 0
    boards = boards_of(nodes)

    async def meanwhile() -> None:
        nonlocal looks
        player = PLAYERS[looks % len(PLAYERS)]
        nodes.put(player, "roots/1", some_hash("root"))
        looks += 1

    async with await Connection.open(own_anvil.url) as connection:
        assert await raise_curtain(connection, clock, boards, PLAYERS, meanwhile)
    own_anvil.mine()
    assert looks == len(PLAYERS)
    left = clock.start(Round(1)) - own_anvil.time()
    assert 2 <= left <= 5  # enough to draw the first beacon


async def test_raise_curtain__somebody_is_not_ready__starts_without_it(own_anvil: Anvil) -> None:
    clock = RoundClock(replace(CHAIN, genesis_time=own_anvil.time() + 9))
    boards = boards_of(FakeBoards())

    async def meanwhile() -> None:
        own_anvil.mine()
        own_anvil.rpc("evm_increaseTime", 1)

    async with asyncio.timeout(30), await Connection.open(own_anvil.url) as connection:
        assert not await raise_curtain(connection, clock, boards, PLAYERS, meanwhile)
